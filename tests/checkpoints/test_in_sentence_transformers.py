"""sentence-transformers itself opens what is written, and gives the same vectors.

Runs where it is installed; `make bench` installs it.
"""

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.embedder import POOLINGS
from tests import tiny
from tests.checkpoints.tiny_embedders import TEXTS, TOLERANCE

library = pytest.importorskip(
    "sentence_transformers", reason="sentence-transformers is not installed"
)

pytestmark = pytest.mark.slow

MODES = [mode for mode in POOLINGS if mode != "pooled"]
PROMPTS = {"query": "the good cat : ", "document": ""}


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_vectors_and_settings_are_the_same_there_and_back(tmp_path, similarity, include_prompt):
    keras.utils.set_random_seed(5)
    model = bert_tf.TextEmbedder(
        bert_tf.Encoder(tiny.encoder_config(8)),
        tiny.tokenizer(),
        pooling=MODES,
        normalize=similarity == "cosine",
        dense=[{"units": 6, "activation": "GELU"}, {"units": 5, "bias": False}],
        prompts=PROMPTS,
        default_prompt="query",
        include_prompt=include_prompt,
        similarity_function=similarity,
        max_length=12,
    )
    model.save_checkpoint(tmp_path / "ours", "sentence_transformers")
    theirs = library.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    for prompt in (None, *PROMPTS):
        expected = theirs.encode(TEXTS, prompt_name=prompt)
        found = model.predict(TEXTS, prompt=prompt, verbose=0)
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)
    compared = theirs.similarity(expected, expected).numpy()
    np.testing.assert_allclose(model.similarity(found, found), compared, atol=TOLERANCE)

    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    back = bert_tf.load(tmp_path / "theirs")
    assert (back.settings, back.head) == (model.settings, model.head)
