"""The one exception that is the user's to mend."""

# Characters: what somebody else's file is quoted with may have no end.
_LONGEST = 2000


class UserError(ValueError):
    """A mistake in what the user gave: a file, a key, a row, a setting.

    The message is one line that says what is wrong, where, and how to mend it. The command line
    prints it to standard error and exits with code 2; in Python it is a `ValueError`.

    Args:
        message: may quote what was found in a file, or what a library says in several lines. They
            become one; what cannot be printed is escaped, so that it does nothing to a terminal; a
            long one loses its middle.
    """

    def __init__(self, message: str):
        line = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode()
            for each in " ".join(message.splitlines())
        )
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        super().__init__(line)
