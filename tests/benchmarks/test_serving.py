"""Serving compared with the peer: its goals, equal names of classes, and equal windows."""

import json

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.serving import exporting
from benchmarks.serving.__main__ import _best
from benchmarks.serving.texts import MAX_LENGTH, STRIDE
from bert_tf import TextClassifier
from bert_tf.encoder.encoder import Encoder
from tests import tiny


def test_goals_that_are_missed_say_so():
    rates = {
        "bert_tf": {30.0: 1, 38.0: 8},
        "bert_tf, shards": {44.0: 8, 42.0: 32},
        "PyTorch": {20.0: 1, 15.0: 8},
    }
    columns = [list(column.cells) for column in _best(rates, (1.5, 2.0)).columns]
    assert list(zip(*columns, strict=True)) == [
        ("bert_tf", "8", "38.0", "1.90", "1.50 / 2.00 met"),
        ("bert_tf, shards", "8", "44.0", "2.20", "1.50 / 2.00"),
        ("PyTorch", "1", "20.0", "1.00", ""),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("names", [["LABEL_0", "LABEL_1", "LABEL_2"], ["no", "yes", "maybe"]])
def test_an_export_names_classes_as_transformers_does(names, tmp_path):
    """With other names no answer would equal the peer's."""
    encoder = Encoder(tiny.encoder_config(max_position_embeddings=MAX_LENGTH["classification"]))
    model = TextClassifier(encoder, tiny.tokenizer(), names)
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    model.save_checkpoint(checkpoint, "huggingface")
    config = checkpoint / "config.json"
    fields = json.loads(config.read_text())
    assert list(fields["id2label"].values()) == names
    # A configuration by transformers has no section `bert_tf`.
    del fields["bert_tf"]
    config.write_text(json.dumps(fields))
    exporting.main(str(checkpoint), str(out), "classification", "float32")
    answer = tf.saved_model.load(str(out)).signatures["serving_default"]
    (classes,) = answer(text=tf.constant(["the cat sat"]))["classes"].numpy()
    assert [name.decode() for name in classes] == names


@pytest.mark.parametrize(
    ("tokens", "windows"), [(1, 1), (371, 1), (372, 2), (499, 2), (500, 3), (900, 6)]
)
def test_the_peers_windows_start_as_far_apart_as_ours(tokens, windows):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from benchmarks.serving import pytorch

    # [CLS], a question of ten tokens, [SEP], the context, [SEP].
    ids = [2, *range(100, 110), 3, *range(1000, 1000 + tokens), 3]
    parts = [None, *[0] * 10, None, *[1] * tokens, None]
    offsets = [(0, 0)] * 12 + [(i, i + 1) for i in range(tokens)] + [(0, 0)]

    class Encoded(dict):
        sequence_ids = staticmethod(lambda row: parts)

    found = list(pytorch._windows(Encoded(input_ids=[ids], offset_mapping=[offsets]), 0))
    assert len(found) == windows
    for number, window in enumerate(found):
        assert window.ids[:12] == ids[:12] and window.ids[-1] == 3
        assert len(window.ids) == len(window.types) <= MAX_LENGTH["question_answering"]
        context = window.ids[window.first : -1]
        assert context[0] == 1000 + STRIDE * number
        assert window.offsets[window.first :] == [(i - 1000, i - 999) for i in context]
        assert np.count_nonzero(window.types) == len(context) + 1
    assert found[-1].ids[-2] == 1000 + tokens - 1
