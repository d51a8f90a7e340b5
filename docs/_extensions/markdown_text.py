"""The plain text of helps and descriptions as Markdown."""

import re

# What is shown as code without backticks: options, keys and values of YAML, and special tokens.
_CODE = re.compile(
    r"(?<![\w/`-])(--[a-z]+(?:-[a-z]+)*|(?:data|init|loss|model|tokenizer|train|distillation)"
    r"\.[a-z_]+(?:=\S+)?|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|null|true|false|\[[A-Z]+\])(?![\w`])"
)


def as_markdown(text: str) -> str:
    r"""Text in one line, with its special characters escaped and its names marked as code.

    >>> print(as_markdown("null: see train.max_length, or `a * b`; 2 * 3"))
    `null`: see `train.max_length`, or `a * b`; 2 \* 3
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _marked(part) for part in parts)


def _marked(text: str) -> str:
    """A piece of text that has no backticks."""
    parts = _CODE.split(text)
    return "".join(
        f"`{part}`" if index % 2 else re.sub(r"([\\*_<>|\[\]])", r"\\\1", part)
        for index, part in enumerate(parts)
    )
