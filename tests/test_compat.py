"""Private symbols of TensorFlow and Keras: they are there, they are called, and nowhere else."""

import gc
import logging
import re
import weakref
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.python.framework import ops

import bert_tf
from bert_tf import compat
from tests import tiny
from tests.tasks import tiny_objects

ROOT = Path(__file__).resolve().parents[1]
# Private modules, and attributes with an underscore of objects other than `self`.
PRIVATE_MODULE = re.compile(r"\b(keras\.src|tensorflow\.python|tensorflow\.core|__internal__)\b")
SYMBOLS = """
    _backend_update_step _distributed_tf_update_step _distribution_strategy _get_variable_index
    _untrack_variable _lock_state _flatten_layers _symbolic_build _maybe_symbolic_build
    _compile_loss _compile_metrics _loss_tracker _tracker _functional
""".split()
PRIVATE_SYMBOL = re.compile(rf"\b({'|'.join(SYMBOLS)})\b")
SOURCES = sorted([*(ROOT / "bert_tf").rglob("*.py"), *(ROOT / "export").rglob("*.py")])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_private_symbols_stand_in_one_module(path):
    if path == ROOT / "bert_tf" / "compat.py":
        return
    code = [line.partition("#")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    used = [line for line in code if PRIVATE_MODULE.search(line) or PRIVATE_SYMBOL.search(line)]
    assert not used


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (keras.optimizers.Optimizer, "_backend_update_step"),
        (keras.optimizers.Optimizer, "_distributed_tf_update_step"),
        (keras.optimizers.Optimizer, "_get_variable_index"),
        (keras.Layer, "_lock_state"),
        (keras.Layer, "_flatten_layers"),
        (keras.Model, "_symbolic_build"),
        (keras.Model, "_maybe_symbolic_build"),
    ],
)
def test_what_keras_does_not_promise_is_there(owner, name):
    assert callable(getattr(owner, name))


def test_keras_calls_the_update_of_all_variables(monkeypatch):
    """Otherwise clipping and the skipping of updates would stop, and nobody would see it."""
    calls, update_all = [], bert_tf.AdamW.update_all

    def counted(self, gradients, variables, learning_rate):
        calls.append(len(gradients))
        return update_all(self, gradients, variables, learning_rate)

    monkeypatch.setattr(bert_tf.AdamW, "update_all", counted)
    variables = [keras.Variable([3.0, 4.0]), keras.Variable([0.0])]
    optimizer = bert_tf.AdamW(1.0, weight_decay=0.0, clip_norm=1.0, beta_1=0.0, beta_2=0.0)
    optimizer.apply([tf.constant([30.0, 40.0]), tf.constant([0.0])], variables)
    assert calls == [2]
    assert optimizer.index_of(variables[1].value) == 1


def test_a_built_model_gets_more_layers():
    model = bert_tf.TextClassifier(bert_tf.Encoder(tiny.encoder_config(16)), None, ["a", "b"])
    assert model.built
    model.more = keras.layers.Dense(2)
    model.encoder.more = keras.layers.Dense(2)
    with pytest.raises(ValueError, match="add new elements of state"):
        locked = keras.layers.Dense(2)
        locked.build([None, 2])
        locked.more = keras.layers.Dense(2)


def test_layers_below_are_those_inside():
    inner = keras.layers.Dense(2)
    outer = keras.Sequential([keras.Sequential([inner])])
    assert inner in compat.layers_below(outer)
    assert inner not in compat.layers_below(outer, recursive=False)
    assert outer not in compat.layers_below(outer)


def test_fit_on_devices_builds_nothing_again(monkeypatch):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = tiny_objects.classifier(labels=["bad", "good"])
        model.compile("adam")
    names = ("input_word_ids", "input_mask", "input_type_ids")
    ids = tf.TensorSpec([2, None], tf.int32)
    spec = dict.fromkeys(names, ids), tf.TensorSpec([2], tf.int32)
    compat.prepare_fit(model, strategy, lambda: spec)
    assert model.optimizer.built
    monkeypatch.setattr(type(model), "_symbolic_build", lambda *_, **__: pytest.fail("again"))
    model._maybe_symbolic_build(iterator=None)


@compat.custom_gradient
def tripled(x):
    """Twice x, with another gradient than that, so that it shows."""
    return 2 * x, lambda upstream: 3 * upstream


def differentiated(x):
    """Takes gradients of functions that call each other; returns the graph of one, weakly held."""
    inner = tf.function(lambda x: tripled(tf.cond(x[0] > 0, lambda: tripled(x), lambda: x)))
    outer = tf.function(lambda x: inner(x) + 1)
    outer(x)
    gc.collect()
    for function, expected in [(outer, 9), (inner, 9), (tripled, 3)]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_array_equal(tape.gradient(y, x), [expected] * 2)
    return weakref.ref(inner.get_concrete_function(x).graph)


def test_a_gradient_lives_as_long_as_its_graph():
    registry = ops.gradient_registry._registry
    gc.collect()
    before = set(registry)
    graph = differentiated(tf.constant([1.0, 2.0]))
    assert graph() is None or set(registry) > before  # it lives until garbage is collected
    gc.collect()
    assert graph() is None
    assert set(registry) <= before


def mapped():
    """An iterator over a dataset that calls a function of NumPy, and the function, weakly held."""

    def doubled(x):
        return 2 * x

    assert compat.numpy_function(doubled, [tf.constant(4)], tf.int32) == 8
    dataset = tf.data.Dataset.range(3).map(
        lambda x: compat.numpy_function(doubled, [x], tf.int64, stateful=False)
    )
    return iter(dataset), weakref.ref(doubled)


def test_a_numpy_function_lives_as_long_as_its_graph():
    iterator, function = mapped()
    gc.collect()
    assert [int(x) for x in iterator] == [0, 2, 4]
    del iterator
    gc.collect()
    assert function() is None


def test_several_models_give_no_retracing_notice():
    """TensorFlow logs that functions were traced again; messages about Keras's own are dropped."""

    class TensorFlowTrainer:
        def __init__(self):
            self.step = tf.function(lambda x: x + 1)

    def other():
        return tf.function(lambda x: x + 2)

    logger, seen, logged = tf.get_logger(), [], []
    before = lambda record: seen.append(record.getMessage()) or True  # noqa: E731
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logger.addFilter(before)
    logger.addHandler(handler)
    try:
        with compat.without_retracing_notice():
            for _ in range(7):
                TensorFlowTrainer().step(tf.constant(1))
            assert any("TensorFlowTrainer.__init__.<locals>.<lambda>" in each for each in seen)
            assert not logged
            for _ in range(7):
                other()(tf.constant(1))
            assert any("other.<locals>.<lambda>" in each for each in logged)
    finally:
        logger.removeHandler(handler)


def test_a_variable_of_keras_holds_another_and_its_optimizer_knows_it():
    holder, other = keras.Variable([2.0]), tf.Variable([1.0])
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build([holder])
    compat.put_variable(holder, other)
    optimizer.apply([tf.constant([0.5])], [holder])
    assert other.numpy().tolist() == holder.numpy().tolist() == [1.5]
    assert compat.in_safe_mode() is None


def test_variables_without_values_get_none_later():
    made = []

    def noting(make, **options):
        variable = make(**options)
        made.append(tuple(variable.shape))
        return variable

    with keras.StatelessScope(initialize_variables=False):
        keras.Variable(keras.initializers.Zeros(), (2,))
    with compat.without_values():
        keras.Variable(keras.initializers.Zeros(), (3,))
    with tf.variable_creator_scope(noting), keras.StatelessScope():
        pass
    assert made == [(2,)]


def test_a_tokenizer_has_its_model():
    tokenizer = tensorflow_text.FastWordpieceTokenizer(["[UNK]", "a"], unknown_token="[UNK]")
    buffer = compat.wordpiece_model(tokenizer)
    again = tensorflow_text.FastWordpieceTokenizer(model_buffer=tf.constant(buffer))
    assert again.tokenize(["a"]).to_list() == tokenizer.tokenize(["a"]).to_list()


def test_a_changed_saved_model_gets_a_new_fingerprint(tmp_path):
    module = tf.Module()
    module.serve = tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path)
    before = tf.saved_model.experimental.read_fingerprint(str(tmp_path))
    file = tmp_path / "saved_model.pb"
    saved = compat.SavedModel.FromString(file.read_bytes())
    saved.meta_graphs[0].meta_info_def.tags.append("other")
    file.write_bytes(saved.SerializeToString(deterministic=True))
    compat.write_fingerprint(str(tmp_path))
    after = tf.saved_model.experimental.read_fingerprint(str(tmp_path))
    assert before.saved_model_checksum != after.saved_model_checksum


def test_attributes_keep_a_function_apart():
    function = tf.function(
        lambda x: x + 1, experimental_attributes=compat.APART_ATTRIBUTES, autograph=False
    )
    graph = function.get_concrete_function(tf.TensorSpec([], tf.float32)).graph
    assert graph is not None
    definition = function.get_concrete_function(tf.TensorSpec([], tf.float32)).function_def
    assert definition.attr[compat.NO_INLINE].b
