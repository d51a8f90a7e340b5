"""An input text, as a string or as its bytes."""

from collections.abc import Callable

from bert_tf.data.tables.json_files import whole_text

Text = str | bytes


def encoded(text: Text) -> bytes:
    """A text as UTF-8, with U+FFFD for half of a surrogate pair, which UTF-8 cannot hold."""
    return text if isinstance(text, bytes) else whole_text(text).encode()


def characters(text: Text) -> Callable[[int], int]:
    """A function from byte offsets into a text to offsets in characters; -1 stays -1."""
    data = encoded(text)
    if data.isascii():
        return int

    def of_byte(offset: int) -> int:
        return len(data[:offset].decode("utf-8", "replace")) if offset >= 0 else -1

    return of_byte


def plain(text: Text) -> str:
    """A text as a string."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
