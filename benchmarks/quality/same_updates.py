"""The first updates of a fine-tuning beside transformers', with all that chance decides the same.

    python -m benchmarks.quality.same_updates --checkpoint FOLDER --data DATA --glue GLUE
    python -m benchmarks.quality.same_updates … --updates 600 --dropout

FOLDER is a Hugging Face checkpoint, DATA holds wnut17, GLUE holds CoLA. Two runs of the quality
table differ by dropout, by the order of the rows and by the weights of a new head. Here there is no
dropout, and both sides have the same batches and the same head; the rest is the table's WNUT-17,
and CoLA where there is GLUE. The warm-up is over after 64 updates on the one, and 80 on the other.
With `--dropout` both keep it, losses differ by chance, and the mean difference is told. Needs the
extra `bench`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import keras
import numpy as np

from benchmarks.arguments import existing
from benchmarks.loss_curve import fit, report_losses, report_weights
from benchmarks.quality.tasks import QualityTask, tasks
from bert_tf import command, config
from bert_tf.checkpoints import reading
from bert_tf.checkpoints.tokenizer import read_tokenizer
from bert_tf.data.batching import training_batches
from bert_tf.models.token_classifier import IGNORED
from bert_tf.tasks import TASKS
from bert_tf.training import setup


def main() -> int:
    """Prints losses and the largest differences; returns the exit code, see `bert_tf.command`."""
    parser = command.module_parser("benchmarks.quality.same_updates", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=existing, required=True, help="holds wnut17")
    parser.add_argument("--glue", type=existing, help="holds CoLA")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--dropout", action="store_true", help="with dropout, on both sides")
    return command.run("same_updates", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    lines = tasks(arguments.data.resolve(), (arguments.glue or Path()).resolve(), Path())
    for name in ("WNUT-17", "CoLA") if arguments.glue else ("WNUT-17",):
        _compare(name, lines[name], arguments.checkpoint, arguments.updates, arguments.dropout)


def _compare(name: str, line: QualityTask, checkpoint: Path, updates: int, dropout: bool) -> None:
    """Prints what there is to be told of a line of the table."""
    import torch
    import transformers

    from benchmarks.quality import huggingface

    run = config.load(line.config, line.overrides(str(checkpoint), seed=0, folder=line.folder))
    task = TASKS[run.task](run, read_tokenizer(checkpoint))
    examples = task.train_examples()
    total = round(run.train.epochs * len(examples.lengths) / run.train.batch_size)
    batches = training_batches(
        examples,
        run.train.batch_size,
        run.train.seed,
        start=0,
        group_by_length=run.train.group_by_length,
    )
    transformers.set_seed(0)
    transformers.utils.logging.disable_progress_bar()
    names = () if dropout else ("hidden_dropout_prob", "attention_probs_dropout_prob")
    peer = huggingface.FAMILIES[run.task].model_class.from_pretrained(
        checkpoint, num_labels=len(task.labels), **dict.fromkeys(names, 0.0)
    )

    def for_torch() -> Iterator[dict[str, torch.Tensor]]:
        for inputs, labels in batches.take(updates).as_numpy_iterator():
            labels = np.where(labels == IGNORED, huggingface.Tagging.IGNORED, labels)
            yield {
                "input_ids": torch.tensor(inputs["input_word_ids"]),
                "attention_mask": torch.tensor(inputs["input_mask"]),
                "token_type_ids": torch.tensor(inputs["input_type_ids"]),
                "labels": torch.tensor(labels).long(),
            }

    with tempfile.TemporaryDirectory() as folder:
        start, end = Path(folder, "start"), Path(folder, "end")
        peer.save_pretrained(start)
        optimizer = setup.make_optimizer(run.train, total)
        theirs = list(huggingface.updates(peer, for_torch(), total, run.train.learning_rate))
        peer.save_pretrained(end)
        model = _filled(start)
        task.compile(model, optimizer=optimizer)
        ours = fit(model, batches, updates)
        if dropout:
            _report_difference(name, ours, theirs)
            return
        report_losses(f"{name}, {checkpoint}", ours, theirs)
        report_weights(model, _filled(start), _filled(end))


def _report_difference(name: str, ours: Sequence[float], theirs: Sequence[float]) -> None:
    """Prints the mean losses and their difference, with its standard error."""
    difference = np.subtract(ours, theirs)
    error = difference.std(ddof=1) / len(difference) ** 0.5
    print(
        f"{name}, mean loss of {len(difference)} updates: ours {np.mean(ours):.4f}, the peer's "
        f"{np.mean(theirs):.4f}, difference {difference.mean():+.4f} ± {error:.4f}"
    )


def _filled(folder: Path) -> keras.Model:
    """Our model with the weights of a checkpoint, and with dropout where that has it."""
    # The pooler, which tags need not, is in no such checkpoint: the same random one every time.
    keras.utils.set_random_seed(0)
    checkpoint = reading.find(folder)
    model = checkpoint.description.build()
    checkpoint.fill(model)
    return model


if __name__ == "__main__":
    sys.exit(main())
