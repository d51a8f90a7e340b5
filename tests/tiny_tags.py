"""Tagged sentences of the tiny language: animals and places are entities."""

import random
from pathlib import Path

from tests import tiny

# Words that begin an entity, and the one that goes on with it.
ANIMALS, ANIMAL_GOES_ON = ("cat", "dog"), "bird"
PLACES, PLACE_GOES_ON = ("sea", "tree"), "log"
LABELS = ["O", "B-animal", "I-animal", "B-place", "I-place"]


def write_tagged(folder: Path, sentences: dict[str, int] | None = None) -> Path:
    """Writes train.conll, dev.conll and test.conll, three sentences a document."""
    source = random.Random(2)
    for split, count in (sentences or {"train": 48, "dev": 9, "test": 5}).items():
        lines = []
        for number in range(count):
            lines += [] if number % 3 else ["-DOCSTART- O\n\n"]
            for _ in range(source.randint(2, 4)):
                lines.append(f"{source.choice(('the', 'good', 'ran'))} O\n")
                kind, words, goes_on = source.choice(
                    [("animal", ANIMALS, ANIMAL_GOES_ON), ("place", PLACES, PLACE_GOES_ON)]
                )
                lines.append(f"{source.choice(words)} B-{kind}\n")
                lines += [f"{goes_on} I-{kind}\n"] * source.randint(0, 2)
            lines.append(". O\n\n")
        (folder / f"{split}.conll").write_text("".join(lines))
    return folder


def write_tagging(folder: Path) -> Path:
    """Writes a configuration that trains a tagger in seconds, with its data and vocabulary."""
    tiny.write_vocabulary(folder)
    write_tagged(folder)
    path = folder / "tagging.yaml"
    path.write_text(
        "task: token_classification\n"
        "data: {path: ., format: conll}\n"
        "tokenizer: {vocab: vocab.txt}\n" + tiny.MODEL + "train: {epochs: 8, batch_size: 8,"
        " max_length: 24, learning_rate: 0.01, eval_steps: 100}\n"
    )
    return path
