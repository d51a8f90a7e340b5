"""The loss of pre-training, step by step, compared with Hugging Face's `BertForPreTraining`.

    python -m benchmarks.loss_curve                        # tiny and mini, 50 steps
    python -m benchmarks.loss_curve --corpus books/*.txt --learning-rate 1e-3 --steps 200

Both start from the same weights, made by the peer, and see the same batches, made by our pipeline;
dropout is off. The peer's optimizer is the one that BERT was published with (google-research/bert
`optimization.py`), written here in a few lines of PyTorch. Needs the extra `bench`.

The text is that of `--corpus`, one document a file, or else the documentation strings of the
installed libraries.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.arguments import existing
from bert_tf.checkpoints import names, reading
from bert_tf.cli import command
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.data.corpora.shard_data import ShardData
from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.experiments.demo import docstrings
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import AdamW, WarmupLinearDecay
from bert_tf.text import Tokenizer
from bert_tf.text.vocabulary_learning import learn_vocabulary

SIZES = ("tiny", "mini", "small", "medium", "base", "large")
VOCABULARY = 4000
SEQ_LEN, BATCH = 64, 16
WEIGHT_DECAY, CLIP_NORM = 0.01, 1.0
SHOWN_EVERY = 5


def main() -> int:
    """Prints a table of both losses for each size, and the largest difference of all steps.

    Returns:
        The exit code, see `bert_tf.cli.command`.
    """
    parser = command.module_parser("benchmarks.loss_curve", __doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "mini"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--corpus", nargs="+", type=existing, help="text files, one document each")
    return command.run("loss_curve", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    steps = arguments.steps
    schedule = WarmupLinearDecay(arguments.learning_rate, steps, warmup_steps=steps // 10)
    with tempfile.TemporaryDirectory() as folder:
        data = prepare(Path(folder), arguments.corpus)
        for size in arguments.sizes:
            config = EncoderConfig.preset(
                f"bert-{size}-uncased",
                vocab_size=len(data.vocabulary),
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
            start, end = Path(folder, size, "start"), Path(folder, size, "end")
            theirs = hugging_face(config, data, schedule, steps, start, end)
            model, losses = ours(config, data, schedule, steps, start)
            report_losses(f"{size}: batches of {BATCH} x {SEQ_LEN} tokens", losses, theirs)
            report_weights(model, filled(config, start), filled(config, end))


def prepare(folder: Path, corpus: Sequence[Path] | None) -> ShardData:
    """Token shards of the text, with a vocabulary learned from it."""
    if corpus is None:
        corpus = [folder / "corpus.txt"]
        passages = docstrings.harvest()
        documents = itertools.groupby(passages, key=lambda passage: passage.module)
        texts = ("\n".join(s for each in group for s in each.sentences) for _, group in documents)
        corpus[0].write_text("\n\n".join(texts), encoding="utf-8")
        documents = Corpus(corpus, "sentence_per_line")
    else:
        documents = Corpus(corpus, "document_per_file")
    learned = learn_vocabulary(corpus, VOCABULARY)
    write_token_shards(documents, Tokenizer(learned.pieces), folder / "tokens")
    return ShardData(folder / "tokens", BATCH, SEQ_LEN)


def ours(
    config: EncoderConfig,
    data: ShardData,
    schedule: WarmupLinearDecay,
    steps: int,
    start: Path,
) -> tuple[PreTrainer, list[float]]:
    """The model after `fit`, which begins at the peer's `start`, and the loss of every step."""
    model = filled(config, start)
    model.compile(AdamW(schedule, WEIGHT_DECAY, clip_norm=CLIP_NORM))
    return model, fit(model, data.dataset(), steps)


def fit(model: keras.Model, batches: tf.data.Dataset, steps: int) -> list[float]:
    """The loss of every step of `model.fit`."""
    losses = []

    def note(batch: int, logs: dict[str, float]) -> None:
        losses.append(float(logs["loss"]))
        model.reset_metrics()

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=note)
    model.fit(batches, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[callback])
    return losses


def filled(config: EncoderConfig, checkpoint: Path) -> PreTrainer:
    """Our model with the weights of a checkpoint."""
    model = PreTrainer(Encoder(config))
    reading.find(checkpoint).fill(model)
    return model


def hugging_face(
    config: EncoderConfig,
    data: ShardData,
    schedule: WarmupLinearDecay,
    steps: int,
    start: Path,
    end: Path,
) -> list[float]:
    """The loss of every step; writes the weights to `start` at first and to `end` at last."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    fields = {name: value for name, value in config.to_dict().items() if name != "attention"}
    model = transformers.BertForPreTraining(transformers.BertConfig(**fields))
    model.save_pretrained(start)
    optimizer = PublishedAdamW(model.named_parameters())
    losses = []
    for step, batch in enumerate(_batches(data, steps)):
        loss = _loss(model, {name: torch.tensor(value) for name, value in batch.items()})
        loss.backward()
        optimizer.step(float(schedule(tf.constant(step))))
        losses.append(loss.item())
    model.save_pretrained(end)
    return losses


class PublishedAdamW:
    """Adam without bias correction, with decoupled decay, after clipping by the global norm."""

    def __init__(self, parameters: Iterator[tuple[str, object]]):
        import torch

        self._entries = [
            (parameter, torch.zeros_like(parameter), torch.zeros_like(parameter), decays)
            for name, parameter in parameters
            for decays in [not name.endswith("bias") and "LayerNorm" not in name]
        ]

    def step(self, rate: float) -> None:
        """Moves every parameter at `rate`, and forgets its gradient."""
        import torch

        with torch.no_grad():
            squares = sum(parameter.grad.square().sum() for parameter, *_ in self._entries)
            shrink = CLIP_NORM / max(float(squares.sqrt()), CLIP_NORM)
            for parameter, momentum, velocity, decays in self._entries:
                gradient = parameter.grad * shrink
                momentum.mul_(0.9).add_(gradient, alpha=0.1)
                velocity.mul_(0.999).add_(gradient.square(), alpha=0.001)
                update = momentum / (velocity.sqrt() + 1e-6)
                if decays:
                    update += WEIGHT_DECAY * parameter
                parameter.sub_(update, alpha=rate)
                parameter.grad = None


def _loss(model: Any, batch: dict[str, Any]) -> Any:
    """The mean over the masked tokens, and the mean over the pairs, added."""
    import torch

    outputs = model.bert(
        batch["input_word_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["input_type_ids"],
    )
    places = batch["masked_lm_positions"].long()[..., None].expand(-1, -1, model.config.hidden_size)
    masked_lm, follows = model.cls(
        torch.gather(outputs.last_hidden_state, 1, places), outputs.pooler_output
    )
    weights = batch["masked_lm_weights"].flatten()
    losses = torch.nn.functional.cross_entropy(
        masked_lm.flatten(0, 1), batch["masked_lm_ids"].long().flatten(), reduction="none"
    )
    follows_loss = torch.nn.functional.cross_entropy(follows, batch["next_sentence_labels"].long())
    return (losses * weights).sum() / (weights.sum() + 1e-5) + follows_loss


def _batches(data: ShardData, steps: int) -> Iterator[dict[str, np.ndarray]]:
    """Inputs and targets of each step, in one dictionary."""
    for inputs, targets in data.dataset().take(steps).as_numpy_iterator():
        yield inputs | targets


def report_losses(title: str, ours: list[float], theirs: list[float]) -> None:
    """Prints some of the steps, and the largest difference of all."""
    print(f"\n{title}")
    print("step   bert_tf   Hugging Face   difference")
    rows = list(zip(range(1, len(ours) + 1), ours, theirs, strict=True))
    for step, our, their in rows:
        if step == 1 or step % SHOWN_EVERY == 0:
            print(f"{step:4}   {our:.5f}   {their:.5f}        {abs(our - their):.1e}")
    print(f"largest of all {len(rows)}: {max(abs(our - their) for _, our, their in rows):.1e}")


def report_weights(model: keras.Model, start: keras.Model, peer: keras.Model) -> None:
    """Prints how far the weights have come from `start`, and how far they end from the peer's."""
    before, after = names.weight_names(start), names.weight_names(peer)
    moved = apart = 0.0
    for name, weight in names.weight_names(model).items():
        moved = max(moved, float(np.abs(weight.numpy() - before[name].numpy()).max()))
        apart = max(apart, float(np.abs(weight.numpy() - after[name].numpy()).max()))
    print(f"weights moved by up to {moved:.2g} and end at most {apart:.1e} from the peer's")


if __name__ == "__main__":
    sys.exit(main())
