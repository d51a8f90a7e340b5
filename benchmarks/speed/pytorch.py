"""Hugging Face transformers on PyTorch, with its fastest attention, optionally compiled."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.speed import inputs
from benchmarks.speed.turns import Job, serve

_NAMES = {
    "input_word_ids": "input_ids",
    "input_mask": "attention_mask",
    "input_type_ids": "token_type_ids",
}


_CLASSIFIER = transformers.BertForSequenceClassification


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(0)
    return _WORKS[settings["work"]](settings)


def encode(settings: dict[str, Any]) -> Job:
    """Token ids to the last layer, without padding."""
    model = _load(transformers.BertModel, settings)
    batch, last = {}, []

    def resize(rows: int, length: int) -> None:
        batch.update(_tensors(inputs.full_batch(rows, length, 30522)))

    def step() -> None:
        with torch.inference_mode():
            last[:] = [model(**batch).last_hidden_state]

    resize(settings["batch"], settings["length"])
    return Job(step, lambda: last[0].float().numpy(), resize)


def classify(settings: dict[str, Any]) -> Job:
    """Texts to probabilities, padded to the longest of each batch."""
    model = _load(_CLASSIFIER, settings)
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["weights"])
    texts = inputs.texts(settings["vocabulary_file"], settings["batch"])
    last = []

    def step() -> None:
        with torch.inference_mode():
            batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
            last[:] = [model(**batch).logits.float().softmax(-1)]

    return Job(step, lambda: last[0].numpy())


def finetune(settings: dict[str, Any]) -> Job:
    """One update of a classifier; every batch has another length."""
    model = _load(_CLASSIFIER, settings).train()
    optimizer = _optimizer(model)
    batches = _endless(lambda seed: inputs.padded_batch(settings["batch"], 30522, seed))

    def step() -> None:
        batch = next(batches)
        labels = batch.pop("labels").long()
        with _autocast(settings):
            loss = model(**batch, labels=labels).loss
        _update(model, optimizer, loss)

    return Job(step)


def pretrain(settings: dict[str, Any]) -> Job:
    """One update of both heads; the masked LM's logits at the predicted positions only."""
    model = _load(transformers.BertForPreTraining, settings).train()
    optimizer = _optimizer(model)
    size = settings["batch"], settings["length"], 30522
    batches = _endless(lambda seed: inputs.pretraining_batch(*size, seed))

    def step() -> None:
        batch = next(batches)
        positions = batch.pop("masked_lm_positions").long()
        ids, labels = batch.pop("masked_lm_ids").long(), batch.pop("next_sentence_labels").long()
        batch.pop("masked_lm_weights")
        with _autocast(settings):
            outputs = model.bert(**batch)
            chosen = outputs.last_hidden_state.gather(
                1, positions[..., None].expand(-1, -1, model.config.hidden_size)
            )
            logits, next_sentence = model.cls(chosen, outputs.pooler_output)
            entropy = torch.nn.functional.cross_entropy
            loss = entropy(logits.flatten(0, 1), ids.flatten()) + entropy(next_sentence, labels)
        _update(model, optimizer, loss)

    return Job(step)


def _load(kind: type, settings: dict[str, Any]) -> Any:
    model = kind.from_pretrained(settings["weights"], attn_implementation="sdpa").eval()
    serving = settings["work"] in ("encode", "classify")
    if serving and settings["precision"] == "bfloat16":
        model = model.to(torch.bfloat16)
    return torch.compile(model) if settings.get("compiled") else model


def _autocast(settings: dict[str, Any]) -> Any:
    return torch.autocast("cpu", torch.bfloat16, enabled=settings["precision"] == "bfloat16")


def _optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-5, eps=1e-6, weight_decay=0.01, fused=True)


def _update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _tensors(batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {_NAMES.get(name, name): torch.from_numpy(value) for name, value in batch.items()}


def _endless(batch: Callable[[int], dict[str, np.ndarray]]) -> Iterator[dict[str, torch.Tensor]]:
    seed = 0
    while True:
        yield _tensors(batch(seed))
        seed += 1


_WORKS = {"encode": encode, "classify": classify, "finetune": finetune, "pretrain": pretrain}

if __name__ == "__main__":
    serve(prepare)
