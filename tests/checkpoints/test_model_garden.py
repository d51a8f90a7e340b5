"""Model Garden's checkpoints and TF Hub's encoders, read and written.

The fixtures are of `tests/fixtures/make_model_garden_tiny.py`.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import conversion, model_garden_classes, reading
from bert_tf.cli.parser import main
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

HUB = tiny.FIXTURES / "tf_hub_tiny"
EXPECTED = dict(np.load(tiny.FIXTURES / "model_garden_tiny_encoder" / "expected.npz"))


def test_an_encoder_of_tf_hub_brings_its_vocabulary_and_casing():
    found = Tokenizer.from_checkpoint(HUB)

    assert (found.vocabulary, found.lower_case) == (tiny.PIECES, True)


def test_the_graph_of_an_encoder_of_tf_hub_tells_the_form_of_gelu(tmp_path):
    from tensorflow.core.protobuf import saved_model_pb2

    assert reading.find(HUB).encoder.hidden_act == "gelu_new"

    tiny.copied("tf_hub_tiny", tmp_path)
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((tmp_path / "saved_model.pb").read_bytes())
    saved.meta_graphs[0].graph_def.library.function[0].node_def.add(name="erf", op="Erf")
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    assert reading.find(tmp_path).encoder.hidden_act == "gelu"


def test_a_saved_model_of_something_else_is_told_in_one_line(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable([1.0])
    tf.saved_model.save(module, tmp_path)

    told = "contains no BERT encoder with the names of Model Garden"
    tiny.refused(told, reading.find, tmp_path)


def test_two_encoders_in_one_checkpoint_are_refused(tmp_path):
    def tower():
        return tf.train.Checkpoint(table=tf.Variable([[1.0]], name="word_embeddings/embeddings"))

    both = tf.train.Checkpoint(question=tower(), answer=tower())
    both.write(str(tmp_path / "towers"))

    told = "contains word_embeddings/embeddings twice, as .*single encoder"
    tiny.refused(told, reading.find, tmp_path)


def test_a_configuration_of_another_checkpoint_is_noticed(tmp_path):
    tiny.copied("model_garden_tiny_encoder", tmp_path)
    (tmp_path / "bert_config.json").write_text('{"hidden_size": 768}')

    told = "hidden_size is 768, but the checkpoint next to it has 8"
    tiny.refused(told, reading.find, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BertEncoder", "BertEncoderV2"])
@pytest.mark.parametrize("key", ["encoder", "model"])
def test_model_garden_restores_what_is_written(tmp_path, name, key):
    networks = pytest.importorskip("official.nlp.modeling.networks")
    ours = tiny.make("encoder", hidden_act="gelu_new")
    conversion.save(ours, tmp_path / "out", "model_garden")

    theirs = _their_encoder(getattr(networks, name))
    tf.train.Checkpoint(**{key: theirs}).restore(
        str(tmp_path / "out" / "bert_model.ckpt")
    ).assert_existing_objects_matched()

    inputs = {name: EXPECTED[name] for name in tiny.INPUTS}
    found = theirs(tiny.inputs_of(inputs))
    expected = {name: found[name].numpy() for name in ("sequence_output", "pooled_output")}
    assert tiny.difference(ours, inputs | expected) < tiny.TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
@pytest.mark.parametrize(
    "kind", ["encoder", "pretrainer", "masked_lm", "classifier", "regressor", "span", "tokens"]
)
def test_the_command_verifies_what_it_wrote(tmp_path, capsys, kind, activation):
    pytest.importorskip("official.nlp.modeling")
    conversion.save(tiny.make(kind, hidden_act=activation), tmp_path / "ours", "bert_tf")
    out = tmp_path / "out"

    command = ["convert", str(tmp_path / "ours"), str(out), "--to", "model_garden", "--verify"]
    assert main(command) == 0
    said = rf"Model Garden opens {out}; the outputs differ by at most (\S+)\n"
    found = re.fullmatch(said, capsys.readouterr().out)
    assert float(found[1]) < tiny.TOLERANCE


@pytest.mark.slow
def test_a_model_that_differs_is_not_verified(tmp_path):
    pytest.importorskip("official.nlp.modeling")
    conversion.save(tiny.make("classifier"), tmp_path / "out", "model_garden")
    model, _ = tiny.load(tmp_path / "out")
    model.weights[-1].assign(model.weights[-1] + 1.0)
    description = reading.find(tmp_path / "out").description

    difference = model_garden_classes.verify(tmp_path / "out", description, model)
    assert difference > 100 * model_garden_classes.TOLERANCE


def test_verifying_is_for_model_garden(tmp_path, capsys):
    source = str(tiny.FIXTURES / "google_tiny_squad")
    assert main(["convert", source, str(tmp_path / "out"), "--to", "tf1", "--verify"]) == 2
    assert capsys.readouterr().err == (
        "bert-tf: error: --verify requires --to model_garden; remove --verify\n"
    )
    assert not (tmp_path / "out").exists()


def _their_encoder(kind):
    encoder = kind(
        vocab_size=len(tiny.PIECES),
        hidden_size=8,
        num_layers=2,
        num_attention_heads=2,
        inner_dim=12,
        max_sequence_length=7,
        type_vocab_size=2,
        dict_outputs=True,
    )
    encoder(encoder.inputs)
    return encoder
