"""Hypothesis strategies that make damaged files from intact ones."""

from collections.abc import Sequence

from hypothesis import strategies as st

# Where in a file an edit is made: the place is taken modulo the file's size.
_PLACES = st.integers(0, 2**16)
_LENGTHS = st.integers(0, 64)
# Bytes that readers of numbers, texts and lines are known to stumble over.
_ODD = (
    *(
        b"\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
    ),
    *(b"\r", b"\n", b"\t", b'"', b"-1", b"9" * 400, b"1e999", b"NaN", b"\\ud800", b"[" * 2000),
    *(b"\xe2\x80\xa8", b"../../etc/passwd", b"/etc/passwd"),
)


def damaged(content: bytes, words: Sequence[bytes] = ()) -> st.SearchStrategy[bytes]:
    """`content` after up to four edits, and now and then bytes that have nothing to do with it.

    Args:
        content: a good file.
        words: bytes with a meaning in its format.
    """
    pieces = st.sampled_from([*words, *_ODD]) | st.binary(max_size=16)
    edit = st.one_of(
        st.tuples(st.just("replace"), _PLACES, st.integers(0, 16), pieces),
        st.tuples(st.just("insert"), _PLACES, st.just(0), pieces),
        st.tuples(st.just("remove"), _PLACES, _LENGTHS, st.just(b"")),
        st.tuples(st.just("repeat"), _PLACES, _LENGTHS, st.just(b"")),
        st.tuples(st.just("cut"), _PLACES, st.just(0), st.just(b"")),
    )
    edited = st.lists(edit, min_size=1, max_size=4).map(lambda edits: _edited(content, edits))
    return st.one_of(edited, edited, edited, st.binary(max_size=200))


def one_damaged(files: dict[str, bytes], words: Sequence[bytes] = ()) -> st.SearchStrategy[dict]:
    """The files of a folder by their names, of which one is damaged."""
    return st.sampled_from(sorted(files)).flatmap(
        lambda name: damaged(files[name], words).map(lambda content: {**files, name: content})
    )


def _edited(content: bytes, edits: Sequence[tuple[str, int, int, bytes]]) -> bytes:
    for what, place, length, piece in edits:
        place %= len(content) + 1
        end = place + length
        if what == "cut":
            content = content[:place]
        elif what == "repeat":
            content = content[:end] + content[place:end] * 3 + content[end:]
        else:
            content = content[:place] + piece + content[end:]
    return content
