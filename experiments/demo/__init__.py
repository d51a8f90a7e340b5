"""`bert-tf demo`: the whole way, from raw text to a SavedModel that answers strings.

The text is on every machine: the documentation strings of the standard library and of the
installed packages. The model predicts which library a passage is from.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.console import logger, stages
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, write_text

VOCABULARY_SIZE = 4000
# The number of test passages that the finished model is asked about.
_ASKED = 4

# Small enough for minutes on two cores, large enough to show what pre-training brings. So short a
# training needs a stronger signal than the paper's: more masked tokens (40%, Wettig et al. 2023),
# larger initial weights, no dropout, a high learning rate. At first a model guesses no better than
# by how often words occur. It leaves this plateau when its attention finds the neighbours of a
# word: after about 600 steps with these short sequences and without next sentence prediction, after
# 1,500 with sequences of 64 tokens and next sentence prediction.
_PRETRAINING = """\
task: pretraining
data:
  path: data/prose.txt
  format: sentence_per_line
  dev_fraction: 0.02
  masked_lm_prob: 0.4
  next_sentence: false
tokenizer: {vocab: vocab.txt}
model:
  hidden_size: 128
  num_hidden_layers: 2
  num_attention_heads: 2
  initializer_range: 0.06
  hidden_dropout_prob: 0.0
  attention_probs_dropout_prob: 0.0
train:
  steps: 2400
  batch_size: 48
  max_length: 48
  learning_rate: 1e-3
  checkpoint_steps: 600
"""
_FINETUNING = """\
task: classification
data: {path: data, format: tsv}
tokenizer: {vocab: vocab.txt}
model:
  hidden_size: 128
  num_hidden_layers: 2
  num_attention_heads: 2
  initializer_range: 0.06
  # Without these two lines the dropout of the checkpoint would be used.
  hidden_dropout_prob: 0.1
  attention_probs_dropout_prob: 0.1
train:
  epochs: 4
  batch_size: 32
  max_length: 96
  learning_rate: 3e-4
"""
_INIT = "init: {checkpoint: pretraining}\n"
_FINETUNINGS = {
    "finetuning": "Fine-tuning it to predict the library of a passage",
    "from_scratch": "Fine-tuning the same network from random weights, without pre-training",
}
# The program that queries the SavedModel; it is written into the demo's folder.
_ASK = '''\
"""python ask.py SAVED_MODEL TEXT ... : needs only tensorflow and tensorflow_text."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](text=tf.constant(sys.argv[2:]))
for text, label, probabilities in zip(
    sys.argv[2:], answers["label"].numpy(), answers["probabilities"].numpy()
):
    print(f"{label.decode():>12}  {probabilities.max():4.0%}  {text[:80]}")
'''


def run(out: str | os.PathLike) -> None:
    """Runs the demo in the folder `out`; keeps the results of an earlier, interrupted demo.

    Raises:
        UserError: `out` cannot be written or holds a demo with other settings, the disk is full,
            or the libraries hold too little text.
    """
    began = time.monotonic()
    out = Path(out)
    # First of all, so that a folder that cannot be written is reported before the work.
    _write_settings(out)
    logger.info(
        f"This takes some minutes on two cores. Results are in {out}. If you stop it, the same "
        "command continues it."
    )
    data = _read_documentation(out / "data")
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
    texts, labels = (column[:_ASKED] for column in _columns(out / "data" / "test.tsv"))
    # This process answers while the export for phones goes on.
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
    logger.info(f"{answers}The right answers: {', '.join(labels)}")
    accuracies = {
        "always the same library": data["splits"]["test"]["majority_share"],
        "without pre-training": float(accuracy_score(*_answers(out, "from_scratch"))),
        "with pre-training": float(accuracy_score(*_answers(out, "finetuning"))),
    }
    _draw(out, accuracies)
    inspect(out / "finetuning", [{"text": text} for text in texts], out / "inspect.html")
    summary.show(out, accuracies, pretrained, time.monotonic() - began)


def _write_settings(out: Path) -> None:
    settings = {
        "pretraining.yaml": _PRETRAINING,
        "finetuning.yaml": _FINETUNING + _INIT,
        "from_scratch.yaml": _FINETUNING,
    }
    for name, text in settings.items():
        if (out / name).is_file() and (out / name).read_text(encoding="utf-8") != text:
            raise UserError(
                f"{out} holds a demo with another {name}, so its results cannot be continued; "
                "remove that folder, or choose another one with --out"
            )
    for name, text in (settings | {"ask.py": _ASK}).items():
        write_text(out / name, text)


def _read_documentation(folder: Path) -> dict:
    """Collects the documentation strings, or reads what an earlier demo wrote."""
    import json

    manifest = folder / "manifest.json"
    if manifest.exists():
        return json.loads(manifest.read_text(encoding="utf-8"))
    from bert_tf.experiments.demo import docstrings, passages

    _title("Reading the documentation strings of the installed libraries")
    with stages("files") as progress:
        found = docstrings.harvest(on_progress=lambda done, of: progress("reading", done, of))
    written = passages.write(passages.build(found), folder)
    prose = written["prose"]
    logger.info(f"{prose['words']:,} words of English in {prose['documents']:,} documents")
    return written


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
    """Starts a process that does not import bert_tf and asks the SavedModel about the texts."""
    # -P: nothing is imported from the folder of the script.
    command = [sys.executable, "-P", str(out / "ask.py"), str(out / "saved_model"), *texts]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)


def _answers(out: Path, name: str) -> tuple[list[str], list[str]]:
    """The right label of every test passage, and the one that a classifier gave it."""
    _, right = _columns(out / "data" / "test.tsv")
    _, given = _columns(out / name / "predictions" / "test.tsv")
    return right, given


def _columns(file: Path) -> tuple[list[str], list[str]]:
    """The first two columns of a table, without its header."""
    from bert_tf.data.tables import read_tsv

    rows = [row for _, row in read_tsv(file)][1:]
    return [row[0] for row in rows], [row[1] for row in rows]


def _draw(out: Path, accuracies: Mapping[str, float]) -> None:
    from bert_tf.experiments.demo import summary
    from bert_tf.report.curves import read_curves

    _title("Drawing the results")
    logs = out / "pretraining" / "logs"
    curves = {kind: read_curves(logs / kind) for kind in ("train", "dev")}
    try:
        drawn = summary.draw(accuracies, curves, *_answers(out, "finetuning"))
    except UserError as error:
        logger.warning(f"{out / 'demo.png'} is skipped: {error}")
        return
    with atomic_path(out / "demo.png", is_file=True) as new:
        new.write_bytes(drawn)
    logger.info(f"{out / 'demo.png'}: accuracies, pre-training and confusions")


def _title(text: str) -> None:
    logger.info(f"\n== {text}")
