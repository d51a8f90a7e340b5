"""MediaPipe's text tasks on models with metadata of bert_tf: answers, refusals, and its tokenizer.

MediaPipe has an environment of its own, `.venv-mediapipe/`; `make test-all` makes it.
"""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert.conversion import INPUTS
from bert_tf.export.litert.mediapipe import obstacle
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.text import Tokenizer
from tests import tiny
from tests.export.litert import networks
from tests.export.litert.networks import Echo, Network, converted, described

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ROOT / ".venv-mediapipe"
TEXTS = ("the cat sat on the mat .", "THE bad Dogs", "", "the cat sat " * 9, "a zebra ran")


def quantized(converter):
    converter.optimizations = [tf.lite.Optimize.DEFAULT]


def float16(converter):
    quantized(converter)
    converter.target_spec.supported_types = [tf.float16]


def int8(converter):
    """Activations too."""
    source = np.random.default_rng(0)
    mask, segment_ids = np.ones([1, 16], np.int32), np.zeros([1, 16], np.int32)
    rows = [source.integers(0, 20, [1, 16], np.int32) for _ in range(8)]
    quantized(converter)
    converter.representative_dataset = lambda: iter([[ids, mask, segment_ids] for ids in rows])


def multi_label(scores):
    return tf.sigmoid(scores)


def half(scores):
    return tf.cast(scores, tf.float16)


# What MediaPipe runs: the network, how it is converted, the length of its inputs.
TAKEN = {
    "float32": (Network(), {}, 16),
    "several labels": (Network(last=multi_label), {}, 16),
    "any number": (Network(last=tf.identity), {}, 16),
    "dynamic range": (Network(), {"setting": quantized}, 16),
    "float16": (Network(), {"setting": float16}, 16),
    "int8": (Network(), {"setting": int8}, 16),
    "any length": (Network(), {"length": None}, None),
    "length 512": (Network(), {"length": 512}, 512),
}
REFUSED = {
    "another type": (Network(), {"dtype": tf.int64}, "three inputs of int32"),
    "two texts": (Network(), {"batch": 2}, r"the same shape \[1, length\]"),
    "an output of float16": (Network(last=half), {}, "outputs of float32 or uint8"),
}


@pytest.mark.parametrize("case", [*TAKEN, *REFUSED])
def test_an_obstacle_is_named(case):
    network, form, why = (TAKEN | REFUSED)[case]
    found = obstacle(converted(network, **form), TokenizerSettings())
    assert found is None if case in TAKEN else found and re.search(why, found), found


def test_several_lengths_and_a_cased_vocabulary_are_obstacles(tmp_path):
    model = networks.converted_for_lengths(Network(), (8, 16), tmp_path / "model")
    found = obstacle(model, TokenizerSettings())
    assert found == "MediaPipe takes one length and one subgraph, but the model has 2"
    found = obstacle(converted(Network()), TokenizerSettings(lower_case=False))
    assert found == "MediaPipe lowercases every text, but the vocabulary is cased"


def ask(folder, *jobs):
    """MediaPipe's answers to (task, content of a file, texts)."""
    if not (ENVIRONMENT / "ready").is_file():
        pytest.skip(f"MediaPipe is not installed in {ENVIRONMENT}; make it: make test-all")
    lines = []
    for number, (task, content, texts) in enumerate(jobs):
        path = folder / f"{number}.tflite"
        path.write_bytes(content)
        lines.append([task, str(path), texts])
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("ask_mediapipe.py")],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    if "cannot open shared object" in str(found):
        pytest.skip(f"MediaPipe requires libEGL and libGLESv2 (Debian: libegl1, libgles2): {found}")
    return found


@pytest.mark.slow
def test_mediapipe_answers_as_the_interpreter(tmp_path, tokenizer):
    jobs, expected = [], []
    for network, form, length in TAKEN.values():
        model = converted(network, **form)
        classifier, embedder = described(model), described(model, labels=None)
        rows = [networks.answers(classifier, tokenizer, text, length) for text in TEXTS]
        jobs += [("classify", classifier, TEXTS), ("embed", embedder, TEXTS)]
        named = [dict(zip(networks.LABELS, row.tolist(), strict=True)) for row in rows]
        expected += [named, [row.tolist() for row in rows]]

    found = ask(tmp_path, *jobs)

    for case, answer, right in zip(np.repeat([*TAKEN], 2), found, expected, strict=True):
        assert "error" not in answer, (case, answer)
        for one, other in zip(answer, right, strict=True):
            assert one == pytest.approx(other, abs=2e-5), case
    # The texts differ, and so do the answers.
    assert len({tuple(each.values()) for each in found[0]}) >= 4


@pytest.fixture
def exported(lite_file):
    """Gives the bytes of the file of a family."""
    return lambda family, **settings: lite_file(family, **settings).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["classification", "multi_label", "embedding"])
def test_mediapipe_answers_as_the_model(models, exported, tmp_path, family):
    job = "embed" if family == "embedding" else "classify"
    (found,) = ask(tmp_path, (job, exported(family), TEXTS))

    expected = models(family).predict([*TEXTS], verbose=0)
    for one, other in zip(found, expected, strict=True):
        right = other.tolist() if family == "embedding" else other["probabilities"]
        assert one == pytest.approx(right, abs=2e-5)


@pytest.mark.slow
def test_mediapipe_refuses_files_that_are_not_for_it(exported, tmp_path):
    files = [exported("pair"), exported("regression"), exported("classification", lengths=(8, 16))]
    found = ask(tmp_path, *(("classify", content, TEXTS) for content in files))
    assert all("error" in answer for answer in found), found


@pytest.mark.end_to_end
def test_what_mediapipe_lacks_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "bert_tf")
    cased = Tokenizer([*tiny.VOCABULARY, "Cat"], lower_case=False)
    sizes = {"vocab_size": len(tiny.VOCABULARY) + 1, "num_hidden_layers": 1}
    encoder = Encoder(tiny.encoder_config(8, **sizes))
    model = bert_tf.TextClassifier(encoder, cased, ["bad", "good"], pair=False)
    model.export(tmp_path / "cased.tflite", format="litert", lengths=[8])
    assert "MediaPipe cannot run the file: MediaPipe lowercases every text" in caplog.text
    model = bert_tf.TextClassifier(encoder, tiny.tokenizer(), ["bad", "good"], pair=False)
    model.export(tmp_path / "uncased.tflite", format="litert", lengths=[8])
    assert "keeps accents" in caplog.text


@pytest.mark.slow
def test_mediapipe_refuses_what_has_an_obstacle(tmp_path):
    models = [converted(network, **form) for network, form, _ in REFUSED.values()]
    models.append(networks.converted_for_lengths(Network(), (8, 16), tmp_path / "model"))

    found = ask(
        tmp_path,
        *[("classify", described(model), TEXTS) for model in models],
        *[("embed", described(model, labels=None), TEXTS) for model in models],
        ("classify", described(converted(Network()), labels=("good", "bad")), TEXTS),
    )

    assert all("error" in answer for answer in found), found


@pytest.mark.slow
def test_the_tokenizers_differ_as_documented(tmp_path):
    pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat café cafe É e [ ] mask . 中 文 a b".split()
    same = ("The CAT.", "[MASK] the", "中文", "a" * 99, "a b", "zebra")
    differ = {
        "café": ["café"],
        "cafe\u0301": ["[UNK]"],
        "É": ["É"],
        "a\u00a0b": ["[UNK]"],
        "a\u200b b": ["[UNK]", "b"],
    }
    tokenizer = Tokenizer(pieces)
    texts = [*same, *differ]
    echo = described(converted(Echo()), pieces, labels=None)

    (rows,) = ask(tmp_path, ("embed", echo, texts))

    found = [[pieces[int(each)] for each in row if each][1:-1] for row in rows]
    ours = [[pieces[each] for each in row] for row in tokenizer.tokenize(texts).to_list()]
    assert found[: len(same)] == ours[: len(same)]
    assert dict(zip(differ, found[len(same) :], strict=True)) == differ
    assert not [text for text, a, b in zip(texts[6:], found[6:], ours[6:], strict=True) if a == b]


@pytest.mark.slow
def test_mediapipes_schema_has_the_metadata(tmp_path):
    (found,) = ask(tmp_path, ("describe", described(converted(Network())), []))

    (subgraph,) = found.pop("subgraphMetadata")
    assert found == {
        "name": "Tiny",
        "description": "A network for tests.",
        "version": "1",
        "minParserVersion": "1.1.0",
    }
    inputs = {each["name"]: each["description"] for each in subgraph["inputTensorMetadata"]}
    assert inputs == {name: f"The {name} of a text." for name in INPUTS}
    # 4 is BertTokenizerOptions, 5 VOCABULARY, 2 TENSOR_AXIS_LABELS.
    vocabulary = {"name": "vocab.txt", "type": 5}
    assert subgraph["inputProcessUnits"] == [
        {"optionsType": 4, "options": {"vocabFile": [vocabulary]}}
    ]
    assert subgraph["outputTensorMetadata"] == [
        {
            "name": "probabilities",
            "description": "What is computed.",
            "associatedFiles": [{"name": "labels.txt", "type": 2}],
        }
    ]
