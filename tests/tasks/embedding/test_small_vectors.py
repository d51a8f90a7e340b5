"""Vectors of fewer numbers, of 8 bits and of one bit: values, ways of asking, refusals."""

import numpy as np
import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.tasks.embedding.small_vectors import ranges_of, smaller
from tests.tasks import tiny_objects

TEXTS = ["the cat sat", "a dog ran on the mat", "bird flew", "the sea"]
# Results of `truncate_embeddings` and `quantize_embeddings` of sentence-transformers 6.2.0.
VECTORS = np.sin(np.arange(36, dtype=np.float32)).reshape(4, 9)
WITH_RANGES = [
    *([-26, 127, 127, 2, -128, -128], [58, -128, -128, -128, 59, 127]),
    *([-128, 4, 127, 127, -28, -128], [127, 29, -128, -128, -109, 86]),
]
BINARY = [[-15, 0], [14, -128], [-16, 0], [71, -128]]
CALIBRATED = [
    [-16, 127, 126, 29, -128, -128, -45, 127, 127],
    [45, -128, -128, -65, 127, 127, 80, -128, -128],
]


@pytest.fixture(scope="module")
def model():
    model = tiny_objects.embedder(normalize=True)
    found = model.calibrate(TEXTS)
    assert found["lowest"] == pytest.approx(model.predict(TEXTS).min(), abs=1e-5)
    return model


def same(found, expected):
    """Whether vectors are equal; a number of 8 bits may be rounded to its neighbour."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    difference = np.abs(found.astype(np.float64) - expected)
    return difference.max() <= (1 if found.dtype == np.int8 else 1e-5)


def test_values_are_those_of_sentence_transformers():
    assert smaller(VECTORS, 6, "int8", [[-0.5] * 9, [0.75] * 9]).numpy().tolist() == WITH_RANGES
    assert smaller(VECTORS, None, "binary").numpy().tolist() == BINARY
    found = smaller(VECTORS, None, "int8", ranges_of(VECTORS))
    assert found.numpy()[:2].tolist() == CALIBRATED
    # The range of a number that is the same in all vectors has no width.
    assert smaller([[0.5]], None, "int8", [[0.5], [0.5]]).numpy().tolist() == [[-128]]


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("vectors", "truncate_dim"),
    [
        ("int8", 6),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("binary", None), ("float32", 5))
        ),
    ],
)
def test_all_ways_of_asking_agree(model, tmp_path, vectors, truncate_dim):
    settings = {"vectors": vectors, "truncate_dim": truncate_dim}
    whole, expected = model.predict(TEXTS), model.predict(TEXTS, **settings)
    assert whole.dtype == np.float32 and whole.shape == (4, 16)
    model.save(tmp_path / "whole.keras")
    small = bert_tf.load(tmp_path / "whole.keras", **settings)
    small.save(tmp_path / "small.keras")
    small.save_checkpoint(tmp_path / "folder")
    model.export(tmp_path / "exported", **settings)
    model.export(tmp_path / "ids.tflite", format="litert", **settings)
    small.export(tmp_path / "strings.tflite", format="litert", inputs="strings")
    for name in ("small.keras", "folder", "exported", "ids.tflite", "strings.tflite"):
        opened = bert_tf.load(tmp_path / name)
        assert opened.settings == small.settings, name
        assert same(opened.predict(TEXTS, verbose=0), expected), name
        assert same(opened.predict(TEXTS[0], verbose=0), expected[0]), name
        assert same(opened.serve(TEXTS)["embedding"].numpy(), expected), name
        if vectors != "float32" and name not in ("small.keras", "folder"):
            with pytest.raises(UserError, match=f"returns {vectors} vectors, whose form is fixed"):
                opened.predict(TEXTS, vectors="float32")
    assert same(small.predict(TEXTS, vectors="float32", truncate_dim=16), whole)
    # Similarities and metrics are those of the numbers that are kept.
    cosines = small.similarity(TEXTS[:1], TEXTS)
    np.testing.assert_allclose(
        cosines, small.similarity(whole[:1, :truncate_dim], whole[:, :truncate_dim]), atol=1e-5
    )
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    given = [str(tmp_path / "whole.keras"), str(tmp_path / "texts.txt"), "--vectors", vectors]
    given += ["--truncate-dim", str(truncate_dim)] if truncate_dim else []
    assert main(["embed", *given, "--out", str(tmp_path / "vectors.npy")]) == 0
    assert same(np.load(tmp_path / "vectors.npy"), expected)


@pytest.mark.end_to_end
def test_fit_finds_the_ranges_and_other_weights_have_others():
    model = tiny_objects.embedder()
    model.fit((TEXTS, TEXTS[::-1]), batch_size=2, verbose=0)
    vectors = model.predict(TEXTS)
    np.testing.assert_allclose(model.settings["ranges"], ranges_of(vectors), atol=1e-5)
    found = model.predict(TEXTS, vectors="int8")
    assert found.min() == -128 and found.max() >= 126
    assert "ranges" not in model.student(1).settings
    model.remember({})
    with pytest.raises(UserError, match=r"require the ranges of their numbers; call calibrate\(te"):
        model.predict(TEXTS, vectors="int8")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"truncate_dim": 17},
            "truncate_dim is 17, but vectors of this model have 1 to 16 numbers",
        ),
        ({"truncate_dim": 0}, "truncate_dim must be at least 1, got 0"),
        ({"vectors": "int4"}, "vectors must be 'float32', 'int8' or 'binary', got \"int4\""),
        ({"ranges": [[0.0] * 16]}, "ranges must be the lowest and the highest of each of 16 numb"),
        ({"ranges": [[1.0] * 16, [0.0] * 16]}, "ranges must be"),
        ({"ranges": [["a"] * 16, [0.0] * 16]}, "ranges must be"),
        ({"ranges": [[float("nan")] * 16, [0.0] * 16]}, "ranges must be"),
    ],
)
def test_settings_that_do_not_fit(model, settings, said):
    with pytest.raises(UserError, match=said):
        tiny_objects.embedder(**settings)
    if "ranges" not in settings:
        with pytest.raises(UserError, match=said):
            model.predict(TEXTS, **settings)


def test_a_calibration_requires_texts(model):
    with pytest.raises(UserError, match="requires two or more texts"):
        tiny_objects.embedder().calibrate(["the cat"])


@pytest.mark.end_to_end
def test_an_export_is_asked_for_vectors_by_the_command_line(model, tmp_path, capsys):
    model.save(tmp_path / "m.keras")
    out = tmp_path / "small"
    command = ["export", str(tmp_path / "m.keras"), "--out", str(out)]
    assert main([*command, "--vectors", "binary", "--truncate-dim", "8"]) == 0
    expected = model.predict(TEXTS, vectors="binary", truncate_dim=8)
    assert same(bert_tf.load(out).predict(TEXTS, verbose=0), expected)
    (tmp_path / "texts.txt").write_text("the cat\n")
    asked = [str(out), str(tmp_path / "texts.txt"), "--out", str(tmp_path / "v.npy")]
    capsys.readouterr()
    assert main(["embed", *asked, "--vectors", "int8"]) == 2
    assert "is a SavedModel, whose vectors are fixed; omit --vectors" in capsys.readouterr().err
