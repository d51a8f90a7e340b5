"""Run folders of every task, with data of the tiny language and weights that were never trained."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.config.reading import load_config
from bert_tf.encoder.ablations import encoder_for
from bert_tf.runs.run_folder import RunFolder
from bert_tf.tasks import registry
from tests import tiny, tiny_questions, tiny_tags
from tests.tasks import tiny_texts


def regression(folder: Path) -> Path:
    source = random.Random(0)
    for split in ("train", "dev"):
        lines = [f"{a}\t{b}\t{source.uniform(0, 5):.2f}" for a, b, _ in tiny_texts.pairs(12)]
        tiny_texts.write_lines(folder / f"{split}.tsv", ["one\tother\tscore", *lines])
    data = "path: ., format: tsv, text_columns: [one, other], label_column: score"
    return tiny_texts.write_config(folder, "regression", data)


def choices(folder: Path) -> Path:
    source = random.Random(0)
    for split in ("train", "dev"):
        rows = (
            {
                "context": tiny.sentence(source, 3),
                "choices": [tiny.sentence(source, 2) for _ in range(3)],
                "label": source.randrange(3),
            }
            for _ in range(12)
        )
        tiny_texts.write_lines(folder / f"{split}.jsonl", map(json.dumps, rows))
    return tiny_texts.write_config(folder, "multiple_choice", "path: ., format: jsonl")


def ranking(folder: Path) -> Path:
    source = random.Random(0)
    for split in ("train", "dev"):
        rows = (
            {
                "query": tiny.sentence(source, 2),
                "passages": [tiny.sentence(source, 3) for _ in range(1 + row % 3)],
                "relevances": [source.randrange(3) for _ in range(1 + row % 3)],
            }
            for row in range(12)
        )
        tiny_texts.write_lines(folder / f"{split}.jsonl", map(json.dumps, rows))
    return tiny_texts.write_config(folder, "reranking", "path: ., format: jsonl")


def unanswerable(folder: Path) -> Path:
    return tiny_questions.write_finetuning(folder, unanswerable=True)


CONFIGS: dict[str, Callable[[Path], Path]] = {
    "classification": tiny.write_finetuning,
    "regression": regression,
    "token_classification": tiny_tags.write_tagging,
    "question_answering": tiny_questions.write_finetuning,
    "unanswerable": unanswerable,
    "multiple_choice": choices,
    "reranking": ranking,
}
LABELS = {"classification": ("bad", "good"), "token_classification": tiny_tags.LABELS}


def make_run(folder: Path, kind: str, **encoder: Any) -> Path:
    """A run folder of one of `CONFIGS`; its data are next to it."""
    keras.utils.set_random_seed(1)
    loaded = load_config(CONFIGS[kind](folder))
    run = RunFolder.start(folder / "run", loaded)
    tokenizer = tiny.tokenizer()
    task = registry.family(loaded.task).task_class()(loaded, LABELS.get(kind))
    model = task.model(encoder_for(tiny.encoder_config(**encoder)), tokenizer)
    conversion.save(model, step_folder(run.checkpoints, 1))
    return run.path
