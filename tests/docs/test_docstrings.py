"""Docstrings show small inputs with their outputs, and the outputs are right."""

import pytest

from tests import doctests

# Files that need no examples, since `bert-tf` uses what they hold on whole runs.
FILES = {
    "__init__.py": "the record of a family and its configuration",
    "config.py": "fields of configurations, which docs/reference/configuration.md shows",
    "pictures.py": "pictures on a page that `bert-tf inspect` writes for a trained model",
    "run.py": "the files that `bert-tf finetune` reads and writes for a configuration",
}
_CONFIGURED = "takes the configuration of a pre-training; docs/how_to/pretraining.md shows it"
_TFDS = "needs a data set of TensorFlow Datasets"
_BEAM = "needs Apache Beam"
_LOADING = "a step of `load` and `TaskModel.from_checkpoint`"
_FITTING = "a method of every task model, whose class has an example"
_PART = "a part of a task model, whose class has an example"
_BASE = "an abstract base; its subclasses have examples"
_FILLING = "a step of `MaskedLM`, which has an example"
# Public functions and classes that need no example, and why.
EXCEPTIONS = {
    "data.columns.Column": _BASE,
    "data.columns.Target": _BASE,
    "data.corpora.beam_shards.build": _BEAM,
    "data.corpora.beam_shards.run": _BEAM,
    "data.corpora.pretraining_data.build": _CONFIGURED,
    "data.corpora.pretraining_data.open_corpus": _CONFIGURED,
    "data.corpora.pretraining_data.open_data": _CONFIGURED,
    "data.corpora.pretraining_data.open_shards": _CONFIGURED,
    "data.corpora.pretraining_data.say_counts": "logs counts",
    "data.corpora.pretraining_data.shards_folder": _CONFIGURED,
    "data.corpora.corpus.AnyCorpus": _BASE,
    "data.corpora.corpus.TfdsCorpus": _TFDS,
    "data.records.writing.write_records": _CONFIGURED,
    "data.tfds.load_split": _TFDS,
    "data.tfds.read_rows": _TFDS,
    "data.tfds.tfds": _TFDS,
    "data.tfds.tfds_builder": _TFDS,
    "tasks.embedding.losses.EmbeddingLoss": _BASE,
    "tasks.fitting.calibrate": _FITTING,
    "tasks.fitting.calibrate_on": _FITTING,
    "tasks.fitting.check_not_compiled": _FITTING,
    "tasks.fitting.check_ready": _FITTING,
    "tasks.fitting.encoded_dataset": _FITTING,
    "tasks.fitting.evaluate": _FITTING,
    "tasks.fitting.fit": _FITTING,
    "tasks.fitting.official_metrics": _FITTING,
    "tasks.fitting.scored": _FITTING,
    "tasks.fitting.validation_rows": _FITTING,
    "tasks.fitting.with_intervals": _FITTING,
    "tasks.uncertainty.bootstrap": _PART,
    "tasks.inputs.columns_may_follow": _FITTING,
    "tasks.inputs.takes_two": _FITTING,
    "tasks.task_model.Network": _BASE,
    "tasks.task_model.asked_columns": _PART,
    "tasks.task_model.head_dropout": _PART,
    "tasks.task_model.of_columns": _PART,
    "tasks.task_model.of_ids": _PART,
    "tasks.long_texts.outputs": _PART,
    "tasks.long_texts.pooled": _PART,
    "tasks.long_texts.reader": _PART,
    "tasks.long_texts.set_up": _PART,
    "tasks.long_texts.settings_of": _PART,
    "tasks.long_texts.split": _PART,
    "tasks.masked_lm.filling.best_pieces": _FILLING,
    "tasks.masked_lm.filling.device_form": _FILLING,
    "tasks.from_checkpoint.built": _LOADING,
    "tasks.from_checkpoint.check_head": _LOADING,
    "tasks.from_checkpoint.model_from": _LOADING,
    "tasks.from_checkpoint.lacks_pooler": _LOADING,
    "tasks.loading.load_model": _LOADING,
    "tasks.from_checkpoint.origin_of": _LOADING,
    "tasks.from_checkpoint.length_read": _LOADING,
    "tasks.from_checkpoint.say": _LOADING,
    "tasks.from_checkpoint.trained_with": _LOADING,
    "tasks.masked_lm.filling.GapFiller": "a part of `MaskedLM`, whose `predict` shows it",
    "tasks.question_answering.squad.read_tfds": _TFDS,
    "tasks.registry.register": "changes the registry for all that follows; `TaskFamily` shows it",
    "tasks.reranking.losses.RankingLoss": _BASE,
    "tasks.task.Task": _BASE,
    "tasks.texts.groups.GroupModel": _BASE,
    "tasks.texts.groups.one_by_one": _PART,
    "tasks.texts.text_files.read_tfds": _TFDS,
    "text.windows.TextWindows": "what `TextReader` returns, whose example shows it",
    "tasks.token_classification.tagged_sentences.read_tfds_tags": _TFDS,
}


@pytest.mark.parametrize("path", doctests.with_examples(), ids=doctests.module_name)
def test_examples_are_right(path, tmp_path):
    doctests.check(path, tmp_path)


@pytest.mark.parametrize("package", ["text", "data", "tasks"])
def test_public_functions_and_classes_have_an_example(package):
    # A class that only holds fields is shown by the function that makes it.
    without = {
        name
        for path, name, node in doctests.definitions(package)
        if path.name not in FILES
        and not doctests.is_record(node)
        and not doctests.has_example(node)
    }
    exceptions = {name for name in EXCEPTIONS if name.startswith(f"{package}.")}
    assert not without - exceptions, "without an example"
    assert not exceptions - without, "exceptions that are not needed"
