"""What a model leaves behind in the process; `benchmarks.memory_growth` measures the bytes."""

import gc

import keras
import numpy as np
import pytest
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.framework.func_graph import FuncGraph

import bert_tf
from tests.tasks import tiny_objects as tiny

TEXTS, LABELS = ["the cat", "the dog sat"], ["good", "bad"]


def load_and_predict(path):
    bert_tf.load(path).predict(TEXTS, verbose=0)


def fit(path):
    bert_tf.load(path).fit(TEXTS, LABELS, batch_size=2, verbose=0)


def train_on_ids(path):
    model = bert_tf.load(path)
    model.compile(bert_tf.AdamW(0.001), rematerialize=True)
    ids = np.ones([2, 4], np.int32)
    x = {name: ids for name in ("input_word_ids", "input_mask", "input_type_ids")}
    model.train_on_batch(x, np.zeros(2, np.int32))
    model.evaluate(x, np.zeros(2, np.int32), verbose=0)


def export(path):
    bert_tf.load(path).export(
        path.with_name("again"), version=len([*path.parent.rglob("*.pb")]) + 1
    )


def left():
    """What is alive: models and graphs, and how many functions and gradients are registered."""
    gc.collect()
    alive = [each for each in gc.get_objects() if isinstance(each, keras.Model | FuncGraph)]
    functions = context.context().list_function_names()
    registry = ops.gradient_registry._registry
    return {"alive": len(alive), "functions": len(functions), "gradients": len(registry)}


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("model.keras", load_and_predict),
        ("saved_model", load_and_predict),
        ("model.tflite", load_and_predict),
        ("model.keras", fit),
        ("model.keras", train_on_ids),
        ("model.keras", export),
    ],
    ids=["keras", "saved_model", "litert", "fit", "train_on_ids", "export"],
)
def test_no_graph_outlives_its_model(tmp_path, name, use):
    path = tmp_path / name
    model = tiny.classifier(labels=LABELS)
    if name == "model.keras":
        model.save(path)
    else:
        model.export(path, format="litert" if path.suffix else "tf_saved_model")
    use(path)  # graphs of the tokenizer are kept for the next model
    before = left()
    use(path)
    assert left() == before
