"""SavedModels of TF Hub's form as layers of Keras 3: they train, and are saved with the model."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import HubLayer, UserError
from bert_tf.encoder.encoder import INPUTS

TEXTS = tf.constant(["the cats sat.", "a dog ran on !", "the cat", "dog"] * 4)
LABELS = np.array([0, 1] * 8)
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] . ! ##s the a cat dog sat ran on".split()


@pytest.fixture(scope="module")
def ours(exported):
    return exported("hub")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """What Model Garden's own exporter writes, as it did for TF Hub."""
    encoders = pytest.importorskip("official.nlp.configs.encoders")
    export_tfhub_lib = pytest.importorskip("official.nlp.tools.export_tfhub_lib")
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    config = encoders.EncoderConfig(type="bert")
    sizes = {"vocab_size": len(PIECES), "hidden_size": 8, "num_layers": 1}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 32}
    config.get().override(sizes)
    encoder = encoders.build_encoder(config)
    saved = tf.train.Checkpoint(model=encoder, encoder=encoder).save(str(folder / "checkpoint"))
    vocabulary = {"vocab_file": str(folder / "vocab.txt"), "do_lower_case": True}
    export_tfhub_lib.export_model(
        str(folder / "encoder"),
        encoder_config=config,
        model_checkpoint_path=saved,
        with_mlm=False,
        **vocabulary,
    )
    export_tfhub_lib.export_preprocessing(
        str(folder / "preprocessor"),
        **vocabulary,
        default_seq_length=16,
        tokenize_with_offsets=False,
    )
    return folder


@pytest.fixture(params=["ours", "theirs"])
def pair(request):
    return request.getfixturevalue(request.param)


def functional(pair):
    texts = keras.Input((), dtype="string")
    encoded = HubLayer(pair / "encoder")(HubLayer(pair / "preprocessor")(texts))
    model = keras.Model(texts, keras.layers.Dense(2)(encoded["pooled_output"]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss)
    return model


def encoder_of(model):
    return next(
        each for each in model.layers if isinstance(each, HubLayer) and each.trainable_weights
    )


@pytest.mark.end_to_end
def test_it_computes_what_the_saved_model_does(pair):
    preprocess, encode = HubLayer(pair / "preprocessor"), HubLayer(pair / "encoder")
    loaded = tf.saved_model.load(str(pair / "encoder"))
    inputs = preprocess(TEXTS.numpy().astype(str).tolist())
    assert {*inputs} == {*INPUTS}
    expected, found = loaded(inputs), encode(inputs)
    assert found.keys() == expected.keys() >= {"default", "pooled_output", "sequence_output"}
    for name, value in expected.items():
        for one, other in zip(tf.nest.flatten(found[name]), tf.nest.flatten(value), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    dropped = encode(inputs, training=True)["pooled_output"]
    assert not np.allclose(dropped, found["pooled_output"], atol=1e-4)
    frozen = HubLayer(pair / "encoder", trainable=False, output_key="default")
    np.testing.assert_allclose(frozen(inputs, training=True), expected["default"], atol=1e-6)
    assert (
        len(encode.trainable_weights) == len(loaded.trainable_variables)
        and not frozen.trainable_weights
    )
    pieces = preprocess.resolved_object.tokenize(TEXTS)
    packed = preprocess.resolved_object.bert_pack_inputs([pieces], seq_length=8)
    np.testing.assert_array_equal(packed["input_word_ids"], inputs["input_word_ids"][:, :8])


@pytest.mark.end_to_end
def test_it_trains_and_goes_on_from_its_file_without_the_folder(ours, tmp_path):
    model = functional(ours)
    before = [weight.numpy() for weight in encoder_of(model).trainable_weights]
    model.fit(TEXTS, LABELS, epochs=8, verbose=0)
    changed = [
        not np.array_equal(old, new)
        for old, new in zip(before, encoder_of(model).weights, strict=False)
    ]
    assert all(changed) and len(changed) > 15
    model.save(tmp_path / "model.keras")
    with pytest.raises(UserError, match=r"is a program; .*safe_mode=False\)"):
        keras.saving.load_model(tmp_path / "model.keras")

    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    again.save(tmp_path / "third.keras")  # its own copy of the SavedModel goes in
    third = keras.saving.load_model(tmp_path / "third.keras", safe_mode=False)
    expected = model.predict(TEXTS, verbose=0)
    for each in (again, third):
        np.testing.assert_allclose(each.predict(TEXTS, verbose=0), expected, atol=1e-6)
        assert str(ours) not in str(encoder_of(each).get_config())
        moments = zip(each.optimizer.variables, model.optimizer.variables, strict=True)
        assert all(np.allclose(one, other) for one, other in moments)
    third.fit(TEXTS, LABELS, epochs=1, verbose=0)
    assert not np.allclose(third.predict(TEXTS, verbose=0), expected, atol=1e-4)
    with pytest.raises(UserError, match="load it with keras.saving.load_model"):
        bert_tf.load(tmp_path / "model.keras")


@pytest.mark.end_to_end
def test_sequential_models_of_strings(ours, tmp_path):
    model = keras.Sequential(
        [
            keras.Input((), dtype="string"),
            HubLayer(ours / "preprocessor"),
            HubLayer(ours / "encoder", trainable=False, output_key="pooled_output"),
            keras.layers.Dense(2),
        ]
    )
    assert len(model.trainable_weights) == 2
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    assert len(again.trainable_weights) == 2
    expected = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), expected, atol=1e-6)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), expected, atol=1e-6)


@pytest.mark.end_to_end
def test_folders_and_options_that_do_not_fit_are_refused(ours, tmp_path):
    module = tf.Module()
    module.serve = tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path / "other")
    for folder, options, told in (
        (tmp_path / "none", {}, "is not the folder of a SavedModel"),
        (tmp_path / "other", {}, "cannot be called, as a SavedModel of TF Hub's form"),
        (ours / "encoder", {"output_key": "logits"}, "has no output 'logits'; its outputs are"),
        ("kaggle://a/b", {}, "is not of the form kaggle://"),
    ):
        with pytest.raises(UserError, match=told):
            HubLayer(folder, **options)
    layer = HubLayer(ours / "preprocessor")
    layer._folder = str(tmp_path / "gone")
    with pytest.raises(UserError, match="is gone; restore it"):
        layer.save_assets(str(tmp_path / "assets"))
