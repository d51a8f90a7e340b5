"""Texts that are hard to work on, and what every answer to any text must be."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests import tiny

Rows = Mapping[str, np.ndarray]

# Each stands under every input of a family at least once.
HARD = [
    b"",
    b" \t\n",
    b"\0",
    b"c\0at \0 dog\0",
    b"\xff\xfe\xc3 \x80 cat \xf0\x9f dog \xed\xa0\x80",
    "\N{PILE OF POO} cat 👩\u200d🔬\U0001f3fd e\u0301".encode(),
    "\u202e\u05d0\u05d1 cat \u05d2\u202c مرحبا".encode(),
    "\ufeff\u200b\u00ad\u2028中文 cat\u3000".encode(),
    b"[CLS] [SEP] [MASK] [PAD] [MASK]",
    b"cat sat on the mat. " * 300,
    b"x" * 5000,
    b"!?" * 2000,
    b"the cat sat on the mat.",
]
_CHARACTERS = [*map(chr, range(0x250)), *"中한\u0301\u05d0\u202e\u200d😂👩\ufeff\U0001f3fd\u3000"]
_CHARACTERS += [*tiny.WORDS, *"     ...", "[MASK]", "'s", "https://", "U.S."]


def hard_rows(specs: Mapping[str, tf.TensorSpec]) -> Rows:
    """All of `HARD` for each input of a signature; every row has others under its names."""
    rows = {}
    for place, (name, spec) in enumerate(sorted(specs.items())):
        texts = np.array(HARD[place:] + HARD[:place], object)
        others = [texts, texts[::-1], np.full_like(texts, b"")]
        rows[name] = texts if spec.shape.rank == 1 else np.stack(others, axis=1)
    return rows


def random_text(source: random.Random, longest: int) -> bytes:
    """Bytes, or mostly characters of which many are odd."""
    size = source.randint(0, longest)
    if source.random() < 0.3:
        return source.randbytes(size)
    return random_characters(source, size).encode()


def random_characters(source: random.Random, size: int) -> str:
    """`size` characters and words, of which many are odd."""
    return "".join(source.choices(_CHARACTERS, k=size))


def random_rows(source: random.Random, specs: Mapping[str, tf.TensorSpec], count: int) -> Rows:
    """`count` rows of random texts for the inputs of a signature."""
    rows = {}
    for name, spec in specs.items():
        shape = [count] if spec.shape.rank == 1 else [count, source.randint(0, 4)]
        longest = 120 if name == "context" else 50
        values = [random_text(source, longest) for _ in range(int(np.prod(shape)))]
        rows[name] = np.array(values, object).reshape(shape)
    return rows


def ask(signature: Any, rows: Rows) -> dict[str, np.ndarray]:
    """The answers of a loaded signature, as arrays; every output has one row for each input row."""
    tensors = {name: tf.constant(values, tf.string, values.shape) for name, values in rows.items()}
    answers = {name: value.numpy() for name, value in signature(**tensors).items()}
    batch = len(next(iter(rows.values())))
    for name, value in answers.items():
        assert len(value) == batch, name
        form = signature.structured_outputs[name]
        assert form.shape.is_compatible_with(value.shape), name
        assert value.dtype == (object if form.dtype == tf.string else form.dtype.as_numpy_dtype)
        if value.dtype.kind == "f":
            assert np.isfinite(value).all(), name
    return answers


def check(rows: Rows, answers: Mapping[str, np.ndarray], labels: Sequence[bytes]) -> None:
    """Raises AssertionError if an answer is not one that its family may give.

    Args:
        rows: the inputs.
        answers: the outputs for them.
        labels: the names of the classes that the model has.
    """
    if "candidates" in rows:
        _check_candidates(rows["candidates"], answers)
    elif "label" in answers:
        _check_label(answers, labels)
    elif "labels" in answers and "classes" in answers:
        _check_labels(answers, labels)
    elif "choice" in answers:
        _check_choice(rows["choices"], answers)
    elif "order" in answers:
        _check_order(rows["passages"], answers)
    elif "answer" in answers:
        _check_answer(rows["context"], answers)
    elif "words" in answers:
        _check_parts(rows, answers, "words", "labels", labels)
    elif "entities" in answers:
        types = [label[2:] for label in labels if label != b"O"]
        _check_parts(rows, answers, "entities", "types", types)
    elif "tokens" in answers:
        _check_fillings(rows["text"], answers)
    elif "is_next" in answers:
        assert ((answers["is_next"] >= 0) & (answers["is_next"] <= 1)).all()
    else:
        assert answers.keys() <= {"score", "embedding"}


def _check_label(answers: Mapping[str, np.ndarray], labels: Sequence[bytes]) -> None:
    probabilities = answers["probabilities"]
    assert probabilities.shape == (len(probabilities), len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    for names, label, row in zip(answers["classes"], answers["label"], probabilities, strict=True):
        assert names.tolist() == list(labels) and label == names[row.argmax()]


def _check_labels(answers: Mapping[str, np.ndarray], labels: Sequence[bytes]) -> None:
    """The labels that are given come first, the most probable before the others."""
    columns = (answers[name] for name in ("classes", "labels", "probabilities"))
    for names, given, row in zip(*columns, strict=True):
        assert names.tolist() == list(labels)
        assert ((row >= 0) & (row <= 1)).all()
        order = [names[i] for i in np.argsort(-row, kind="stable") if row[i] >= 0.5]
        assert sorted(order) == sorted(name for name in given if name)
        assert all(name == b"" for name in given[len(order) :])


def _check_choice(choices: np.ndarray, answers: Mapping[str, np.ndarray]) -> None:
    assert answers["probabilities"].shape == choices.shape
    columns = answers["choice"], answers["probabilities"]
    for row, choice, probabilities in zip(choices, *columns, strict=True):
        real = row != b""
        assert not probabilities[~real].any()
        if real.any():
            assert real[choice] and choice == probabilities.argmax()
            np.testing.assert_allclose(probabilities.sum(), 1, atol=1e-5)
        else:
            assert choice == -1


def _check_candidates(candidates: np.ndarray, answers: Mapping[str, np.ndarray]) -> None:
    assert answers["probabilities"].shape == candidates.shape
    for row, label, probabilities in zip(
        candidates, answers["label"], answers["probabilities"], strict=True
    ):
        real = row != b""
        assert not probabilities[~real].any()
        assert label == (row[probabilities.argmax()] if real.any() else b"")
        if real.sum() == 1:  # alone, it has a probability of its own
            assert 0 <= probabilities.sum() <= 1
        elif real.any():
            np.testing.assert_allclose(probabilities.sum(), 1, atol=1e-5)


def _check_order(passages: np.ndarray, answers: Mapping[str, np.ndarray]) -> None:
    assert answers["order"].shape == answers["scores"].shape == passages.shape
    for row, order, scores in zip(passages, answers["order"], answers["scores"], strict=True):
        real = row != b""
        count = real.sum()
        assert {*order[:count].tolist()} == {*np.flatnonzero(real).tolist()}
        assert (order[count:] == -1).all() and not scores[~real].any()
        assert (np.diff(scores[order[:count]]) <= 0).all()


def _check_answer(contexts: np.ndarray, answers: Mapping[str, np.ndarray]) -> None:
    names = ("answer", "start", "end", "score", "nbest_answers", "nbest_scores")
    for text, *row in zip(contexts, *(answers[name] for name in names), strict=True):
        answer, start, end, score, nbest, scores = row
        if start < 0:
            assert (answer, start, end, score) == (b"", -1, -1, 0)
        else:
            assert text[start:end] == answer != b"" and answer == nbest[0]
            assert score == scores[0]
            np.testing.assert_allclose(scores.sum(), 1, atol=1e-5)
        assert all(each in text for each in nbest)
        assert (np.diff(scores) <= 0).all() and not scores[nbest == b""].any()


def _check_parts(
    rows: Rows, answers: Mapping[str, np.ndarray], of: str, kinds: str, known: Sequence[bytes]
) -> None:
    """Words or entities are cut out by their offsets, in order, and padding comes last."""
    if "words" in rows:
        np.testing.assert_array_equal(answers["words"], rows["words"])
        texts = [_joined(words) for words in rows["words"]]
    else:
        texts = rows["text"]
    columns = (answers[name] for name in (of, kinds, "starts", "ends", "scores"))
    for text, parts, labels, starts, ends, scores in zip(texts, *columns, strict=True):
        real = starts >= 0
        count = int(real.sum())
        assert real[:count].all()
        assert parts[:count].tolist() == [
            text[i:j] for i, j in zip(starts[:count], ends[:count], strict=True)
        ]
        assert (np.diff(starts[:count]) >= 0).all()
        assert set(labels[:count]) <= set(known)
        assert ((scores[:count] > 0) & (scores[:count] <= 1.0001)).all()
        assert set(parts[count:]) | set(labels[count:]) <= {b""}
        assert (ends[count:] == -1).all() and not scores[count:].any()


def _joined(words: np.ndarray) -> bytes:
    """The text that words make: "" at the end is padding."""
    row = words.tolist()
    while row and not row[-1]:
        row.pop()
    return b" ".join(row)


def _check_fillings(texts: np.ndarray, answers: Mapping[str, np.ndarray]) -> None:
    pieces = {each.encode() for each in tiny.VOCABULARY}
    masks = answers["tokens"].shape[1]
    for text, tokens, probabilities in zip(
        texts, answers["tokens"], answers["probabilities"], strict=True
    ):
        filled = tokens[:, 0] != b"" if masks else np.zeros(0, bool)
        # Cleaning may take something out of "[MASK]" and so make another one.
        assert filled.sum() >= text.count(b"[MASK]")
        assert filled[: filled.sum()].all()
        assert set(tokens[filled].ravel()) <= pieces
        assert (np.diff(probabilities[filled]) <= 0).all() and not probabilities[~filled].any()
        assert (probabilities.sum(axis=1) <= 1 + 1e-5).all()
