"""`python -m export RUN --out DIR`: the SavedModel of a fine-tuning run."""

import argparse
import os
import sys
from collections.abc import Sequence

from bert_tf.errors import UserError
from bert_tf.progress import say
from bert_tf.quiet import check_backend


def main(argv: Sequence[str] | None = None) -> int:
    """Exports one run; returns the exit code, 2 after a mistake of the user's."""
    parser = argparse.ArgumentParser(
        prog="python -m export",
        description="Write a SavedModel that takes strings and returns answers.",
        epilog="example:\n  python -m export runs/reviews --out saved_models/reviews",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="a run folder of bert-tf finetune")
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to write")
    arguments = parser.parse_args(argv)
    try:
        check_backend()
        export_run(arguments.run, arguments.out)
    except UserError as error:
        print(f"export: error: {error}", file=sys.stderr)
        return 2
    return 0


def export_run(path: str | os.PathLike, out: str | os.PathLike) -> None:
    """Writes the SavedModel of the run folder `path` to `out`.

    Raises:
        UserError: `path` is not a run with a checkpoint, or `out` cannot be written.
    """
    import export
    from bert_tf.checkpoints import reading
    from bert_tf.training.run_folder import RunFolder
    from bert_tf.training.setup import make_tokenizer
    from export.save import service_of

    run = RunFolder.open(path)
    checkpoint = reading.find(path)
    model = checkpoint.description.build()
    checkpoint.fill(model)
    export.save(
        model,
        make_tokenizer(run),
        out,
        labels=checkpoint.description.labels,
        **service_of(type(model)).options_of(run.config),
    )
    say(f"{out}: ask it with  bert-tf predict {out} TEXT")


if __name__ == "__main__":
    sys.exit(main())
