"""The one exception that is the user's to mend."""


class UserError(Exception):
    """A mistake in what the user gave: a file, a key, a row, a setting.

    The message is one line that says what is wrong, where, and how to mend it. The command line
    prints it to standard error and exits with code 2; from Python it is an ordinary exception.
    """
