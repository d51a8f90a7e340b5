"""A tiny language for tests: a vocabulary, a corpus and labelled texts made of its words."""

import functools
import random
from pathlib import Path
from typing import Any

from bert_tf.encoder.config import EncoderConfig
from bert_tf.text import Tokenizer

WORDS = "the a cat dog bird fish sat ran flew swam on under over mat log tree sea good bad".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "##s", *WORDS]
# Settings that make an encoder's training independent of random draws.
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@functools.cache
def tokenizer(lower_case: bool = True) -> Tokenizer:
    """The tokenizer of the tiny language, one for all tests of a process: it is traced once."""
    return Tokenizer(VOCABULARY, lower_case)


def encoder_config(hidden_size: int = 8, **changes: Any) -> EncoderConfig:
    """A small encoder of the tiny language; its weights are large, so that outputs differ."""
    sizes = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": hidden_size,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 2 * hidden_size,
        "max_position_embeddings": 32,
        "initializer_range": 0.5,
    }
    return EncoderConfig(**sizes | changes)


def write_vocabulary(folder: Path) -> Path:
    """Writes `vocab.txt`."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n")
    return path


def sentence(source: random.Random, words: int) -> str:
    """A sentence of random words."""
    return " ".join(source.choices(WORDS, k=words)) + " ."


def write_corpus(folder: Path, documents: int = 12) -> Path:
    """Writes `corpus.txt`, one sentence a line and a blank line between documents."""
    source = random.Random(0)
    path = folder / "corpus.txt"
    path.write_text(
        "\n\n".join(
            "\n".join(sentence(source, source.randint(3, 8)) for _ in range(8))
            for _ in range(documents)
        )
        + "\n"
    )
    return path


def write_labelled(folder: Path, rows: dict[str, int] | None = None) -> Path:
    """Writes train.tsv, dev.tsv and test.tsv; a text is good if it says "cat" before all else."""
    source = random.Random(1)
    for split, count in (rows or {"train": 32, "dev": 9, "test": 5}).items():
        lines = ["text\tlabel"]
        for i in range(count):
            label = ("bad", "good")[i % 2]
            first = {"good": "cat", "bad": "dog"}[label]
            lines.append(f"{first} {sentence(source, source.randint(2, 9))}\t{label}")
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


MODEL = """\
model:
  {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 32,
   initializer_range: 0.1, hidden_dropout_prob: 0.0}
"""


def write_pretraining(folder: Path) -> Path:
    """Writes a configuration that pre-trains in a second, with its corpus and vocabulary."""
    write_vocabulary(folder)
    write_corpus(folder)
    path = folder / "pretraining.yaml"
    path.write_text(
        "task: pretraining\n"
        "data: {path: corpus.txt, format: sentence_per_line, dev_fraction: 0.3}\n"
        "tokenizer: {vocab: vocab.txt}\n" + MODEL + "train: {steps: 6, batch_size: 4,"
        " max_length: 24, learning_rate: 0.01, checkpoint_steps: 3}\n"
    )
    return path


def write_finetuning(folder: Path) -> Path:
    """Writes a configuration that fine-tunes in a second, with its data and vocabulary."""
    write_vocabulary(folder)
    write_labelled(folder)
    path = folder / "finetuning.yaml"
    path.write_text(
        "task: classification\n"
        "data: {path: ., format: tsv}\n"
        "tokenizer: {vocab: vocab.txt}\n" + MODEL + "train: {epochs: 8, batch_size: 8,"
        " max_length: 24, learning_rate: 0.003, checkpoint_steps: 20}\n"
    )
    return path
