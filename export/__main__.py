"""`python -m export RUN --out DIR`: the SavedModel of a run."""

import argparse
import sys
from collections.abc import Sequence

from bert_tf.command import Parser, run
from bert_tf.quiet import check_backend

_EXAMPLES = """\
examples:
  python -m export runs/reviews --out saved_models/reviews
  python -m export runs/reviews --out saved_models/reviews --version 2
  python -m export runs/reviews --out saved_models/fast --freeze --precision bfloat16
  python -m export runs/pretraining --out saved_models/fill --kind mlm
  python -m export bert-base-uncased --out saved_models/vectors --kind embedding --pooling mean
  python -m export bert-base-uncased --out saved_models/hub --kind hub"""


def main(argv: Sequence[str] | None = None) -> int:
    """Exports one run; returns the exit code, see `bert_tf.command`."""

    def work(arguments: argparse.Namespace) -> None:
        check_backend()
        from export.run import export_run

        export_run(arguments.run, **{k: v for k, v in vars(arguments).items() if k != "run"})

    return run("export", _parser(), argv, work, "stopped; nothing was written")


def _parser() -> Parser:
    parser = Parser(
        prog="python -m export",
        description="Write a SavedModel that takes strings and returns answers.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        help="a run folder, or a checkpoint of any format; what only a run tells of its inputs is "
        "assumed of others, and said",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to write")
    parser.add_argument(
        "--kind",
        choices=("task", "hub", "mlm", "nsp", "embedding"),
        default="task",
        help="what is served: the task of a fine-tuning (the default); the encoder and its "
        "preprocessor as TF Hub has them; the masked language model; next sentences; vectors",
    )
    parser.add_argument(
        "--pooling",
        choices=("cls", "mean", "pooled"),
        help="what the vector of a text is: the last layer at [CLS], its mean over the text (the "
        "default), or the pooler's output",
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        default="float32",
        help="what it computes in (%(default)s)",
    )
    parser.add_argument(
        "--freeze", action="store_true", help="make the weights constants, in that precision"
    )
    parser.add_argument(
        "--version",
        metavar="N",
        type=int,
        help="write DIR/N (of hub: DIR/preprocessor/N and DIR/encoder/N), for TensorFlow Serving",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
