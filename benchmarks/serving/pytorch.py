"""Hugging Face transformers on PyTorch, from strings to answers."""

import sys
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.serving.contestant import Answerer, run
from benchmarks.serving.texts import MAX_ANSWER, MAX_LENGTH, N_BEST, STRIDE

_MODELS = {
    "classification": transformers.AutoModelForSequenceClassification,
    "question_answering": transformers.AutoModelForQuestionAnswering,
}


def write(task: str, checkpoint: str, out: str) -> None:
    """The checkpoint with a head for the task, a random one where it has none."""
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    _MODELS[task].from_pretrained(checkpoint).save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(checkpoint).save_pretrained(out)


def load(settings: dict[str, Any]) -> Answerer:
    """What answers a batch of texts with the texts of labels or answers."""
    torch.set_num_threads(settings["threads"])
    transformers.utils.logging.disable_progress_bar()
    model = _MODELS[settings["task"]].from_pretrained(
        settings["model"],
        attn_implementation="sdpa",
        dtype=getattr(torch, settings["precision"]),
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["model"])
    answer = {"classification": _labels, "question_answering": _answers}[settings["task"]]
    return lambda texts: answer(model.eval(), tokenizer, **texts)


def _labels(model: Any, tokenizer: Any, text: list[str]) -> list[str]:
    length = MAX_LENGTH["classification"]
    batch = tokenizer(text, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.inference_mode():
        probabilities = model(**batch).logits.float().softmax(-1)
    return [model.config.id2label[i] for i in probabilities.argmax(-1).tolist()]


def _answers(model: Any, tokenizer: Any, question: list[str], context: list[str]) -> list[str]:
    encoded = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=MAX_LENGTH["question_answering"],
        stride=STRIDE,
        padding=True,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_tensors="pt",
    )
    rows = encoded.pop("overflow_to_sample_mapping").tolist()
    offsets = encoded.pop("offset_mapping").numpy()
    with torch.inference_mode():
        outputs = model(**encoded)
    starts, ends = (each.float().numpy() for each in (outputs.start_logits, outputs.end_logits))
    candidates: list[list[tuple[float, int, int]]] = [[] for _ in question]
    for window, row in enumerate(rows):
        of_context = np.array([part == 1 for part in encoded.sequence_ids(window)])
        best = _best_spans(starts[window], ends[window], of_context)
        for score, start, end in best:
            first, last = offsets[window, start, 0], offsets[window, end, 1]
            candidates[row].append((score, int(first), int(last)))
    best = [max(found) for found in candidates]
    return [text[start:end] for text, (_, start, end) in zip(context, best, strict=True)]


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
