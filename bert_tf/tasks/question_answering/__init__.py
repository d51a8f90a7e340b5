"""The part of a context that answers a question."""
