"""Fingerprints of data differ if the data differ, and for no other reason."""

import dataclasses

import numpy as np
import pytest

from bert_tf.config.reading import load_config
from bert_tf.data.batching import EncodedRows, TrainingRows
from bert_tf.runs import fingerprint as module
from bert_tf.runs.fingerprint import fingerprint, of_corpus, of_files, of_sizes
from bert_tf.tasks.texts.glue import mrpc_sources
from tests import tiny


def windows():
    """Three rows of 2, 3 and 2 tokens."""
    ids = np.arange(5, 12, dtype=np.int32)
    encoded = EncodedRows(ids, np.zeros(7, np.int32), np.array([0, 2, 5, 7]))
    starts, ends = np.array([[1, 0, 1], [1, 2, 1]], np.int32)
    return TrainingRows(encoded, {"start": starts, "end": ends})


def learning(rows, **targets):
    return dataclasses.replace(rows, targets=rows.targets | targets)


def test_the_same_rows_have_the_same_fingerprint():
    assert fingerprint(windows()) == fingerprint(windows())
    assert len(fingerprint(windows())) == 16


def changed(rows, **encoded):
    return dataclasses.replace(rows, encoded=dataclasses.replace(rows.encoded, **encoded))


@pytest.mark.parametrize(
    "other",
    [
        lambda rows: changed(rows, word_ids=rows.encoded.word_ids[::-1]),
        lambda rows: changed(rows, type_ids=rows.encoded.type_ids + 1),
        lambda rows: changed(rows, starts=np.array([0, 3, 5, 7])),
        lambda rows: changed(rows, starts=np.array([0, 2, 5])),
        lambda rows: learning(rows, start=rows.targets["start"] + 1),
        lambda rows: learning(rows, end=rows.targets["end"][::-1] + 1),
    ],
)
def test_other_tokens_segments_rows_or_targets_have_another(other):
    assert fingerprint(other(windows())) != fingerprint(windows())


def test_all_rows_count_however_many_there_are(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2)
    ids = windows().encoded.word_ids.copy()
    ids[-1] += 1

    assert fingerprint(changed(windows(), word_ids=ids)) != fingerprint(windows())


def test_files_are_identified_by_their_content_alone(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("text")
    two.write_text("text")
    assert of_files([one]) == of_files([two]) != of_files([one, two])
    before = of_files([one])
    one.write_text("next")
    assert of_files([one]) != before
    # A path without a file is identified by its name.
    assert of_files([tmp_path / "train"]) != of_files([tmp_path / "validation"])


@pytest.mark.parametrize("changed", ["msr_paraphrase_train.txt", "dev_ids.tsv"])
def test_what_mrpc_is_made_of_counts_where_its_files_are_not_there(tmp_path, changed):
    paths = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    for name in ("msr_paraphrase_train.txt", "dev_ids.tsv"):
        (tmp_path / name).write_text(name)
    before = [of_files(mrpc_sources(path)) for path in paths]
    (tmp_path / changed).write_text("other pairs")
    after = [of_files(mrpc_sources(path)) for path in paths]
    assert before[0] != after[0] and before[1] != after[1]
    # GLUE's own files take precedence.
    paths[0].write_text("pairs")
    assert of_files(mrpc_sources(paths[0])) not in (before[0], after[0])


def test_large_files_are_identified_by_their_names_and_sizes(tmp_path):
    for folder, name, text in (("a", "one", "text"), ("b", "one", "next"), ("c", "two", "text")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    of = {folder: of_sizes((tmp_path / folder).iterdir()) for folder in "abc"}
    assert of["a"] == of["b"] != of["c"]
    (tmp_path / "a" / "one").write_text("longer")
    assert of_sizes((tmp_path / "a").iterdir()) != of["a"]


def test_a_corpus_of_tfds_is_identified_by_its_split(tmp_path):
    from tests.data.prepared_tfds import prepare

    folder = prepare(tmp_path / "tiny", [{"text": "cat sat."}] * 4, (4,))
    path, tokenizer = tiny.write_pretraining(tmp_path), tiny.tokenizer()

    def of(split):
        settings = [f"data.path={folder}", "data.format=tfds", f"data.split={split}"]
        return of_corpus(load_config(path, settings), tokenizer)

    assert of("train") == of("train") != of("train[:50%]")
