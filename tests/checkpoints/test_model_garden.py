"""Model Garden's checkpoints and TF Hub's encoders, read and written.

The fixtures are of `tests/fixtures/make_model_garden_tiny.py`.
"""

import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import UserError
from bert_tf.checkpoints import conversion, model_garden_classes, reading
from bert_tf.cli.parser import main
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

HEADS = {
    "encoder": "Encoder",
    "pretrainer": "PreTrainer",
    "classifier": "TextClassifier",
    "span": "QuestionAnswerer",
    "tokens": "TokenClassifier",
}
NOTES = {
    "pretrainer": ("the pooler of the head replaces that of the encoder",),
    "classifier": ("84 variables of the optimizer skipped",),
}
HUB = tiny.FIXTURES / "tf_hub_tiny"


def folder_of(name):
    return tiny.FIXTURES / f"model_garden_tiny_{name}"


def logits(model, expected):
    inputs = tiny.inputs_of(expected)
    if type(model).__name__ == "Encoder":
        return {}
    if type(model).__name__ == "PreTrainer":
        positions = np.tile(np.arange(7, dtype=np.int32), (2, 1))
        return model(inputs | {"masked_lm_positions": tf.constant(positions)})
    found = model(inputs)
    return found if isinstance(found, dict) else {"logits": found}


def head_differences(model, expected):
    differences = {}
    for key, value in logits(model, expected).items():
        mask = expected["input_mask"] if value.shape[:2] == (2, 7) else np.ones(1)
        mask = mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim))
        differences[key] = np.abs((value - expected[key]) * mask).max()
    return differences


@pytest.mark.parametrize("name", HEADS)
def test_every_model_is_read_and_computes_the_same(name):
    expected = dict(np.load(folder_of(name) / "expected.npz"))
    model, report = tiny.load(folder_of(name))

    assert type(model).__name__ == HEADS[name]
    assert (report.new, report.ignored) == ((), ())
    assert report.notes == NOTES.get(name, ())
    if name == "pretrainer":
        # Its head has a pooler of its own, which is trained; the encoder's is not.
        expected.pop("pooled_output")
    differences = tiny.encoder_differences(model, expected) | head_differences(model, expected)
    assert max(differences.values()) < tiny.TOLERANCE, differences


def test_an_encoder_of_tf_hub_is_read_and_computes_the_same():
    expected = dict(np.load(HUB / "expected.npz"))
    model, report = tiny.load(HUB)

    assert (report.new, report.ignored) == ((), ())
    differences = tiny.encoder_differences(model, expected) | head_differences(model, expected)
    assert max(differences.values()) < tiny.TOLERANCE, differences


def test_an_encoder_of_tf_hub_brings_its_vocabulary_and_casing():
    found = Tokenizer.from_checkpoint(HUB)

    assert (found.vocabulary, found.lower_case) == (tiny.PIECES, True)


def test_the_graph_of_an_encoder_of_tf_hub_tells_the_form_of_gelu(tmp_path):
    from tensorflow.core.protobuf import saved_model_pb2

    assert reading.find(HUB).encoder.hidden_act == "gelu_new"

    shutil.copytree(HUB, tmp_path, dirs_exist_ok=True)
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((tmp_path / "saved_model.pb").read_bytes())
    saved.meta_graphs[0].graph_def.library.function[0].node_def.add(name="erf", op="Erf")
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    assert reading.find(tmp_path).encoder.hidden_act == "gelu"


def test_a_saved_model_of_something_else_is_told_in_one_line(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable([1.0])
    tf.saved_model.save(module, tmp_path)

    with pytest.raises(UserError, match="contains no BERT encoder with the names of Model Garden"):
        reading.find(tmp_path)


def test_two_encoders_in_one_checkpoint_are_refused(tmp_path):
    def tower():
        return tf.train.Checkpoint(table=tf.Variable([[1.0]], name="word_embeddings/embeddings"))

    both = tf.train.Checkpoint(question=tower(), answer=tower())
    both.write(str(tmp_path / "towers"))

    with pytest.raises(
        UserError, match="contains word_embeddings/embeddings twice, as .*single encoder"
    ):
        reading.find(tmp_path)


def test_a_configuration_of_another_checkpoint_is_noticed(tmp_path):
    shutil.copytree(folder_of("encoder"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "bert_config.json").write_text('{"hidden_size": 768}')

    with pytest.raises(UserError, match="hidden_size is 768, but the checkpoint next to it has 8"):
        reading.find(tmp_path)


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

    expected = dict(np.load(folder_of("encoder") / "expected.npz"))
    found = theirs(tiny.inputs_of(expected))
    expected |= {name: found[name].numpy() for name in ("sequence_output", "pooled_output")}
    assert max(tiny.encoder_differences(ours, expected).values()) < tiny.TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pretrainer", "classifier", "span", "tokens"])
def test_model_gardens_task_models_restore_what_is_written(tmp_path, kind):
    models = pytest.importorskip("official.nlp.modeling.models")
    layers = pytest.importorskip("official.nlp.modeling.layers")
    networks = pytest.importorskip("official.nlp.modeling.networks")
    import tf_keras

    ours = tiny.make(kind, hidden_act="gelu_new")
    conversion.save(ours, tmp_path / "out", "model_garden")
    encoder = _their_encoder(networks.BertEncoderV2)
    positions = np.tile(np.arange(7, dtype=np.int32), (2, 1))
    if kind == "pretrainer":
        head = layers.ClassificationHead(8, 2, name="next_sentence")
        theirs = models.BertPretrainerV2(
            encoder,
            mlm_activation=lambda x: tf_keras.activations.gelu(x, approximate=True),
            classification_heads=[head],
        )
        theirs(theirs.inputs)
        items = theirs.checkpoint_items | {"model": theirs}
    else:
        theirs = {
            "classifier": lambda: models.BertClassifier(encoder, 3),
            "span": lambda: models.BertSpanLabeler(encoder),
            "tokens": lambda: models.BertTokenClassifier(encoder, 3),
        }[kind]()
        items = {"model": theirs}
    tf.train.Checkpoint(**items).restore(
        str(tmp_path / "out" / "bert_model.ckpt")
    ).assert_existing_objects_matched()

    expected = dict(np.load(folder_of("encoder") / "expected.npz"))
    inputs = tiny.inputs_of(expected)
    found = theirs(inputs | ({"masked_lm_positions": positions} if kind == "pretrainer" else {}))
    expected |= {
        "pretrainer": lambda: {
            "masked_lm": found["mlm_logits"].numpy(),
            "next_sentence": found["next_sentence"].numpy(),
        },
        "classifier": lambda: {"logits": found.numpy()},
        "span": lambda: {"start": found[0].numpy(), "end": found[1].numpy()},
        "tokens": lambda: {"logits": found["logits"].numpy()},
    }[kind]()
    assert max(head_differences(ours, expected).values()) < tiny.TOLERANCE


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
