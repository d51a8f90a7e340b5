"""Lays a left-to-right and a right-to-left pre-training side by side, to be fine-tuned as one.

    python -m bert_tf.experiments.pretraining.side_by_side runs/left_to_right \\
        runs/right_to_left --out both
    bert-tf finetune glue/sst2 --out runs/sst2 --set init.checkpoint=both

Each token's vector is then the vectors of both, end to end, as in ELMo (paper, section 5.1).
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf.checkpoints import native, reading
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.description import ENCODER, Content
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli.command import option
from bert_tf.console import logger
from bert_tf.encoder.ablations import encoder_for
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import atomic_path


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the checkpoint; returns the exit code, see `bert_tf.cli.command`."""
    return program(
        "pretraining.side_by_side",
        __doc__,
        argv,
        join,
        option("left_to_right RUN", "a left-to-right pre-training", type=Path),
        option("right_to_left RUN", "a right-to-left pre-training", type=Path),
        option("--out DIR", "where to write", type=Path, required=True),
    )


def join(left_to_right: Path, right_to_left: Path, out: Path) -> None:
    """Writes the new folder `out`, in our format: an encoder without a pooler, and its vocabulary.

    Raises:
        UserError: one of the two is no checkpoint, goes the other way, or has another size or
            vocabulary; `out` exists.
    """
    left = _open(left_to_right, "left_to_right")
    right = _open(right_to_left, "right_to_left")
    for field, value in left.encoder.to_dict().items():
        other = getattr(right.encoder, field)
        if field != "attention" and value != other:
            raise UserError(
                f"{field} is {value} in {left_to_right}, and {other} in {right_to_left}; both "
                "must have the same configuration"
            )
    vocabulary = left.read_vocabulary()
    if vocabulary is None or vocabulary != right.read_vocabulary():
        raise UserError(
            f"{left_to_right} and {right_to_left} have different vocabularies; pre-train both with "
            "the same tokenizer.vocab"
        )
    if out.exists():
        raise UserError(f"{out} exists already; choose another place for the output")
    weights = {}
    for checkpoint, place in ((left, "encoder/"), (right, "encoder/right_to_left/")):
        # Neither pooler has read the joined vectors; a new one is learned with the task.
        half = encoder_for(checkpoint.encoder, with_pooler=False)
        checkpoint.fill(half)
        for name, variable in weight_names(half).items():
            weights[name.replace("encoder/", place, 1)] = variable.numpy()
    description = dataclasses.replace(
        left.description,
        model=ENCODER,
        head={},
        encoder=dataclasses.replace(left.encoder, attention="side_by_side"),
        labels=(),
    )
    with atomic_path(out) as new:
        new.mkdir()
        native.write_content(new, Content(weights, description, vocabulary))
    logger.info(f"{out}: {left_to_right} and {right_to_left}, {len(weights)} weights")


def _open(path: Path, way: str) -> Checkpoint:
    checkpoint = reading.find(path)
    if checkpoint.encoder.attention != way:
        raise UserError(f"{path} reads {checkpoint.encoder.attention}, where {way} is required")
    return checkpoint


if __name__ == "__main__":
    sys.exit(main())
