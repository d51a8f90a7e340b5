"""A label for a text, or for a pair of texts."""
