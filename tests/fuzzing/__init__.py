"""Files of strangers: whatever stands in them, a reader gives a result or a line that explains."""
