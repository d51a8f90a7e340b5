"""The same weights and inputs give what transformers' BertForPreTraining gives.

The checkpoints and numbers were made by `tests/fixtures/make_huggingface_tiny.py` with
torch 2.13.0 and transformers 5.23.0. Outputs agree absolutely, gradients relative to the largest
element of each tensor.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import huggingface, names, reading
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer

FIXTURES = Path(__file__).parents[1] / "fixtures"
TOLERANCE = 2e-5
INPUTS = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")
TARGETS = ("masked_lm_ids", "masked_lm_weights", "next_sentence_labels")


@pytest.fixture(scope="module", params=["gelu", "gelu_new"])
def folder(request) -> Path:
    return FIXTURES / f"huggingface_tiny_{request.param}"


@pytest.fixture(scope="module", params=["unpadded", "padded"])
def model(request, folder) -> PreTrainer:
    checkpoint = reading.find(folder)
    model = PreTrainer(Encoder(checkpoint.encoder, layout=request.param))
    report = checkpoint.fill(model)
    assert (report.new, report.ignored) == ((), ())
    return model


@pytest.fixture(scope="module")
def expected(folder) -> dict[str, np.ndarray]:
    return dict(np.load(folder / "expected.npz"))


def pick(expected, keys):
    return {key: tf.constant(expected[key]) for key in keys}


def test_encoder_outputs_agree_and_are_zero_at_padding(model, expected):
    outputs = model.encoder(pick(expected, INPUTS[:3]))
    mask = expected["input_mask"][..., None]
    for ours, theirs in (
        (outputs["sequence_output"], expected["sequence_output"]),
        (outputs["encoder_outputs"][0], expected["layer_0"]),
        (outputs["encoder_outputs"][1], expected["sequence_output"]),
    ):
        np.testing.assert_allclose(ours, theirs * mask, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(
        outputs["pooled_output"], expected["pooled_output"], rtol=0, atol=TOLERANCE
    )


def test_head_logits_agree(model, expected):
    outputs = model(pick(expected, INPUTS))
    real = expected["masked_lm_weights"] > 0
    np.testing.assert_allclose(
        outputs["masked_lm"].numpy()[real], expected["masked_lm"][real], rtol=0, atol=TOLERANCE
    )
    np.testing.assert_allclose(
        outputs["next_sentence"], expected["next_sentence"], rtol=0, atol=TOLERANCE
    )


def test_loss_and_every_gradient_agree(model, expected):
    with tf.GradientTape() as tape:
        outputs = model(pick(expected, INPUTS), training=False)
        loss = model.compute_loss(y=pick(expected, TARGETS), y_pred=outputs)
    theirs = expected["masked_lm_loss"] + expected["next_sentence_loss"]
    np.testing.assert_allclose(loss, theirs, rtol=0, atol=TOLERANCE)

    recorded = {
        name.removeprefix("gradient:").removeprefix("bert."): value
        for name, value in expected.items()
        if name.startswith("gradient:")
    }
    rows = huggingface.TABLE.rows("PreTrainer", model.encoder.config.num_hidden_layers)
    variables = names.weight_names(model)
    gradients = tape.gradient(loss, [weight.value for weight in variables.values()])
    projection = {f"encoder/embeddings/projection/{part}" for part in ("kernel", "bias")}
    assert rows.keys() - projection == variables.keys()  # only an ELECTRA has it
    for name, gradient in zip(variables, gradients, strict=True):
        ours = tf.convert_to_tensor(gradient).numpy()
        theirs = rows[name].read(recorded.__getitem__)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * scale, err_msg=name)


def test_compiled_with_xla_the_padded_layout_gives_the_same(model, expected):
    if model.encoder.layout == "unpadded":
        pytest.skip("the unpadded layout has dynamic shapes and is not for XLA")
    compiled = tf.function(model, jit_compile=True)
    plain, fast = model(pick(expected, INPUTS)), compiled(pick(expected, INPUTS))
    for name in plain:
        np.testing.assert_allclose(plain[name], fast[name], rtol=0, atol=TOLERANCE)
