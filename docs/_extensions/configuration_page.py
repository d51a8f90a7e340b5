"""The reference of configurations, made of their JSON Schema."""


def markdown() -> str:
    """The tables, in Markdown."""
    return ""
