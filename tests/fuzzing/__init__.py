"""Files of strangers: whatever they contain, a reader gives a result or a line that explains."""
