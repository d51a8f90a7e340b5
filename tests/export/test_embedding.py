"""The exported encoder gives each text the vector that the model has for it."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextEmbedder, UserError, load
from bert_tf.cli.parser import main
from bert_tf.export.served_model import ServedModel
from bert_tf.text import Preprocessor

TEXTS = ["the cat sat .", "", "a", "fish " * 40]


def vectors(outputs, mask, pooling):
    """The pooling, from what the encoder gives for padded rows."""
    if pooling == "pooled":
        return outputs["pooled_output"].numpy()
    tokens = outputs["sequence_output"].numpy()
    if pooling == "cls":
        return tokens[:, 0]
    return np.stack([row[real == 1].mean(axis=0) for row, real in zip(tokens, mask, strict=True)])


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooled"])
def test_vectors_are_the_encoders(models, tokenizer, pooling):
    encoder = models("embedding").encoder
    options = {} if pooling == "mean" else {"pooling": pooling}  # mean is what one expects
    model = TextEmbedder(encoder, tokenizer, **options)
    signature = model.with_network(ServedModel(model)).signatures()["serving_default"]
    found = signature.answer({"text": tf.constant(TEXTS)})
    inputs = Preprocessor(tokenizer, max_length=32)(TEXTS)
    expected = vectors(encoder(inputs), inputs["input_mask"].numpy(), pooling)
    np.testing.assert_allclose(found["embedding"], expected, atol=2e-6)


def test_an_export_that_gives_no_vectors_compares_nothing(exported, loads_once):
    model = load(exported("classification"))
    said = "returns no vectors; similarity requires the export of a TextEmbedder"
    with pytest.raises(UserError, match=said):
        model.similarity(TEXTS, TEXTS)


def test_a_text_has_the_same_vector_in_any_company(loaded):
    answer = loaded("embedding").signatures["serving_default"]
    many = answer(text=tf.constant(TEXTS * 250))["embedding"]
    alone = [answer(text=tf.constant([text]))["embedding"][0] for text in TEXTS]
    np.testing.assert_allclose(many, np.tile(alone, [250, 1]), atol=2e-6)
    assert answer(text=tf.constant([], tf.string))["embedding"].shape == (0, 16)


def test_a_file_of_texts_is_embedded_with_an_export(exported, loaded, loads_once, tmp_path, capsys):
    texts, out = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    texts.write_text("\n".join(TEXTS))
    command = ["embed", str(exported("embedding")), str(texts), "--out", str(out)]
    assert main(command) == 0
    answer = loaded("embedding").signatures["serving_default"]
    expected = answer(text=tf.constant(TEXTS))["embedding"]
    np.testing.assert_allclose(np.load(out), expected, atol=2e-6)
    capsys.readouterr()
    assert main([*command, "--max-length", "8"]) == 2
    assert "is a SavedModel, whose length is fixed; omit --max-length" in capsys.readouterr().err
