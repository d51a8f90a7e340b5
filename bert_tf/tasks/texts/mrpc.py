"""MRPC in either distribution: GLUE's files, or Microsoft's, from which GLUE's script makes them.

Microsoft's msr_paraphrase_train.txt holds the pairs of both train.tsv and dev.tsv. GLUE's list
dev_ids.tsv names the pairs of dev.tsv. Microsoft's msr_paraphrase_test.txt is GLUE's test.tsv with
labels.
"""

from collections.abc import Iterator
from pathlib import Path

from bert_tf.data.tables import read_tsv
from bert_tf.errors import UserError

TRAIN, TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
_DEV_IDS = ("dev_ids.tsv", "mrpc_dev_ids.tsv")
# The columns that name the two texts of a pair.
_IDS = slice(1, 3)


def read_mrpc(path: Path) -> Iterator[tuple[int, list[str]]]:
    r"""The fields of every line, including the header, with the line's number.

    >>> _ = Path("test.tsv").write_text("index\t#1 String\n0\tHe slept.\n")
    >>> list(read_mrpc(Path("test.tsv")))
    [(1, ['index', '#1 String']), (2, ['0', 'He slept.'])]

    Args:
        path: a file, or train.tsv or dev.tsv that is not there, in a folder where Microsoft's is.

    Raises:
        UserError: there is no such file, or no list of the dev pairs.
    """
    original, *lists = made_of(path)
    if original == path:
        return read_tsv(path)
    return _part(original, lists, is_dev=path.name == "dev.tsv")


def made_of(path: Path) -> list[Path]:
    """The files that `read_mrpc` reads for `path`: itself, or Microsoft's and the list of ids.

    >>> Path("MRPC").mkdir()
    >>> for name in (TRAIN, "dev_ids.tsv"):
    ...     Path("MRPC", name).touch()
    >>> [str(path) for path in made_of(Path("MRPC/train.tsv"))]
    ['MRPC/msr_paraphrase_train.txt', 'MRPC/dev_ids.tsv']
    """
    original = path.with_name(TRAIN)
    if path.is_file() or path.name not in ("train.tsv", "dev.tsv") or not original.is_file():
        return [path]
    lists = [path.with_name(name) for name in _DEV_IDS]
    return [original, *[each for each in lists if each.is_file()][:1]]


def _part(original: Path, lists: list[Path], is_dev: bool) -> Iterator[tuple[int, list[str]]]:
    if not lists:
        raise UserError(
            f"{original} holds both the training and the dev pairs of GLUE; put {_DEV_IDS[0]}, "
            f"the list of the dev pairs, next to it, or set data.train to {TRAIN} and data.dev to "
            f"{TEST}"
        )
    dev = {tuple(fields[:2]) for _, fields in read_tsv(lists[0])}
    for number, (line, fields) in enumerate(read_tsv(original)):
        if number == 0 or (tuple(fields[_IDS]) in dev) == is_dev:
            yield line, fields
