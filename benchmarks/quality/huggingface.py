"""One fine-tuning by transformers on PyTorch, as its own examples do it.

    python -m benchmarks.quality.huggingface JOB.json [START]

The job names a checkpoint, a file of rows (see `benchmarks.quality.tasks`) and hyper-parameters;
the predictions on the held-out rows are written where it says. With START nothing is trained: the
script writes the untrained model, with the head that the seed draws, to that folder.
"""

import collections
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

Rows = list[dict[str, Any]]
_EVALUATION_BATCH = 64


def main(path: str, start: str | None = None) -> None:
    """Trains, predicts and writes `predictions` to the job's `result`; or writes to `start`."""
    job = json.loads(Path(path).read_text())
    rows = json.loads(Path(job["rows"]).read_text())
    transformers.set_seed(job["seed"])
    torch.set_num_threads(job["threads"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["checkpoint"])
    family = FAMILIES[rows["family"]](tokenizer, job, rows)
    if start is not None:
        family.model.save_pretrained(start)
        return
    _train(family.model, family.training_features(rows["train"]), family.collate, job)
    predictions = family.predict(rows["dev"])
    Path(job["result"]).write_text(json.dumps({"predictions": predictions}))


class _Family:
    """What differs between tasks: the model's class, features, and predictions."""

    model_class: type

    def __init__(self, tokenizer: Any, job: dict[str, Any], rows: dict[str, Any]):
        self.tokenizer, self.length, self.labels = tokenizer, job["max_length"], rows["labels"]
        transformers.utils.logging.set_verbosity_error()
        labels = {"num_labels": len(self.labels)} if self.labels else {}
        self.model = self.model_class.from_pretrained(job["checkpoint"], **labels)

    def training_features(self, rows: Rows) -> Rows:
        """Features with `labels`, or whatever the model's loss takes."""
        raise NotImplementedError

    def predict(self, rows: Rows) -> list:
        """A prediction for each row, or for QA for each question."""
        raise NotImplementedError

    def collate(self, features: Rows) -> dict[str, torch.Tensor]:
        """Pads to the longest."""
        names = ("input_ids", "token_type_ids", "attention_mask")
        targets = {k: [f[k] for f in features] for k in features[0] if k not in names}
        inputs = [{k: f[k] for k in names} for f in features]
        batch = self.tokenizer.pad(inputs, return_tensors="pt")
        return dict(batch) | {k: torch.tensor(v) for k, v in targets.items()}

    def outputs(self, features: Rows) -> Iterator[tuple[int, Any]]:
        """The model's output for each feature, with the feature's place; longest first."""
        self.model.eval()
        order = sorted(range(len(features)), key=lambda i: -_length(features[i]["input_ids"]))
        for start in range(0, len(order), _EVALUATION_BATCH):
            chosen = order[start : start + _EVALUATION_BATCH]
            with torch.inference_mode():
                result = self.model(**self.collate([features[i] for i in chosen]))
            for place, i in enumerate(chosen):
                yield i, {k: v[place].numpy() for k, v in result.items() if v.ndim}

    def best(self, features: Rows) -> list:
        """The arg max of the logits of each feature."""
        predictions: list = [None] * len(features)
        for i, output in self.outputs(features):
            predictions[i] = output["logits"].argmax(-1).tolist()
        return predictions


def _length(ids: list[int] | list[list[int]]) -> int:
    """Tokens of a text, or of all choices together."""
    return sum(len(each) if isinstance(each, list) else 1 for each in ids)


class _Classification(_Family):
    model_class = transformers.BertForSequenceClassification

    def training_features(self, rows: Rows) -> Rows:
        labels = [{"labels": row["label"]} for row in rows]
        return [f | label for f, label in zip(self._features(rows), labels, strict=True)]

    def predict(self, rows: Rows) -> list[int]:
        return self.best(self._features(rows))

    def _features(self, rows: Rows) -> Rows:
        return [
            dict(self.tokenizer(*row["texts"], truncation=True, max_length=self.length))
            for row in rows
        ]


class _MultipleChoice(_Family):
    model_class = transformers.BertForMultipleChoice

    def training_features(self, rows: Rows) -> Rows:
        labels = [{"labels": row["label"]} for row in rows]
        return [f | label for f, label in zip(self._features(rows), labels, strict=True)]

    def predict(self, rows: Rows) -> list[int]:
        return self.best(self._features(rows))

    def _features(self, rows: Rows) -> Rows:
        return [
            dict(
                self.tokenizer(
                    [row["context"]] * len(row["choices"]),
                    row["choices"],
                    truncation=True,
                    max_length=self.length,
                )
            )
            for row in rows
        ]

    def collate(self, features: Rows) -> dict[str, torch.Tensor]:
        choices = len(features[0]["input_ids"])
        names = ("input_ids", "token_type_ids", "attention_mask")
        flat = [{k: f[k][i] for k in names} for f in features for i in range(choices)]
        batch = super().collate(flat)
        batch = {k: v.view(len(features), choices, -1) for k, v in batch.items()}
        if "labels" in features[0]:
            batch["labels"] = torch.tensor([f["labels"] for f in features])
        return batch


class Tagging(_Family):
    """A tag for the first piece of each word."""

    model_class = transformers.BertForTokenClassification
    # The label that torch's cross-entropy ignores.
    IGNORED = -100

    def training_features(self, rows: Rows) -> Rows:
        features = []
        for row in rows:
            encoded = self._encode(row)
            labels, before = [], None
            for word in encoded.word_ids():
                new = word is not None and word != before
                labels.append(row["tags"][word] if new else self.IGNORED)
                before = word
            features.append(dict(encoded) | {"labels": labels})
        return features

    def predict(self, rows: Rows) -> list[list[int]]:
        encoded = [self._encode(row) for row in rows]
        tags = self.best([dict(each) for each in encoded])
        # The tag of words without a piece, and of words that are cut off.
        outside = self.labels.index("O")
        predictions = []
        for row, each, found in zip(rows, encoded, tags, strict=True):
            first: dict[int, int] = {}
            for place, word in enumerate(each.word_ids()):
                if word is not None:
                    first.setdefault(word, found[place])
            predictions.append([first.get(i, outside) for i in range(len(row["words"]))])
        return predictions

    def collate(self, features: Rows) -> dict[str, torch.Tensor]:
        longest = max(len(f["input_ids"]) for f in features)
        padded = [
            f | {"labels": f["labels"] + [self.IGNORED] * (longest - len(f["labels"]))}
            if "labels" in f
            else f
            for f in features
        ]
        return super().collate(padded)

    def _encode(self, row: dict[str, Any]) -> Any:
        return self.tokenizer(
            row["words"], is_split_into_words=True, truncation=True, max_length=self.length
        )


class _QuestionAnswering(_Family):
    model_class = transformers.BertForQuestionAnswering
    _STRIDE, _NBEST, _LONGEST = 128, 20, 30

    def training_features(self, rows: Rows) -> Rows:
        features = []
        for row in rows:
            start, end = row["start"], row["start"] + len(row["answer"])
            for encoded, offsets, context in self._windows(row):
                span = (0, 0)
                inside = [i for i in context if offsets[i][0] < end and offsets[i][1] > start]
                if inside and offsets[inside[0]][0] <= start and offsets[inside[-1]][1] >= end:
                    span = (inside[0], inside[-1])
                features.append(encoded | {"start_positions": span[0], "end_positions": span[1]})
        return features

    def predict(self, rows: Rows) -> dict[str, str]:
        windows, owners = [], []
        for number, row in enumerate(rows):
            for window in self._windows(row):
                windows.append(window)
                owners.append(number)
        candidates = collections.defaultdict(list)
        for i, output in self.outputs([encoded for encoded, _, _ in windows]):
            _, offsets, context = windows[i]
            candidates[owners[i]] += self._spans(output, offsets, context)
        return {
            row["id"]: self._answer(row["context"], candidates[number])
            for number, row in enumerate(rows)
        }

    def _windows(self, row: dict[str, Any]) -> Iterator[tuple[dict, list, list[int]]]:
        """Inputs, character offsets, and the places of the context's tokens."""
        # Its stride is the overlap of two windows; the reference's is the distance of their starts.
        question = len(self.tokenizer(row["question"])["input_ids"])
        room = self.length - question - 1
        encoded = self.tokenizer(
            row["question"],
            row["context"],
            truncation="only_second",
            max_length=self.length,
            stride=max(room - self._STRIDE, 0),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for i, offsets in enumerate(encoded["offset_mapping"]):
            context = [place for place, part in enumerate(encoded.sequence_ids(i)) if part == 1]
            names = ("input_ids", "token_type_ids", "attention_mask")
            yield {name: encoded[name][i] for name in names}, offsets, context

    def _spans(self, output: dict, offsets: list, context: list[int]) -> list[tuple]:
        allowed = np.full(len(output["start_logits"]), -np.inf)
        allowed[context] = 0
        starts, ends = output["start_logits"] + allowed, output["end_logits"] + allowed
        found = []
        for start in np.argsort(-starts)[: self._NBEST]:
            for end in np.argsort(-ends)[: self._NBEST]:
                if start <= end < start + self._LONGEST and np.isfinite(starts[start] + ends[end]):
                    score = float(starts[start] + ends[end])
                    found.append((score, offsets[start][0], offsets[end][1]))
        return found

    @staticmethod
    def _answer(context: str, candidates: list[tuple]) -> str:
        if not candidates:
            return ""
        _, start, end = max(candidates)
        return context[start:end]


FAMILIES = {
    "classification": _Classification,
    "multiple_choice": _MultipleChoice,
    "token_classification": Tagging,
    "question_answering": _QuestionAnswering,
}


def _train(model: Any, features: Rows, collate: Callable, job: dict[str, Any]) -> None:
    """All epochs, each in a random order."""
    per_epoch = -(-len(features) // job["batch_size"])
    steps = round(per_epoch * job["epochs"])
    random_batches = _random_batches(len(features), job["batch_size"], job["seed"])
    batches = (collate([features[i] for i in rows]) for rows in random_batches)
    losses = updates(model, itertools.islice(batches, steps), steps, job["learning_rate"])
    for step, loss in enumerate(losses, start=1):
        if step % 50 == 0:
            print(f"step {step}/{steps}  loss {loss:.4f}", file=sys.stderr, flush=True)


def _random_batches(count: int, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """Rows of one batch after the other, without end."""
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(count)
        yield from (order[start : start + batch_size] for start in range(0, count, batch_size))


def updates(
    model: Any, batches: Iterable[dict[str, torch.Tensor]], steps: int, learning_rate: float
) -> Iterator[float]:
    """The loop of transformers' examples: AdamW, linear warm-up and decay, clipping at 1.

    Args:
        model: a model of transformers with its loss built in.
        batches: the inputs of the model.
        steps: all steps of the training, for the schedule.
        learning_rate: the highest rate.

    Yields:
        The loss of a batch after its update.
    """
    no_decay = ("bias", "LayerNorm.weight")
    groups = [
        {
            "params": [p for n, p in model.named_parameters() if n.endswith(no_decay) != decays],
            "weight_decay": 0.01 if decays else 0.0,
        }
        for decays in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, round(0.1 * steps), steps)
    model.train()
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


if __name__ == "__main__":
    main(*sys.argv[1:])
