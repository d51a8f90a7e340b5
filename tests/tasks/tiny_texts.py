"""Texts of the tiny language in the forms that classification and regression read."""

import random
from collections.abc import Iterable
from pathlib import Path

from tests import tiny


def pairs(count: int, seed: int = 0) -> list[tuple[str, str, bool]]:
    """Two texts each, and whether the first begins with a cat."""
    source = random.Random(seed)
    return [
        (f"{('dog', 'cat')[i % 2]} {tiny.sentence(source, 3)}", tiny.sentence(source, 2), i % 2 > 0)
        for i in range(count)
    ]


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Writes lines, and the folder they are in."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_config(folder: Path, task: str, data: str, epochs: int = 8) -> Path:
    """Writes a configuration that fine-tunes in seconds, and its vocabulary."""
    tiny.write_vocabulary(folder)
    return write_lines(
        folder / "config.yaml",
        [
            f"task: {task}",
            f"data: {{{data}}}",
            "tokenizer: {vocab: vocab.txt}",
            tiny.MODEL
            + f"train: {{epochs: {epochs}, batch_size: 8, max_length: 24, learning_rate: 0.003}}",
        ],
    )


def write_mnli(folder: Path) -> Path:
    """Writes GLUE's MNLI in small: train, both dev and test files, and the diagnostic sets."""
    words = {True: "entailment", False: "contradiction"}
    parses = "g\t-\t-\t-\t-"
    header = (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
        "sentence1_parse\tsentence2_parse\tsentence1\tsentence2"
    )
    for name, count in (("train", 32), ("dev_matched", 8), ("dev_mismatched", 6)):
        lines = [
            f"{i}\t1\t1e\t{parses}\t{a}\t{b}\tneutral\t{words[is_cat]}"
            for i, (a, b, is_cat) in enumerate(pairs(count, seed=count))
        ]
        write_lines(folder / f"{name}.tsv", [f"{header}\tlabel1\tgold_label", *lines])
    for name, count in (("test_matched", 3), ("test_mismatched", 2)):
        lines = [f"{i}\t1\t1e\t{parses}\t{a}\t{b}" for i, (a, b, _) in enumerate(pairs(count))]
        write_lines(folder / f"{name}.tsv", [header, *lines])
    lines = [f"{i}\t{a}\t{b}" for i, (a, b, _) in enumerate(pairs(4))]
    write_lines(folder / "diagnostic.tsv", ["index\tsentence1\tsentence2", *lines])
    lines = [f"\t\t\t\tNews\t{a}\t{b}\t{words[is_cat]}" for a, b, is_cat in pairs(4)]
    labelled = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\t"
    labelled += "Premise\tHypothesis\tLabel"
    write_lines(folder / "diagnostic-full.tsv", [labelled, *lines])
    return folder
