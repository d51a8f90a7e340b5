"""The first updates of a fine-tuning compared with transformers', with the same random choices.

    python -m benchmarks.quality.same_updates --checkpoint FOLDER --data DATA --glue GLUE \
        --squad SQUAD
    python -m benchmarks.quality.same_updates … --tasks SST-2 --updates 936

FOLDER is a Hugging Face checkpoint, DATA holds wnut17, GLUE holds SST-2 and CoLA, SQUAD holds SQuAD
split by article. The two sides of the quality table have the same head, and differ by the draws of
dropout and by the order of the rows. Here both have the same draws and the same batches; everything
else is as in the table. A warm-up takes a tenth of all updates: 94 of 936 on SST-2, 80 of 801 on
CoLA, 64 of 636 on WNUT-17 and 38 of 378 on SQuAD. After all of them both are scored on the dev
data. On SQuAD transformers also learns that no answer is in the padding, which ours never computes;
here its loss leaves the padding out. Needs the extra `bench`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np

from benchmarks.arguments import existing
from benchmarks.loss_curve import fit, report_losses, report_weights
from benchmarks.quality.drawn_dropout import DrawnDropout, draw_in_ours
from benchmarks.quality.tasks import QualityTask, tasks
from bert_tf.checkpoints import reading
from bert_tf.cli import command
from bert_tf.config.reading import load_config
from bert_tf.data.batching import training_batches
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.optimization import make_optimizer
from bert_tf.runs import setup
from bert_tf.runs.scoring import score
from bert_tf.tasks import registry
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.token_classification.model import IGNORED
from bert_tf.text import Tokenizer


def main() -> int:
    """Prints losses and the largest differences; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.quality.same_updates", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=existing, help="holds wnut17")
    parser.add_argument("--glue", type=existing, help="holds SST-2 and CoLA")
    parser.add_argument("--squad", type=existing, help="SQuAD split by article")
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="some lines of the table")
    parser.add_argument("--updates", type=int, default=100)
    return command.run("same_updates", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    given = {
        "WNUT-17": arguments.data,
        "SST-2": arguments.glue,
        "CoLA": arguments.glue,
        "SQuAD by article": arguments.squad,
    }
    folders = (arguments.data, arguments.glue, arguments.squad)
    lines = tasks(*((folder or Path()).resolve() for folder in folders))
    known = [name for name, folder in given.items() if folder]
    unknown = [name for name in arguments.tasks or () if name not in known]
    if unknown or not known:
        raise UserError(
            f"which lines? of --tasks {', '.join(given)}, those are compared whose folder is "
            "given by --data, --glue or --squad"
        )
    for name in arguments.tasks or known:
        _compare(name, lines[name], arguments.checkpoint, arguments.updates)


def _compare(name: str, line: QualityTask, checkpoint: Path, updates: int) -> None:
    """Prints the comparison for a line of the table."""
    import torch
    import transformers

    from benchmarks.quality import huggingface

    run = load_config(line.config, line.overrides(str(checkpoint), seed=0, folder=line.folder))
    task = registry.family(run.task).task_class()(run)
    rows, tokenizer = task.training_rows(), Tokenizer.from_checkpoint(checkpoint)
    ours = task.model(Encoder(reading.find(checkpoint).encoder), tokenizer)
    examples = ours.examples(rows)
    total = setup.total_updates(run.train, len(examples.lengths) // run.train.batch_size)
    updates = min(updates, total)
    batches = training_batches(
        examples,
        run.train.batch_size,
        run.train.seed,
        start=0,
        group_by_length=run.train.group_by_length,
    )
    transformers.set_seed(0)
    transformers.utils.logging.disable_progress_bar()
    classes = {"num_labels": len(task.labels)} if task.labels else {}
    # The faster attention draws its dropout where this script cannot replace it.
    peer = huggingface.FAMILIES[run.task].model_class.from_pretrained(
        checkpoint, **classes, attn_implementation="eager"
    )
    if run.task == "question_answering":
        _leave_out_padding(peer)

    def for_torch(dropout: DrawnDropout) -> Iterator[dict[str, torch.Tensor]]:
        for inputs, labels in batches.take(updates).as_numpy_iterator():
            batch = {
                "input_ids": inputs["input_word_ids"],
                "attention_mask": inputs["input_mask"],
                "token_type_ids": inputs["input_type_ids"],
            }
            batch |= _peers_labels(labels, huggingface.Tagging.IGNORED)
            dropout.begin(inputs["input_mask"])
            yield {name: torch.tensor(values).long() for name, values in batch.items()}

    with tempfile.TemporaryDirectory() as folder:
        start, end = Path(folder, "start"), Path(folder, "end")
        peer.save_pretrained(start)
        model = _filled(start, ours)
        draw_in_ours(model)
        task.compile(model, optimizer=make_optimizer(run.train, total))
        losses = fit(model, batches, updates)
        dropout = DrawnDropout(model)
        with mock.patch("torch.nn.functional.dropout", dropout):
            theirs = list(
                huggingface.updates(peer, for_torch(dropout), total, run.train.learning_rate)
            )
        peer.save_pretrained(end)
        peers = _filled(end, ours)
        report_losses(f"{name}, {checkpoint}", losses, theirs)
        report_weights(model, _filled(start, ours), peers)
        if updates == total:
            dev = {ending: task.read(path) for ending, path in task.files("dev").items()}
            found, expected = (score(task, each, dev)[line.metric] for each in (model, peers))
            print(f"{line.metric} on dev: {found:.4f}, the peer's {expected:.4f}")


def _leave_out_padding(peer: Any) -> None:
    """Has a span classifier of transformers compute its loss over the real tokens alone."""
    from torch.nn.functional import cross_entropy

    whole = peer.forward

    def forward(attention_mask: Any, **given: Any) -> Any:
        targets = [given.pop(f"{name}_positions") for name in ("start", "end")]
        output = whole(attention_mask=attention_mask, **given)
        scores = (output.start_logits, output.end_logits)
        real = [each.masked_fill(attention_mask == 0, PADDING_SCORE) for each in scores]
        output.loss = sum(map(cross_entropy, real, targets)) / 2
        return output

    peer.forward = forward


def _peers_labels(
    labels: np.ndarray | Mapping[str, np.ndarray], ignored: int
) -> dict[str, np.ndarray]:
    """Our labels by the names that transformers' models take; `ignored` marks no label."""
    if isinstance(labels, Mapping):
        return {f"{name}_positions": places for name, places in labels.items()}
    return {"labels": np.where(labels == IGNORED, ignored, labels)}


def _filled(folder: Path, like: TaskModel) -> TaskModel:
    """A model like ours, with the weights and the dropout rates of a checkpoint."""
    # Checkpoints for tags have no pooler, as tags need none: draw the same random one every time.
    keras.utils.set_random_seed(0)
    checkpoint = reading.find(folder)
    model = like.rebuilt(Encoder(checkpoint.encoder))
    checkpoint.fill(model)
    return model


if __name__ == "__main__":
    sys.exit(main())
