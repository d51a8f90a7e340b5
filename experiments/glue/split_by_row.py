"""Splits the training file of a GLUE task by row, for more held-out rows than its dev file has.

    python -m experiments.glue.split_by_row GLUE/SST-2/train.tsv --train 10000 --dev 20000 \
        --out more_held_out/SST-2

The first rows go to train.tsv and the next ones to dev.tsv, but for those that are also among the
first. Of SST-2's own dev file one row of 872 is 0.11 of the accuracy, and two trainings of the same
quality differ by several. The file's first line is its header; CoLA's, which has none, is not
for this.
"""

import argparse
import sys
from pathlib import Path

from bert_tf import command
from bert_tf.atomic import write_text
from bert_tf.errors import UserError
from bert_tf.files import read_text


def main() -> int:
    """Writes the two files; returns the exit code, see `bert_tf.command`."""

    def work(given: argparse.Namespace) -> None:
        split(given.file, given.train, given.dev, given.out)

    parser = command.module_parser("experiments.glue.split_by_row", __doc__)
    parser.add_argument("file", type=Path, help="an official file with a header")
    parser.add_argument("--train", type=int, required=True, metavar="N", help="rows to train on")
    parser.add_argument("--dev", type=int, required=True, metavar="N", help="rows to hold out")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    return command.run("split_by_row", parser, None, work, "stopped")


def split(path: Path, train: int, dev: int, out: Path) -> None:
    """Writes train.tsv with the first `train` rows of `path`, and dev.tsv with the `dev` after it.

    Raises:
        UserError: the file cannot be read, has too few rows, or would be written over.
    """
    if path.resolve() in {(out / f"{name}.tsv").resolve() for name in ("train", "dev")}:
        raise UserError(f"{path} would be written over; choose another --out")
    # Only these end a row: a text may hold other characters that Python takes for a line's end.
    header, *rows = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if train < 1 or dev < 1 or train + dev > len(rows):
        raise UserError(f"{path} has {len(rows)} rows; --train and --dev must be some of them each")
    first = set(rows[:train])
    held_out = [row for row in rows[train : train + dev] if row not in first]
    for name, chosen in (("train", rows[:train]), ("dev", held_out)):
        file = out / f"{name}.tsv"
        write_text(file, "\n".join([header, *chosen]) + "\n")
        print(f"{file}: {len(chosen):,} rows")


if __name__ == "__main__":
    sys.exit(main())
