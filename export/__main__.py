"""`python -m export SRC --out DIR`: the same as `bert-tf export`."""

import sys
from collections.abc import Sequence

from bert_tf.cli import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exports one model; returns the exit code, see `bert_tf.cli.command`."""
    return parser.main(["export", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
