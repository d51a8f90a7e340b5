"""`bert-tf predict` answers files and pipes, of any family, in the order of the input."""

import io
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import asking
from bert_tf.asking import predict
from bert_tf.asking import row_files as reading
from bert_tf.asking.session import SessionModel
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.tasks import registry
from tests import tiny


def answered(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


TEXTS = ["the cat sat .", "", "a", "fish " * 40]


def lines(rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture
def texts() -> list[str]:
    source = random.Random(0)
    return [tiny.sentence(source, source.randint(1, 40)) for _ in range(23)]


@pytest.fixture
def asked(monkeypatch) -> list[list[int]]:
    """The lengths of the texts in each batch, as batches are answered."""
    seen = []
    answers = predict.answers

    def noted(outputs, rows, *others):
        seen.append([len(row["text"]) for row in rows])
        return answers(outputs, rows, *others)

    monkeypatch.setattr(predict, "answers", noted)
    monkeypatch.setattr(asking, "BATCH", 4)
    return seen


def test_batches_hold_texts_of_similar_length(
    exported, loaded, loads_once, texts, asked, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("bert_tf.console._SHORT_SECONDS", 0.0)
    source, target = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
    source.write_text("\n".join(texts) + "\n")
    assert main(["predict", str(exported("classification")), "--input", str(source)]) == 0
    told = capsys.readouterr()
    expected = loaded("classification").serve(tf.constant(texts))
    found = answered(told.out)
    assert [row["label"].encode() for row in found] == expected["label"].numpy().tolist()
    np.testing.assert_allclose(
        [row["probabilities"] for row in found], expected["probabilities"], atol=1e-5
    )
    assert sum(asked, []) == sorted(map(len, texts), reverse=True)
    assert "answering: 23/23" in told.err and "answering" not in told.out

    command = ["predict", str(exported("classification")), "--input", str(source)]
    assert main([*command, "--output", str(target)]) == 0
    assert answered(target.read_text()) == found and not capsys.readouterr().out


def test_a_pipe_is_answered_as_it_comes(exported, loads_once, texts, asked, monkeypatch, capsys):
    """A pipe is read in blocks: each is answered before more is read."""

    class Pipe(io.BytesIO):
        batches_before: list[int] = []

        def readline(self, *size):
            self.batches_before.append(len(asked))
            return super().readline(*size)

        def __next__(self):
            self.batches_before.append(len(asked))
            return super().__next__()

    pipe = Pipe("\n".join(texts).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    monkeypatch.setattr(reading, "_BLOCK_LINES", 8)
    assert main(["predict", str(exported("classification")), "--input", "-"]) == 0
    assert len(answered(capsys.readouterr().out)) == len(texts)
    assert [len(batch) for batch in asked] == [4, 4, 4, 4, 4, 3]
    # The batches that were answered when each line was read.
    assert pipe.batches_before[:23] == [0] * 8 + [2] * 8 + [4] * 7


# A class of bert_tf is known; that of another program is not.
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("class_name", "row", "outputs", "expected"),
    [
        (
            "MultiLabelClassifier",
            {"text": "a"},
            {"labels": [b"x", b""], "probabilities": [0.9, 0.0], "classes": [b"x", b"y"]},
            {"labels": ["x"], "probabilities": [0.9, 0.0], "classes": ["x", "y"]},
        ),
        (
            "QuestionAnswerer",
            {"question": "a", "context": "é cat"},
            {"end": 3, "nbest_answers": [b"cat", b"", b""], "nbest_scores": [0.5, 0.25, 0.0]},
            {"end": 2, "nbest_answers": ["cat", ""], "nbest_scores": [0.5, 0.25]},
        ),
        (
            "MaskedLM",
            {"text": "a"},
            {"tokens": [[b"x"], [b""]], "probabilities": [[0.5], [0.0]]},
            {"tokens": [["x"]], "probabilities": [[0.5]]},
        ),
        (
            "Reranker",
            {"query": "a", "passages": ["b", ""]},
            {"order": [0, -1, -1], "scores": [1.5, 0.0, 0.0]},
            {"order": [0, -1], "scores": [1.5, 0.0]},
        ),
        (
            "MultipleChoice",
            {"context": "", "choices": []},
            {"choice": -1, "probabilities": [0.0]},
            {"choice": -1, "probabilities": []},
        ),
        (
            "TokenClassifier",
            {"words": ["", "é"]},
            {"words": [b"", "é".encode(), b""], "labels": [b"O", b"O", b""]}
            | {"starts": [0, 1, -1], "ends": [0, 3, -1], "scores": [0.5, 0.25, 0.0]},
            {"words": ["", "é"], "labels": ["O", "O"]}
            | {"starts": [0, 1], "ends": [0, 2], "scores": [0.5, 0.25]},
        ),
        ("TextEmbedder", {"text": "a"}, {"embedding": [0.5, 0.0]}, {"embedding": [0.5, 0.0]}),
    ],
)
def test_lists_end_where_their_padding_begins(is_known, class_name, row, outputs, expected):
    dtypes = {bytes: object, float: np.float32, int: np.int32}
    batch = {
        name: np.array([value, value], dtypes[type(np.ravel(np.array(value, object))[0])])
        for name, value in outputs.items()
    }
    lists = registry.family_of(class_name).lists
    ranks = {name: 2 if isinstance(value, list) else 1 for name, value in row.items()}
    wider = {name: [*value, "x"] if ranks[name] == 2 else value for name, value in row.items()}
    found, _ = predict.answers(batch, [row, wider], ranks, lists if is_known else None)
    assert found == expected


def test_half_of_a_pair_is_marked_as_in_training(exported, loads_once, tmp_path, capsys):
    source = tmp_path / "texts.jsonl"
    source.write_bytes(lines([{"text": "the \ud83d cat"}]))
    folder = str(exported("classification"))
    found = []
    for arguments in (["--input", str(source)], ["the \ud83d cat"], ["the \ufffd cat"]):
        assert main(["predict", folder, *arguments]) == 0
        found += answered(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]


def test_a_pipe_with_a_name_is_written_to(exported, loads_once, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    folder = str(exported("classification"))
    assert main(["predict", folder, "the cat", "--output", str(pipe)]) == 0
    reader.join(10)
    assert pipe.is_fifo() and len(answered(read[0])) == 1


def test_of_several_versions_the_newest_is_asked_as_a_server_does(
    exported, loads_once, tmp_path, capsys
):
    """Whatever else is in the folder."""
    for other in ("9", "09.old", "latest"):
        (tmp_path / other).mkdir()
        (tmp_path / other / "saved_model.pb").write_bytes(b"another")
    (tmp_path / "11").mkdir()
    (tmp_path / "10").symlink_to(exported("classification"))
    assert main(["predict", str(tmp_path), "the cat"]) == 0
    told = capsys.readouterr()
    assert "label" in answered(told.out)[0]
    assert f"{tmp_path}: using version 10, the newest" in told.err


@pytest.mark.slow
def test_a_pair_for_tf_hub_is_refused_with_how_to_use_it(exported):
    with pytest.raises(
        UserError, match="holds a preprocessor and an encoder for TF Hub, .* load each"
    ):
        predict.run(str(exported("hub")), ["text"], None, None)


@pytest.mark.slow
def test_models_that_take_no_texts_are_refused(exported, capsys):
    with pytest.raises(UserError, match="takes choices and context; give them as JSON lines"):
        predict.run(str(exported("multiple_choice")), ["text"], None, None)
    with pytest.raises(UserError, match="as int32; predict requires a model that takes strings"):
        predict.run(str(exported("hub") / "encoder"), ["text"], None, None)


@pytest.mark.slow
def test_it_ends_quietly_where_nobody_reads_on(exported, tmp_path):
    source = tmp_path / "texts.txt"
    source.write_text("the cat sat\n" * 40_000)
    done = subprocess.run(
        f"{sys.executable} -m bert_tf predict {exported('embedding')} --input {source} | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(answered(done.stdout)) == 1
    assert "Traceback" not in done.stderr and "Error" not in done.stderr


def test_a_saved_model_is_asked_without_tensorflows_python(exported):
    script = (
        "import sys\n"
        "sys.argv = ['bert-tf']\n"
        "from bert_tf.cli.parser import main\n"
        f"code = main(['predict', {str(exported('classification'))!r}, 'the cat sat .'])\n"
        "import os\n"
        "print(code, [each for each in ('tensorflow', 'keras', 'sklearn') if each in sys.modules],"
        " os.environ['TF_ONEDNN_ASSUME_FROZEN_WEIGHTS'])"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    answer, told = done.stdout.splitlines()
    assert json.loads(answer)["label"] in ("no", "yes", "maybe"), done.stderr
    assert told == "0 [] 0"  # in float32 copies of the weights gain nothing


@pytest.mark.end_to_end
def test_texts_that_are_cut_are_counted_after_the_answers(exported, tmp_path):
    saved = exported("classification")
    length = max(SessionModel.load(saved).record.lengths)
    texts = [" ".join(["cat"] * each) for each in (length - 2, length - 1, length * 2)]
    command = [sys.executable, "-m", "bert_tf", "predict", str(saved), *texts]
    done = subprocess.run(command, capture_output=True, text=True)
    assert len(answered(done.stdout)) == 3, done.stderr
    assert f"2 of 3 inputs have more than {length} tokens (max_length)" in done.stderr
    quiet = subprocess.run([*command, "-q"], capture_output=True, text=True)
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


@pytest.mark.end_to_end
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


def test_mistakes_are_named(exported, models, loads_once, tmp_path):
    saved = exported("classification")
    with pytest.raises(UserError, match="exists already"):
        models("classification").export(saved)
    with pytest.raises(UserError, match="no checkpoint in .*: expected a run folder"):
        predict.run(str(tmp_path), ["text"], None, None)
    with pytest.raises(UserError, match="checkpoint not found: .*/nothing; give a folder"):
        predict.run(str(tmp_path / "nothing"), ["text"], None, None)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "cat"}\n{"txt": "dog"}\n')
    with pytest.raises(UserError, match="bad.jsonl, line 2: no text under 'text'"):
        predict.run(str(saved), [], str(bad), None)
