"""`bert-tf embed` writes the vectors of any number of texts, and goes on after a kill."""

import functools
import json
import random

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.asking import embed, row_files
from bert_tf.cli.parser import main
from tests import tiny
from tests.tasks import tiny_objects

SOURCE = random.Random(0)
TEXTS = [tiny.sentence(SOURCE, SOURCE.randint(1, 20)) for _ in range(22)] + ["", "é \u2028 cat"]


@pytest.fixture(scope="module")
def embedder():
    return tiny_objects.embedder(normalize=True)


@pytest.fixture(scope="module")
def model(embedder, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "embedder.keras"
    embedder.save(path)
    return str(path)


# A model is opened and traced once for all tests.
OPEN = functools.cache(embed._open)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_files, "_BLOCK_LINES", 10)
    monkeypatch.setattr(embed, "_open", OPEN)


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", newline="\n")
    return str(path)


def embedded_blocks(monkeypatch, stop_in=None):
    """A list that gets the size of each block that is embedded; block `stop_in` is interrupted."""
    sizes, real = [], embed.batches

    def batches(model, signature, block, *options, **named):
        sizes.append(len(block))
        if len(sizes) == stop_in:
            raise KeyboardInterrupt
        return real(model, signature, block, *options, **named)

    monkeypatch.setattr(embed, "batches", batches)
    return sizes


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.end_to_end
def test_vectors_are_those_of_predict_in_the_order_of_the_texts(embedder, model, texts, tmp_path):
    out = tmp_path / "vectors.npy"
    assert main(["embed", model, texts, "--out", str(out), "--batch-size", "4"]) == 0
    found = np.load(out, mmap_mode="r")
    assert (found.dtype, found.shape) == (np.float32, (24, 16))
    expected = embedder(embedder.preprocessor()(TEXTS))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert names(tmp_path) == ["texts.txt", "vectors.npy"]


def test_json_lines_and_options(embedder, model, tmp_path):
    file, out = tmp_path / "texts.jsonl", tmp_path / "vectors.npy"
    lines = [json.dumps({"_id": i, "text": text}) for i, text in enumerate(TEXTS)]
    file.write_text("\n\n".join(lines))
    options = ["--dtype", "float16", "--max-length", "5", "--out", str(out)]
    assert main(["embed", model, str(file), *options]) == 0
    found = np.load(out)
    assert found.dtype == np.float16
    short = bert_tf.TextEmbedder(embedder.encoder, embedder.tokenizer, "mean", True, max_length=5)
    np.testing.assert_allclose(found, short(short.preprocessor()(TEXTS)), atol=1e-3)


def test_embedding_goes_on_where_it_stopped(model, texts, tmp_path, monkeypatch, capsys):
    whole, out = tmp_path / "whole.npy", tmp_path / "vectors.npy"
    assert main(["embed", model, texts, "--out", str(whole)]) == 0
    with monkeypatch.context() as patched:
        embedded_blocks(patched, stop_in=2)
        assert main(["embed", model, texts, "--out", str(out)]) == 130
    assert "embed resume where they stopped" in capsys.readouterr().err
    assert not out.exists()

    embedded = embedded_blocks(monkeypatch)
    assert main(["embed", model, texts, "--out", str(out)]) == 0
    assert embedded == [10, 4]
    assert out.read_bytes() == whole.read_bytes()
    assert "resuming after the first 10 of 24 texts" in capsys.readouterr().err
    assert names(tmp_path) == ["texts.txt", "vectors.npy", "whole.npy"]


@pytest.mark.parametrize("changed", ["text", "model", "option"])
def test_other_texts_another_model_and_options_start_anew(
    changed, model, texts, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "vectors.npy"
    with monkeypatch.context() as patched:
        embedded_blocks(patched, stop_in=2)
        assert main(["embed", model, texts, "--out", str(out)]) == 130
    options = []
    if changed == "text":
        (tmp_path / "texts.txt").write_text("\n".join(["cat", *TEXTS[1:]]))
    elif changed == "option":
        options = ["--max-length", "5"]
    else:
        other = tiny_objects.embedder(pooling="cls")
        model = str(tmp_path / "other.keras")
        other.save(model)
    assert main(["embed", model, texts, "--out", str(out), *options]) == 0
    assert "other work or is damaged; starting from the beginning" in capsys.readouterr().err
    whole = tmp_path / "whole.npy"
    assert main(["embed", model, texts, "--out", str(whole), *options]) == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.jsonl", b"\n\n", [], "a.jsonl holds no texts; give at least one"),
        ("a.jsonl", b'{"text": "a"}\n{"title": "b"}\n', [], "line 2: no text under 'text'"),
        ("a.txt", b"one\n", ["--batch-size", "0"], "--batch-size must be at least 1, not 0"),
        ("a.txt", b"one\n", ["--max-length", "99"], "max_length"),
    ],
)
def test_mistakes(model, tmp_path, capsys, name, content, options, message):
    (tmp_path / name).write_bytes(content)
    command = ["embed", model, str(tmp_path / name), "--out", str(tmp_path / "vectors.npy")]
    assert main([*command, *options]) == 2
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1 and message in captured
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["missing.txt", "-", "."])
def test_texts_come_from_a_file(model, tmp_path, capsys, name):
    assert main(["embed", model, name, "--out", str(tmp_path / "vectors.npy")]) == 2
    assert f"{name} is not a file; embed reads its texts from a file" in capsys.readouterr().err


def saved_model(folder, inputs, output, **factors):
    """A SavedModel that gives the lengths of texts, by some signatures times a factor."""

    def answering(factor):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name) for name in inputs])
        def answer(*texts):
            lengths = tf.cast(tf.strings.length(texts[0]), tf.float32)
            return {output: factor * lengths[:, None]}

        return answer

    module = tf.Module()
    module.answers = {name: answering(factor) for name, factor in factors.items()}
    tf.saved_model.save(module, folder, module.answers)


def test_a_prompt_is_a_signature(tmp_path, capsys):
    saved_model(tmp_path / "model", ["text"], "embedding", serving_default=1, query=10)
    (tmp_path / "texts.txt").write_text("cat\na\n")
    command = ["embed", str(tmp_path / "model"), str(tmp_path / "texts.txt"), "--out"]
    assert main([*command, str(tmp_path / "plain.npy")]) == 0
    assert main([*command, str(tmp_path / "query.npy"), "--prompt", "query"]) == 0
    assert np.load(tmp_path / "plain.npy").tolist() == [[3], [1]]
    assert np.load(tmp_path / "query.npy").tolist() == [[30], [10]]
    assert main([*command, str(tmp_path / "other.npy"), "--prompt", "passage"]) == 2
    assert "has no signature 'passage'; the signatures are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("inputs", "output", "message"),
    [
        (["text"], "score", "gives score, which are not vectors; give an embedder"),
        (
            ["text_a", "text_b"],
            "embedding",
            "takes text_a, text_b, not single texts; give an embedder",
        ),
    ],
)
def test_a_model_of_another_task_gives_no_vectors(tmp_path, capsys, inputs, output, message):
    saved_model(tmp_path / "model", inputs, output, serving_default=1)
    (tmp_path / "texts.txt").write_text("the cat sat .")
    command = ["embed", str(tmp_path / "model"), str(tmp_path / "texts.txt")]
    assert main([*command, "--out", str(tmp_path / "vectors.npy")]) == 2
    assert message in capsys.readouterr().err
    assert names(tmp_path) == ["model", "texts.txt"]
