"""Hugging Face transformers on PyTorch, from strings to answers."""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from benchmarks.serving.contestant import Answerer, run
from benchmarks.serving.texts import MAX_ANSWER, MAX_LENGTH, N_BEST, STRIDE
from benchmarks.speed.weights import spread

_MODELS = {
    "classification": transformers.AutoModelForSequenceClassification,
    "question_answering": transformers.AutoModelForQuestionAnswering,
}


def write(task: str, checkpoint: str, out: str) -> None:
    """Writes the checkpoint with a head for the task: a random one if the checkpoint has none."""
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = _MODELS[task].from_pretrained(checkpoint)
    spread(model)
    model.save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(checkpoint).save_pretrained(out)


def load(settings: dict[str, Any]) -> Answerer:
    """A function that answers a batch of texts with the texts of labels or answers."""
    torch.set_num_threads(settings["threads"])
    # The tokenizer would warn of texts longer than the model's limit, before they are cut.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = _MODELS[settings["task"]].from_pretrained(
        settings["model"],
        attn_implementation="sdpa",
        dtype=getattr(torch, settings["precision"]),
    )
    model.eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["model"])
    answer = {"classification": _labels, "question_answering": _answers}[settings["task"]]
    return lambda texts: answer(model, tokenizer, **texts)


def _labels(model: Any, tokenizer: Any, text: list[str]) -> list[str]:
    length = MAX_LENGTH["classification"]
    batch = tokenizer(text, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.inference_mode():
        probabilities = model(**batch).logits.float().softmax(-1)
    return [model.config.id2label[i] for i in probabilities.argmax(-1).tolist()]


def _answers(model: Any, tokenizer: Any, question: list[str], context: list[str]) -> list[str]:
    encoded = tokenizer(question, context, return_offsets_mapping=True)
    windows = [window for row in range(len(question)) for window in _windows(encoded, row)]
    features = [{"input_ids": w.ids, "token_type_ids": w.types} for w in windows]
    batch = tokenizer.pad(features, return_tensors="pt")
    with torch.inference_mode():
        outputs = model(**batch)
    starts, ends = (each.float().numpy() for each in (outputs.start_logits, outputs.end_logits))
    candidates: list[list[tuple[float, int, int]]] = [[] for _ in question]
    for number, window in enumerate(windows):
        of_context = np.zeros(starts.shape[1], bool)
        of_context[window.first : len(window.ids) - 1] = True
        for score, start, end in _best_spans(starts[number], ends[number], of_context):
            first, last = window.offsets[start][0], window.offsets[end][1]
            candidates[window.row].append((score, first, last))
    best = [max(found) for found in candidates]
    return [text[start:end] for text, (_, start, end) in zip(context, best, strict=True)]


class _Window(NamedTuple):
    """A question with a piece of its context.

    Attributes:
        row: which question.
        ids: of the tokens.
        types: of the tokens, 1 from the context on.
        first: place of the context's first token.
        offsets: each token's characters in the context; (0, 0) for those of the question.
    """

    row: int
    ids: list[int]
    types: list[int]
    first: int
    offsets: list[tuple[int, int]]


def _windows(encoded: Any, row: int) -> Iterator[_Window]:
    """Windows of the context that start `STRIDE` tokens apart.

    The tokenizer's own stride is the overlap of two windows, so it would make fewer windows.
    """
    ids, offsets = encoded["input_ids"][row], encoded["offset_mapping"][row]
    first, last = encoded.sequence_ids(row).index(1), len(ids) - 1
    room = MAX_LENGTH["question_answering"] - first - 1
    for start in range(first, max(first + 1, last - room + STRIDE), STRIDE):
        end = min(start + room, last)
        yield _Window(
            row,
            ids[:first] + ids[start:end] + ids[-1:],
            [0] * first + [1] * (end - start + 1),
            first,
            [(0, 0)] * first + offsets[start:end],
        )


def _best_spans(
    start: np.ndarray, end: np.ndarray, allowed: np.ndarray
) -> list[tuple[float, int, int]]:
    """The best scores with first and last token, among all spans that are not too long."""
    start, end = (np.where(allowed, each, -np.inf) for each in (start, end))
    scores = start[:, None] + end[None, :]
    # From each start to the last token that an answer may have.
    scores = np.where(np.tri(*scores.shape, -1, dtype=bool), -np.inf, scores)
    scores = np.where(np.tri(*scores.shape, MAX_ANSWER - 1, dtype=bool), scores, -np.inf)
    flat = scores.ravel()
    best = np.argpartition(-flat, N_BEST)[:N_BEST]
    return [(float(flat[i]), *divmod(int(i), len(start))) for i in best if np.isfinite(flat[i])]


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        run(load)
