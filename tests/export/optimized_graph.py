"""`python -P optimized_graph.py GELU`: the operations that TensorFlow runs for exports.

Exports a small model with that form of GELU, loads it and runs it. Prints a JSON object: the
operations of each part of the model, such as "layer_0", as operation -> number, and the largest
difference of its scores.
"""

import collections
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# oneDNN's kernels are on by default only on processors with AVX512-VNNI and later.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: E402

from bert_tf import QuestionAnswerer  # noqa: E402
from bert_tf.encoder.encoder import Encoder  # noqa: E402
from tests import tiny  # noqa: E402

TEXTS = {
    "question": tf.constant(["the cat", "dogs"]),
    "context": tf.constant(["the cat sat on the mat .", "dogs"]),
}


def main() -> None:
    """Prints what was found."""
    print(json.dumps(_operations(sys.argv[1])))


def _operations(activation: str) -> dict:
    """The operations that one answer of an export takes."""
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_act": activation}
    keras.utils.set_random_seed(0)
    encoder = Encoder(tiny.encoder_config(64, **sizes))
    model = QuestionAnswerer(encoder, tiny.tokenizer(), max_question_length=8)
    random = np.random.RandomState(0)
    for weight in model.weights:
        if weight.ndim == 1:  # a bias must not be zero: its addition would be left out
            weight.assign(weight + 0.1 * random.normal(size=weight.shape))
    with tempfile.TemporaryDirectory() as folder:
        served = _exported(model, f"{folder}/model").signatures["serving_default"]
        found = served(**TEXTS)  # TensorFlow has optimized it for the model card
        with tf.profiler.experimental.Profile(f"{folder}/logs"):
            served(**TEXTS)
        (trace,) = Path(folder, "logs").rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    expected = model.signatures()["serving_default"].answer(TEXTS)["nbest_scores"]
    names = (
        plane.event_metadata[event.metadata_id].name
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )
    parts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for name in names:
        if name.startswith("question_answerer") and ":" in name:
            path, operation = name.rsplit(":", 1)
            # Keras numbers layers: question_answerer_1/layer_0_1/…
            parts[path.split("/")[1].removesuffix("_1")][operation] += 1
    difference = tf.reduce_max(tf.abs(found["nbest_scores"] - expected))
    return {"parts": parts, "difference": float(difference)}


def _exported(model: QuestionAnswerer, folder: str) -> Any:
    """An export, as it is loaded while it is written."""
    load, loaded = tf.saved_model.load, []
    tf.saved_model.load = lambda path: loaded.append(load(path)) or loaded[0]
    model.export(folder)
    return loaded[0]


if __name__ == "__main__":
    main()
