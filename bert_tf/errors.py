"""The exception for mistakes in what the user gave."""

import re

_LONGEST = 2000  # characters of a message, which may quote a long text of a file
# Local folders with copies of remote files -> the addresses that messages show instead.
ADDRESSES: dict[str, str] = {}
_COLLAPSED = re.compile(r"\b(gs|s3):/(?=[^/])")  # what pathlib makes of an address


def named(text: str) -> str:
    """`text` with the addresses of remote files in place of the paths of their copies."""
    for place, address in ADDRESSES.items():
        text = text.replace(place, address)
    return _COLLAPSED.sub(r"\1://", text)


class UserError(ValueError):
    """A mistake in what the user gave: a file, a key, a row, a setting.

    The message is one line that says what is wrong, where, and how to correct it. The command line
    prints it to standard error and exits with code 2; in Python it is a `ValueError`.

    Args:
        message: may quote a file, or several lines of a library's message. Lines are joined.
            Characters that cannot be printed are escaped, so they do nothing to a terminal. A long
            message loses its middle.
    """

    def __init__(self, message: str):
        line = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode()
            for each in named(" ".join(message.splitlines()))
        )
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        super().__init__(line)
