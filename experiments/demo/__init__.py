"""`bert-tf demo`: the whole way, from raw text to a SavedModel that answers strings.

The text is on every machine: the documentation strings of the standard library and of the
installed packages. The model predicts which library a passage is from.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.console import logger, stages
from bert_tf.errors import UserError
from bert_tf.experiments.demo import docstrings, passages
from bert_tf.io.atomic import atomic_path, write_text

VOCABULARY_SIZE = 4000
# The number of test passages that the finished model answers at the end.
_ASKED = 4
# The files that are copied into the demo's folder: configurations, and a program that queries the
# SavedModel.
_FILES = Path(__file__).parent
_CONFIGS, _PROGRAM = ("pretraining.yaml", "from_scratch.yaml", "finetuning.yaml"), "ask.py"

_FINETUNINGS = {
    "finetuning": "Fine-tuning it to predict the library of a passage",
    "from_scratch": "Fine-tuning the same network from random weights, without pre-training",
}


def run(out: str | os.PathLike) -> None:
    """Runs the demo in the folder `out`; keeps the results of an earlier, interrupted demo.

    Raises:
        UserError: `out` cannot be written or holds a demo with other settings, the disk is full,
            or the libraries hold too little text.
    """
    began = time.monotonic()
    out = Path(out)
    # First of all, so that a folder that cannot be written is reported before the work.
    _copy_files(out)
    logger.info(
        f"This takes some minutes on two cores. Results are in {out}. If you stop it, the same "
        "command continues it."
    )
    _read_documentation(out / "data")
    _learn_vocabulary(out)

    # TensorFlow starts here, after the work that does without it.
    from sklearn.metrics import accuracy_score

    from bert_tf import runs
    from bert_tf.config.reading import load_config_for
    from bert_tf.config.run import FinetuningRun, PretrainingRun
    from bert_tf.experiments.demo import summary
    from bert_tf.interpret import inspect

    _title("Pre-training BERT on this text")
    config = load_config_for("pretrain", PretrainingRun, out / "pretraining.yaml")
    pretrained = runs.pretrain(config, out / "pretraining")
    for name, title in _FINETUNINGS.items():
        _title(title)
        runs.finetune(load_config_for("finetune", FinetuningRun, out / f"{name}.yaml"), out / name)
    _export(out / "finetuning", out / "saved_model", "Exporting the classifier as a SavedModel")
    texts, right = _columns(out / "data" / "test.tsv")
    texts = texts[:_ASKED]
    # The new process answers while the export for phones goes on.
    asked = _ask(out, texts)
    _export(
        out / "finetuning",
        out / "model.tflite",
        "Exporting the classifier for phones, as a LiteRT file with weights of 8 bits",
        format="litert",
        precision="int8",
    )
    _title("Querying the SavedModel in a new process, with only tensorflow and tensorflow_text")
    answers, _ = asked.communicate()
    if asked.returncode:
        raise UserError(f"{out / 'ask.py'} failed; its output above says why")
    logger.info(f"{answers}The right answers: {', '.join(right[:_ASKED])}")
    _, from_scratch = _columns(out / "from_scratch" / "predictions" / "test.tsv")
    _, given = _columns(out / "finetuning" / "predictions" / "test.tsv")
    accuracies = {
        "always the same library": max(map(right.count, right)) / len(right),
        "without pre-training": float(accuracy_score(right, from_scratch)),
        "with pre-training": float(accuracy_score(right, given)),
    }
    _draw(out, accuracies, right, given)
    inspect(out / "finetuning", [{"text": text} for text in texts], out / "inspect.html")
    summary.show(out, accuracies, pretrained, time.monotonic() - began)


def _copy_files(out: Path) -> None:
    texts = {name: (_FILES / name).read_text(encoding="utf-8") for name in (*_CONFIGS, _PROGRAM)}
    for name in _CONFIGS:
        if (out / name).is_file() and (out / name).read_text(encoding="utf-8") != texts[name]:
            raise UserError(
                f"{out} holds a demo with another {name}, so its results cannot be continued; "
                "remove that folder, or choose another one with --out"
            )
    for name, text in texts.items():
        write_text(out / name, text)


def _read_documentation(folder: Path) -> None:
    """Makes the data of the documentation strings, unless an earlier demo did."""
    if (folder / passages.PROSE).exists():
        return
    _title("Reading the documentation strings of the installed libraries")
    with stages("files") as progress:
        found = docstrings.harvest(on_progress=lambda done, of: progress("reading", done, of))
    data = passages.build(found)
    passages.write(data, folder)
    words = sum(len(sentence.split()) for document in data.documents for sentence in document)
    logger.info(f"{words:,} words of English in {len(data.documents):,} documents")


def _learn_vocabulary(out: Path) -> None:
    if (out / "vocab.txt").exists():
        return
    from bert_tf.text.vocabulary_learning import coverage_report, learn_vocabulary

    _title(f"Learning a vocabulary of {VOCABULARY_SIZE:,} word pieces")
    with stages() as progress:
        learned = learn_vocabulary([out / "data" / "prose.txt"], VOCABULARY_SIZE, progress=progress)
    learned.write(out / "vocab.txt")
    logger.info(coverage_report(learned).rstrip())


def _export(run: Path, out: Path, title: str, **options: Any) -> None:
    """Exports the classifier, unless an earlier demo did."""
    if out.exists():
        return
    from bert_tf.export.run import export_run

    _title(title)
    export_run(run, out, **options)


def _ask(out: Path, texts: list[str]) -> subprocess.Popen:
    """Starts a process that queries the SavedModel with the texts and does not import bert_tf."""
    # -P: nothing is imported from the folder of the script.
    command = [sys.executable, "-P", str(out / "ask.py"), str(out / "saved_model"), *texts]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)


def _columns(file: Path) -> tuple[list[str], list[str]]:
    """The first two columns of a table, without its header."""
    from bert_tf.data.tables import read_tsv

    rows = [row for _, row in read_tsv(file)][1:]
    return [row[0] for row in rows], [row[1] for row in rows]


def _draw(
    out: Path, accuracies: Mapping[str, float], right: Sequence[str], given: Sequence[str]
) -> None:
    from bert_tf.experiments.demo import summary
    from bert_tf.report.curves import read_curves

    _title("Drawing the results")
    logs = out / "pretraining" / "logs"
    curves = {kind: read_curves(logs / kind) for kind in ("train", "dev")}
    try:
        drawn = summary.draw(accuracies, curves, right, given)
    except UserError as error:
        logger.warning(f"{out / 'demo.png'} is skipped: {error}")
        return
    with atomic_path(out / "demo.png", is_file=True) as new:
        new.write_bytes(drawn)
    logger.info(f"{out / 'demo.png'}: accuracies, pre-training and confusions")


def _title(text: str) -> None:
    logger.info(f"\n== {text}")
