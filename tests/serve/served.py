"""Small exports of every family, and how a server of them is run."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
import uvicorn

import bert_tf
from bert_tf.serve.app import Server
from bert_tf.serve.models import Source
from tests.tasks import tiny_objects as tiny

TEXTS = [
    "the cat sat",
    "",
    "a [MASK] ran",
    "Dog!",
    "the bird flew over the tree and the [MASK] sat under the log ." * 2,
]
CONTEXTS = ["the cat sat on the mat", "é dog ran under the log . " * 4, "a fish swam", "", "cat"]
LISTS = [["sat", "ran on"], ["swam", "flew over the tree", "a"], ["cat", "dog"], [*"abcde"]]


class Served(NamedTuple):
    """A model to serve, with rows and options that it takes."""

    model: Any
    rows: list[dict[str, Any]]
    options: tuple[dict[str, Any], ...] = ({},)


def models() -> dict[str, Served]:
    """A model of each family by the name that it is served by."""
    texts = [{"text": text} for text in TEXTS]
    pairs = [{"text_a": a, "text_b": b} for a, b in zip(TEXTS, CONTEXTS, strict=True)]
    nli = ["contradiction", "entailment", "neutral"]

    def lists(text: str, group: str) -> list[dict[str, Any]]:
        return [{text: a, group: b} for a, b in zip(CONTEXTS, LISTS, strict=False)]

    return {
        "reviews": Served(tiny.classifier(labels=["bad", "good"]), texts, ({}, {"abstain": 0.9})),
        "topics": Served(tiny.multi_labeller(labels=["cat", "dog", "log"]), texts),
        "stars": Served(tiny.regressor(), texts),
        "prices": Served(
            bert_tf.TextRegressor(tiny.encoder(), tiny.tokenizer(), targets=["a", "b"]), texts
        ),
        "endings": Served(tiny.chooser(), lists("context", "choices"), ({}, {"abstain": 0.9})),
        "rank": Served(tiny.reranker(), lists("query", "passages")),
        "zero": Served(
            bert_tf.ZeroShotClassifier(tiny.encoder(), tiny.tokenizer(), nli),
            lists("text", "candidates"),
        ),
        "vec": Served(tiny.embedder(), texts, ({}, {"truncate_dim": 4})),
        "qa": Served(
            tiny.answerer(),
            [{"question": "cat", "context": each} for each in CONTEXTS],
        ),
        "tags": Served(tiny.tagger(labels=["O", "B-x", "I-x"]), texts, ({}, {"min_score": 0.4})),
        "gaps": Served(
            tiny.filler(), [{"text": f"{text} [MASK]"} for text in TEXTS], ({}, {"top_k": 5})
        ),
        "next": Served(tiny.follower(), pairs),
    }


class HalfPlusTwo(tf.Module):
    """A model of another program, with signatures of numbers."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def half(self, x):
        return {"y": x / 2 + 2}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.int32, "sensor"),
            tf.TensorSpec([None], tf.string, "image"),
        ]
    )
    def many(self, sensor, image):
        return {"sum": tf.reduce_sum(sensor, 1), "image_bytes": image, "count_bytes": sensor[:, 0]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def total(self, x):
        return {"total": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def scalar(self, x):
        return {"y": x}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "x")])
    def any_rank(self, x):
        tf.debugging.assert_less(x, 100.0, "too much")
        return {"y": 2 * x}

    def save(self, folder: Path) -> None:
        signatures = {
            "serving_default": self.half,
            "many": self.many,
            "total": self.total,
            "scalar": self.scalar,
            "any_rank": self.any_rank,
        }
        tf.saved_model.save(self, str(folder), signatures)


def loaded(paths: dict[str, Path], *limits: Any) -> Server:
    """A server of some models that takes requests."""
    server = Server([Source(name, str(path)) for name, path in paths.items()], *limits)
    server.models.prepare()
    server.models.load()
    return server


@contextlib.contextmanager
def running(server: Server) -> Iterator[str]:
    """The address of a server that runs on a thread."""
    config = uvicorn.Config(server.app([]), port=0, log_level="warning", lifespan="off")
    web = uvicorn.Server(config)
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    while not web.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}"
    web.should_exit = True
    thread.join()
