"""SavedModels run by TensorFlow's C library."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import UserError
from bert_tf.asking import predict, session
from bert_tf.asking.saved_model import SavedModel
from bert_tf.asking.session import SessionModel
from tests.export.conftest import tasks
from tests.export.requests import TEXTS, assert_same

# The last has no character.
TEXT = ["the cat sat", "", "a dog \N{SNOWMAN} x\0y", "a fish, " * 40]


def rows_for(ranks):
    """Four rows; lists have one or two texts."""
    lists = [TEXTS[:2], TEXTS[:1], TEXTS[1:3], TEXTS[2:3]]
    return [
        {name: texts if rank == 2 else text for name, rank in ranks.items()}
        for text, texts in zip(TEXT, lists, strict=True)
    ]


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", tasks("classification", "token_classification", "reranking"))
def test_it_answers_as_in_python(exported, opened, family):
    path = exported(family)
    model = SessionModel.load(path)
    same = SavedModel(str(path), opened(path), model.record)
    assert {*model.signature_names()} == {*same.signature_names()}
    for signature in same.signature_names():
        try:
            ranks = same.ranks(signature)
        except UserError as error:  # it takes numbers
            with pytest.raises(UserError) as refused:
                model.ranks(signature)
            assert str(refused.value) == str(error)
            continue
        assert model.ranks(signature) == ranks
        rows = rows_for(ranks)
        assert_same(model.ask(signature, rows), same.ask(signature, rows), tolerance=2e-6)


def test_unknown_signatures_are_named(exported):
    with pytest.raises(UserError, match="has no signature 'nothing'; the signatures are serving"):
        SessionModel.load(exported("classification")).ranks("nothing")


@pytest.mark.parametrize("file", ["saved_model.pb", "variables/variables.index"])
def test_damage_is_named(exported, tmp_path, file):
    folder = tmp_path / "damaged"
    for each in exported("classification").rglob("*"):
        target = folder / each.relative_to(exported("classification"))
        if each.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            content = each.read_bytes()
            target.write_bytes(content[: len(content) // 2] if target.name in file else content)
    with pytest.raises(UserError, match="SavedModel is damaged: .*; export it again"):
        SessionModel.load(folder)


class Plain(tf.Module):
    """A model of another program."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lengths(self, text):
        length = tf.strings.length(text)
        return {"half": tf.cast(length, tf.float16) / 2, "long": length > 3, "length": length}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def refusing(self, text):
        with tf.control_dependencies([tf.debugging.assert_equal(text, "a", "only a")]):
            return {"text": tf.identity(text)}


def test_models_of_other_programs_are_asked(tmp_path, capsys):
    model = Plain()
    signatures = {"serving_default": model.lengths, "refusing": model.refusing}
    tf.saved_model.save(model, str(tmp_path / "plain"), signatures)
    found = SessionModel.load(tmp_path / "plain").ask("serving_default", [{"text": "five!"}])
    expected = {"half": np.float16(2.5), "long": True, "length": np.int32(5)}
    assert_same(found, {name: np.array([value]) for name, value in expected.items()}, 0)

    predict.run(str(tmp_path / "plain"), ["five!"], None, None)
    assert json.loads(capsys.readouterr().out) == {"half": 2.5, "length": 5, "long": True}
    with pytest.raises(UserError, match="plain: .*only a"):
        predict.run(str(tmp_path / "plain"), ["b"], None, None, "refusing")


def test_without_the_library_python_answers(exported, monkeypatch, loads_once, capsys):
    asked = str(exported("classification")), ["the cat sat"], None, None
    predict.run(*asked)
    expected = json.loads(capsys.readouterr().out)
    monkeypatch.undo()
    monkeypatch.setattr(session, "c_library", lambda: None)
    predict.run(*asked)
    found = json.loads(capsys.readouterr().out)
    assert found.pop("probabilities") == pytest.approx(expected.pop("probabilities"), abs=2e-6)
    assert found == expected


def test_connections_can_be_encrypted_where_the_library_is_loaded():
    # The library has functions for TLS under the names of those that Python uses.
    code = "from bert_tf.asking.session import c_library; c_library(); "
    code += "import ssl; ssl.create_default_context()"
    subprocess.run([sys.executable, "-c", code], check=True)
