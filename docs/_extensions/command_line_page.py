"""The reference of the command line, made of its parser."""


def markdown() -> str:
    """The tables, in Markdown."""
    return ""
