"""Docstrings show small inputs with their outputs, and the outputs are right."""

import re
from pathlib import Path

import pytest

from tests import doctests

_ABSTRACT = "an abstract base; its subclasses have examples"
_RUN = "reads and writes whole runs, which the how-to guides show"
_RECORD = "a record, which the function that makes it shows"
# Documented names that need no example, and why.
EXCEPTIONS = {
    "bert_tf.FinetuningData": _RECORD,
    "bert_tf.FinetuningRun": _RECORD,
    "bert_tf.HubLayer": "needs a SavedModel; docs/how_to/checkpoints.md shows it",
    "bert_tf.Place": _RECORD,
    "bert_tf.Target": _ABSTRACT,
    "bert_tf.Task": _ABSTRACT,
    "bert_tf.asking.session.SessionModel": "needs an export; docs/how_to/serving.md shows it",
    "bert_tf.checkpoints.checkpoint.Checkpoint": _RECORD,
    "bert_tf.checkpoints.conversion.save": "docs/how_to/checkpoints.md shows it",
    "bert_tf.config.distillation.DistillationLosses": _RECORD,
    "bert_tf.config.reading.load_config": _RUN,
    "bert_tf.experiments.report.report": _RUN,
    "bert_tf.export.run.export_run": _RUN,
    "bert_tf.interpret.data_quality.check": _RUN,
    "bert_tf.interpret.pictures.Pictures": _RECORD,
    "bert_tf.optimization.BertOptimizer": _ABSTRACT,
    "bert_tf.register": "changes the registry for all that follows; `TaskFamily` shows it",
    "bert_tf.report.curves.read_curves": _RUN,
    "bert_tf.retrieval.collection.Collection": _RECORD,
    "bert_tf.runs.adapting.adapt": _RUN,
    "bert_tf.runs.evaluate": _RUN,
    "bert_tf.runs.extending.extend": _RUN,
    "bert_tf.runs.finetune": _RUN,
    "bert_tf.runs.pretrain": _RUN,
    "bert_tf.tasks.embedding.losses.EmbeddingLoss": _ABSTRACT,
}


@pytest.mark.parametrize("path", doctests.with_examples(), ids=doctests.module_name)
def test_examples_are_right(path, tmp_path):
    doctests.check(path, tmp_path)


@pytest.mark.parametrize("name", doctests.documented())
def test_documented_functions_and_classes_have_an_example(name):
    assert doctests.has_example(name) != (name in EXCEPTIONS)


def test_an_argument_with_stars_has_a_line_of_its_own():
    # Sphinx would take the stars for bold text, and `make docs` fails.
    sources = (Path(__file__).parents[2] / "bert_tf").rglob("*.py")
    shared = re.compile(r"^ +\w+(, \w+)*, \*\*\w+: ", re.MULTILINE)
    assert not [path for path in sources if shared.search(path.read_text(encoding="utf-8"))]
