"""The first updates of a fine-tuning beside transformers', with all that chance decides the same.

    python -m benchmarks.quality.same_updates --checkpoint FOLDER --data DATA --glue GLUE \
        --squad SQUAD
    python -m benchmarks.quality.same_updates … --updates 600 --dropout

FOLDER is a Hugging Face checkpoint, DATA holds wnut17, GLUE holds CoLA, SQUAD holds SQuAD split by
article. The two sides of the quality table have the same head, and differ by dropout and by the
order of the rows. Here there is no dropout either, and both have the same batches; the rest is the
table's WNUT-17, and CoLA and SQuAD where there is GLUE and SQUAD. The warm-up is over after 64
updates on the first, 80 on the second and 38 on the third. On SQuAD transformers also learns that
no answer is in the padding, which ours never computes; here it does not learn it. With `--dropout`
both keep it, losses differ by chance, and the mean difference is told. Needs the extra `bench`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from benchmarks.arguments import existing
from benchmarks.loss_curve import fit, report_losses, report_weights
from benchmarks.quality.tasks import QualityTask, tasks
from bert_tf import command, config
from bert_tf.checkpoints import reading
from bert_tf.checkpoints.tokenizer import read_tokenizer
from bert_tf.data.batching import training_batches
from bert_tf.models.padding import PADDING_SCORE
from bert_tf.models.token_classifier import IGNORED
from bert_tf.tasks import TASKS
from bert_tf.training import setup


def main() -> int:
    """Prints losses and the largest differences; returns the exit code, see `bert_tf.command`."""
    parser = command.module_parser("benchmarks.quality.same_updates", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, metavar="FOLDER")
    parser.add_argument("--data", type=existing, required=True, help="holds wnut17")
    parser.add_argument("--glue", type=existing, help="holds CoLA")
    parser.add_argument("--squad", type=existing, help="SQuAD split by article")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--dropout", action="store_true", help="with dropout, on both sides")
    return command.run("same_updates", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    given = {"WNUT-17": arguments.data, "CoLA": arguments.glue, "SQuAD by article": arguments.squad}
    lines = tasks(*((folder or Path()).resolve() for folder in given.values()))
    for name in (name for name, folder in given.items() if folder):
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
    classes = {"num_labels": len(task.labels)} if task.labels else {}
    peer = huggingface.FAMILIES[run.task].model_class.from_pretrained(
        checkpoint, **classes, **dict.fromkeys(names, 0.0)
    )
    if run.task == "question_answering":
        _leave_out_padding(peer)

    def for_torch() -> Iterator[dict[str, torch.Tensor]]:
        for inputs, labels in batches.take(updates).as_numpy_iterator():
            batch = {
                "input_ids": inputs["input_word_ids"],
                "attention_mask": inputs["input_mask"],
                "token_type_ids": inputs["input_type_ids"],
            }
            batch |= _peers_labels(labels, huggingface.Tagging.IGNORED)
            yield {name: torch.tensor(values).long() for name, values in batch.items()}

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
    """Ours by the names that transformers' models take, with their mark of what has no label."""
    if isinstance(labels, Mapping):
        return {f"{name}_positions": places for name, places in labels.items()}
    return {"labels": np.where(labels == IGNORED, ignored, labels)}


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
