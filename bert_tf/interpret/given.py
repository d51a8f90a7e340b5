"""The texts to look at, as the command line has them: columns of texts become rows."""

from collections.abc import Iterable, Mapping, Sequence

from bert_tf.asking.row_files import Row
from bert_tf.errors import UserError


def rows_of(columns: Mapping[str, Sequence[str] | Sequence[Sequence[str]] | None]) -> list[Row]:
    """A row for the first of every column, one for the second, and so on.

    Args:
        columns: texts, or lists of texts, by the name of the model's input; None where there is no
            such column.

    Raises:
        UserError: columns of different length.
    """
    given = {name: values for name, values in columns.items() if values is not None}
    counts = {name: len(values) for name, values in given.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of {option(name)}" for name, count in counts.items())
        raise UserError(f"each option must be given as often as the others, but there are {found}")
    rows = zip(*given.values(), strict=True)
    return [_readable(dict(zip(given, row, strict=True))) for row in rows]


def check_rows(rows: Iterable[Row], accepted: Sequence[tuple[str, ...]], path: str) -> None:
    """Raises UserError where a row is not what a model takes, or a text of it is empty.

    Args:
        rows: the rows.
        accepted: the names of the inputs of a row; several where there is a choice.
        path: of the model.
    """
    for number, row in enumerate(rows, start=1):
        if not any(set(row) == set(names) for names in accepted):
            ways = " or ".join(" and ".join(map(option, names)) for names in accepted)
            there = " and ".join(map(option, row))
            raise UserError(f"{path} takes {ways}, not {there}; see bert-tf inspect --help")
        for name, value in row.items():
            texts = [value] if isinstance(value, str) else value
            if not all(text.strip() for text in texts):
                raise UserError(f"{option(name)}: text {number} is empty")
            if name == "choices" and len(texts) < 2:
                raise UserError(f"{option(name)}: text {number} has one choice; give two or more")


def option(name: str) -> str:
    """The option of the command line that gives an input."""
    return f"--{name.replace('_', '-')}"


def _readable(row: Row) -> Row:
    """What the command line gives of bytes that are not UTF-8, replaced."""

    def mended(text: str) -> str:
        return text.encode("utf-8", "replace").decode("utf-8")

    return {
        name: mended(value) if isinstance(value, str) else [mended(text) for text in value]
        for name, value in row.items()
    }
