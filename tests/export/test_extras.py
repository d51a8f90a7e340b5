"""What an export has besides the graph: warm-up requests, card, fingerprint, version folders."""

import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model.fingerprinting_utils import write_fingerprint
from tensorflow_serving.apis import prediction_log_pb2

from bert_tf import TextClassifier
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.export.saving import save_hub, save_model
from bert_tf.io.json_files import as_json
from bert_tf.templates import TEMPLATES
from tests.export.conftest import cases


def folders(exported, family, settings):
    folder = exported(family, **settings)
    return [file.parent for file in sorted(folder.rglob("saved_model.pb"))]


def warmed_up(folder) -> dict[str, dict[str, tf.Tensor]]:
    """The warm-up requests of a server: signature -> inputs."""
    found = {}
    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert request.model_spec.signature_name not in found
        found[request.model_spec.signature_name] = {
            name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()
        }
    return found


@pytest.mark.parametrize(("family", "settings"), cases(("classification", {}), ("nsp", {})))
def test_every_signature_is_warmed_up_and_answers_what_the_card_says(
    exported, opened, family, settings
):
    for folder in folders(exported, family, settings):
        signatures = opened(folder).signatures
        requests = warmed_up(folder)
        card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
        assert requests.keys() == signatures.keys() == card["signatures"].keys()
        for name, inputs in requests.items():
            specs = signatures[name].structured_input_signature[1]
            assert inputs.keys() == specs.keys()
            for key, value in inputs.items():
                assert value.dtype == specs[key].dtype
                assert specs[key].shape.is_compatible_with(value.shape)
            told = card["signatures"][name]
            asked = {key: as_json(each.numpy()) for key, each in inputs.items()}
            assert asked == told["example"]["inputs"]
            answers = signatures[name](**inputs)
            assert answers.keys() == told["outputs"].keys() == told["example"]["outputs"].keys()
            for key, value in answers.items():
                said = told["example"]["outputs"][key]
                assert (value.dtype.name, list(value.shape)) == (
                    told["outputs"][key],
                    said["shape"],
                )
                shown = value.numpy()[tuple(slice(8) for _ in value.shape)]
                if value.dtype == tf.float32:
                    np.testing.assert_allclose(said["values"], shown, rtol=1e-5, atol=1e-6)
                else:
                    assert said["values"] == as_json(shown)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("classification", {}),
        pytest.param("classification", {"precision": "bfloat16"}, marks=pytest.mark.bfloat16),
        pytest.param("hub", {}, marks=pytest.mark.slow),
    ],
)
def test_the_card_reads_the_same_for_people(exported, family, settings):
    for folder in folders(exported, family, settings):
        card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
        text = (folder / "assets.extra" / "model_card.md").read_text()
        assert card["versions"].keys() >= {"bert_tf", "tensorflow", "tensorflow_text"}
        for name, version in card["versions"].items():
            assert f'"{name}": "{version}"' in text
        for name, signature in card["signatures"].items():
            assert f"## Signature `{name}`" in text
            for key, value in signature["example"]["inputs"].items():
                assert f"{json.dumps(key)}: {json.dumps(value)}" in text
        assert all(f"`{label}`" in text for label in card["labels"])
        is_for_cpu = card["model"].get("device") == "CPU"
        assert ("fastest with: " in text) == is_for_cpu
        # In float32 fixed weights gain nothing and take memory.
        assert ("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1" in text) == bool(settings)


@pytest.mark.end_to_end
def test_odd_labels_do_nothing_to_pages_and_terminals(models, tokenizer, tmp_path, capsys):
    odd = ["`x`<script>|[a](b)", "esc\x1b[2J", "turn\u202eed", "</code>\x9b"]
    model = TextClassifier(models("classification").encoder, tokenizer, odd)
    model.export(tmp_path / "model")
    extra = tmp_path / "model" / "assets.extra"
    assert json.loads((extra / "model_card.json").read_text())["labels"] == odd
    (line,) = [x for x in (extra / "model_card.md").read_text().split("\n") if "- labels" in x]
    assert line == (
        r"- labels: `\u0060x\u0060\u003cscript\u003e\u007c\u005ba\u005d(b)`, `esc\u001b[2J`, "
        r"`turn\u202eed`, `\u003c/code\u003e\u009b`"
    ).replace("[2J", r"\u005b2J")
    assert len((tmp_path / "model" / "assets" / "labels.txt").read_text().split("\n")) == 5

    capsys.readouterr()
    assert main(["predict", str(tmp_path / "model"), "the cat"]) == 0
    answer = capsys.readouterr().out
    assert json.loads(answer)["classes"] == odd
    model.save_checkpoint(tmp_path / "checkpoint")
    TextClassifier.from_checkpoint(tmp_path / "checkpoint", labels=[*"abcd"])
    said = answer + capsys.readouterr().err + (extra / "model_card.md").read_text()
    said += (extra / "model_card.json").read_text()
    assert "esc" in said and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    page = TEMPLATES.from_string("{{ label }}")
    assert [page.render(label=each) for each in odd[:3]] == [
        "`x`&lt;script&gt;|[a](b)",
        r"esc\u001b[2J",
        r"turn\u202eed",
    ]


def test_the_fingerprint_is_of_the_files_that_are_there(exported, tmp_path):
    """The graph of a frozen model is changed after TensorFlow has written it."""
    copy = tmp_path / "copy"
    shutil.copytree(exported("classification", freeze=True), copy)
    told = tf.saved_model.experimental.read_fingerprint(str(copy))
    write_fingerprint(str(copy))

    assert tf.saved_model.experimental.read_fingerprint(str(copy)) == told


@pytest.mark.slow
def test_a_pair_of_a_version_is_in_one_folder(models, tokenizer, tmp_path):
    folder = save_hub(models("hub"), tokenizer, tmp_path / "pair", version=3)
    assert folder == tmp_path / "pair"
    for part in ("preprocessor", "encoder"):
        assert (folder / part / "3" / "saved_model.pb").is_file()


@pytest.mark.slow
def test_a_version_is_a_folder_of_its_own(models, tmp_path):
    out = tmp_path / "served"
    (out / "1").mkdir(parents=True)
    folder = save_model(models("nsp"), out, version=12)
    assert folder == out / "12" and (folder / "saved_model.pb").is_file()
    assert sorted(path.name for path in out.iterdir()) == ["1", "12"]
    with pytest.raises(UserError, match="exists already; remove it or choose another"):
        save_model(models("nsp"), out, version=1)
    whole = save_model(models("nsp"), tmp_path / "whole")
    with pytest.raises(UserError, match="whole is an export without versions; choose another"):
        save_model(models("nsp"), whole, version=2)
    with pytest.raises(UserError, match="version must be at least 1, got 0"):
        save_model(models("nsp"), out, version=0)
