"""The common parts of the tasks on one text or two."""
