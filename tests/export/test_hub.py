"""The TF Hub pair: every function and attribute that its users expect, trainable in both Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import reading
from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.encoder import INPUTS
from bert_tf.export import served_model
from bert_tf.export.hub import HubEncoder
from bert_tf.export.precision import in_precision
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.tasks import from_checkpoint
from bert_tf.text import Preprocessor

hub = pytest.importorskip("tensorflow_hub", reason="it comes with the extra model-garden")

TEXTS = ["the cats sat.", "", "A dog ran on!"]
LABELS = np.array([0, 1, 1])


@pytest.fixture(scope="module")
def preprocessor(exported):
    return hub.load(str(exported("hub") / "preprocessor"))


@pytest.fixture(scope="module")
def encoder(exported):
    return hub.load(str(exported("hub") / "encoder"))


@pytest.fixture(scope="module")
def inputs(preprocessor):
    return preprocessor(tf.constant(TEXTS))


@pytest.mark.end_to_end
def test_the_preprocessor_is_bert_tfs(inputs, tokenizer):
    expected = Preprocessor(tokenizer, max_length=32)(TEXTS)
    assert set(inputs) == set(INPUTS)
    for name, value in inputs.items():
        assert value.dtype == tf.int32
        np.testing.assert_array_equal(value, expected[name])


def test_pieces_come_by_word(preprocessor, tokenizer):
    ids = preprocessor.tokenize(tf.constant(TEXTS))
    words = [[[tokenizer.vocabulary[i] for i in word] for word in row] for row in ids.to_list()]
    assert words[0] == [["the"], ["cat", "##s"], ["sat"], ["."]]
    assert words[1] == []
    assert ids.dtype == tf.int32
    np.testing.assert_array_equal(
        ids.merge_dims(1, 2).to_tensor(), tokenizer.tokenize(TEXTS).to_tensor()
    )


def test_offsets_are_those_of_the_pieces(preprocessor):
    ids, starts, ends = preprocessor.tokenize_with_offsets(tf.constant(TEXTS))
    assert ids.to_list() == preprocessor.tokenize(tf.constant(TEXTS)).to_list()
    assert starts.to_list()[0] == [[0], [4, 7], [9], [12]]
    assert ends.to_list()[0] == [[3], [7, 8], [12], [13]]


def test_the_ids_of_special_tokens_are_available(preprocessor, tokenizer):
    for tokenize in (preprocessor.tokenize, preprocessor.tokenize_with_offsets):
        told = {name: int(each) for name, each in tokenize.get_special_tokens_dict().items()}
        assert told == {
            "start_of_sequence_id": tokenizer.cls_id,
            "end_of_segment_id": tokenizer.sep_id,
            "padding_id": tokenizer.pad_id,
            "mask_id": tokenizer.mask_id,
            "vocab_size": tokenizer.vocab_size,
        }


@pytest.mark.parametrize("by_word", [True, False])
@pytest.mark.parametrize("segments", [1, 2])
def test_one_or_two_segments_are_packed(preprocessor, tokenizer, segments, by_word):
    ids = preprocessor.tokenize(tf.constant(TEXTS))
    ids = ids if by_word else ids.merge_dims(1, 2)
    packed = preprocessor.bert_pack_inputs([ids] * segments, seq_length=tf.constant(9))
    preprocess = Preprocessor(tokenizer, max_length=9)
    expected = preprocess(TEXTS if segments == 1 else (TEXTS, TEXTS))
    assert set(packed) == set(INPUTS)
    for name, value in packed.items():
        np.testing.assert_array_equal(value, expected[name])
    if segments == 1:
        assert preprocessor.bert_pack_inputs([ids])["input_mask"].shape == (3, 32)


def test_the_encoder_gives_what_the_model_gives(encoder, inputs, models):
    found, expected = encoder(inputs), models("hub").encoder(inputs)
    assert set(found) == {"sequence_output", "pooled_output", "encoder_outputs", "default"}
    assert isinstance(found["encoder_outputs"], list)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    for one, other in zip(found["encoder_outputs"], expected["encoder_outputs"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_array_equal(found["default"], found["pooled_output"])
    flat = encoder.signatures["serving_default"](**inputs)
    assert set(flat) == {"sequence_output", "pooled_output", "default"}
    np.testing.assert_array_equal(flat["default"], found["default"])


def test_describing_the_encoder_copies_no_weight(models, tokenizer, monkeypatch):
    model = in_precision(models("hub"), "bfloat16")
    facts = ServedModel(model, Form(device="any")).facts()
    monkeypatch.delattr(served_model, "_Stored")
    assert HubEncoder(model, tokenizer).facts() == facts
    assert facts["precision"] == "bfloat16" and not facts["frozen"]


def test_dropout_acts_in_training_only(encoder, inputs):
    still, other = (encoder(inputs, training=False)["default"] for _ in range(2))
    np.testing.assert_array_equal(still, other)
    one, other = (encoder(inputs, training=True)["default"] for _ in range(2))
    assert not np.allclose(one, still, atol=1e-3) and not np.allclose(one, other, atol=1e-3)


def test_gradients_are_the_models(encoder, inputs, models):
    ours = models("hub").encoder

    def gradients(function, weights):
        with tf.GradientTape() as tape:
            outputs = function(inputs)
            loss = tf.reduce_sum(outputs["sequence_output"] ** 3)
            loss += tf.reduce_sum(outputs["pooled_output"])
        return [tf.convert_to_tensor(each) for each in tape.gradient(loss, weights)]

    found = gradients(encoder, encoder.trainable_variables)
    expected = gradients(ours, [weight.value for weight in ours.weights])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5 * float(tf.reduce_max(tf.abs(other))))


def test_masked_tokens_are_predicted(encoder, inputs, models):
    asked = dict(inputs, masked_lm_positions=np.array([[1, 3], [0, 1], [2, 2]], np.int32))
    found = encoder.mlm(asked)
    assert set(found) == set(encoder(inputs)) | {"mlm_logits"}
    np.testing.assert_allclose(found["mlm_logits"], models("hub")(asked)["masked_lm"], atol=1e-4)
    head = len(encoder.mlm.trainable_variables) - len(encoder.trainable_variables)
    assert head == len(models("hub").masked_lm.weights)


def test_the_encoder_tells_its_vocabulary_and_casing(encoder, tokenizer):
    path = encoder.vocab_file.asset_path.numpy().decode()
    with open(path, encoding="utf-8") as handle:
        assert tuple(handle.read().splitlines()) == tokenizer.vocabulary
    assert bool(encoder.do_lower_case) is True


def test_bert_tf_reads_the_encoder_back(exported, models, inputs):
    folder = exported("hub") / "encoder"
    checkpoint = reading.find(folder)
    model = from_checkpoint.build(checkpoint, checkpoint.folder)
    report = checkpoint.fill(model)
    assert not report.new and not report.ignored
    asked = dict(inputs, masked_lm_positions=np.array([[1], [0], [2]], np.int32))
    found, whole = model(asked)["masked_lm"], models("hub")(asked)["masked_lm"]
    np.testing.assert_allclose(found, whole, atol=1e-5)
    # The pair has no next sentence head, without which some kernels round differently.
    same = bert_tf.PreTrainer(bert_tf.Encoder(models("hub").encoder.config), next_sentence=False)
    weights = weight_names(models("hub"))
    for name, variable in weight_names(same).items():
        variable.assign(weights[name])
    np.testing.assert_array_equal(found, same(asked)["masked_lm"])
    encoder = bert_tf.Encoder.from_checkpoint(folder)
    expected = weight_names(models("hub").encoder)
    for name, value in weight_names(encoder).items():
        np.testing.assert_array_equal(value, expected[name])
    tokenizer = bert_tf.Tokenizer.from_checkpoint(folder)
    assert tokenizer.lower_case and tokenizer.mask_id == 4


@pytest.mark.slow
def test_a_classifier_of_tf_keras_trains_on_the_pair(exported):
    import tf_keras

    text = tf_keras.layers.Input([], dtype=tf.string)
    tokens = hub.KerasLayer(str(exported("hub") / "preprocessor"))(text)
    layer = hub.KerasLayer(str(exported("hub") / "encoder"), trainable=True)
    scores = tf_keras.layers.Dense(2)(layer(tokens)["pooled_output"])
    model = tf_keras.Model(text, scores)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(2e-3), loss)
    before = [variable.numpy() for variable in layer.trainable_variables]
    first = model.evaluate(tf.constant(TEXTS), LABELS, verbose=0)
    model.fit(tf.constant(TEXTS), LABELS, epochs=20, verbose=0)
    after = layer.trainable_variables
    assert len(before) == len(after) == 31
    moved = [not np.array_equal(*each) for each in zip(before, after, strict=True)]
    assert all(moved)
    assert model.evaluate(tf.constant(TEXTS), LABELS, verbose=0) < first


def test_steps_of_the_preprocessor_are_layers_of_tf_keras(preprocessor):
    import tf_keras

    text = tf_keras.layers.Input([], dtype=tf.string)
    words = hub.KerasLayer(preprocessor.tokenize)(text)
    pack = hub.KerasLayer(preprocessor.bert_pack_inputs, arguments={"seq_length": 7})
    model = tf_keras.Model(text, pack([words, words]))
    assert model.predict(tf.constant(TEXTS), verbose=0)["input_type_ids"].shape == (3, 7)


@pytest.mark.slow
def test_a_classifier_of_keras_3_trains_on_the_encoder(exported, inputs):
    layer = keras.layers.TFSMLayer(
        exported("hub") / "encoder", call_training_endpoint="serve_training"
    )
    ids = {name: keras.Input([None], dtype="int32", name=name) for name in INPUTS}
    scores = keras.layers.Dense(2)(layer(ids)["pooled_output"])
    model = keras.Model(ids, scores)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss)
    # Keras names the weights of such a layer as it cannot name the optimizer's inside `fit`.
    model.optimizer.build(model.trainable_variables)
    before = [variable.numpy() for variable in layer.trainable_variables]
    first = model.evaluate(inputs, LABELS, verbose=0)
    model.fit(inputs, LABELS, epochs=20, verbose=0)
    moved = [
        not np.array_equal(*each) for each in zip(before, layer.trainable_variables, strict=True)
    ]
    assert len(moved) == 31 and all(moved)
    assert model.evaluate(inputs, LABELS, verbose=0) < first
