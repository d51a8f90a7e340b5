"""A frozen export answers as the plain one does, and holds its weights once, as constants."""

import os
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from bert_tf import QuestionAnswerer, TextClassifier
from bert_tf.dependencies import FIXED_WEIGHTS
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.errors import UserError
from bert_tf.export import served_model
from bert_tf.export.precision import in_precision
from bert_tf.export.saving import save_hub, save_model
from bert_tf.export.served_model import Form
from bert_tf.export.sharded import SHARDS
from tests import tiny
from tests.export.conftest import tasks
from tests.export.requests import assert_same, meta_graph, request

IDS = {name: np.ones([2, 5], np.int32) for name in INPUTS}
FAST = {"freeze": True, "precision": "bfloat16"}


def answers(loaded):
    """What each signature says to a request of several rows."""
    return {name: each(**request(each)) for name, each in loaded.signatures.items()}


@pytest.mark.parametrize("family", tasks("classification", without=["multi_label"]))
def test_answers_stay_the_same(loaded, family):
    plain, frozen = answers(loaded(family)), answers(loaded(family, freeze=True))
    assert plain.keys() == frozen.keys()
    for signature, outputs in plain.items():
        assert_same(frozen[signature], outputs, tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.bfloat16
@pytest.mark.parametrize(
    ("family", "output"),
    [
        ("classification", "probabilities"),
        ("mlm", "probabilities"),
        ("nsp", "is_next"),
        ("embedding", "embedding"),
        ("regression", "score"),
    ],
)
def test_in_bfloat16_answers_are_close(loaded, family, output):
    plain = answers(loaded(family))["serving_default"][output]
    for options in (FAST, {"precision": "bfloat16"}):
        fast = answers(loaded(family, **options))["serving_default"][output]
        # Eight bits of precision, through two layers of weights far larger than BERT's.
        np.testing.assert_allclose(fast, plain, atol=0.05 * np.abs(plain).max())
        assert not np.array_equal(fast, plain)


@pytest.mark.end_to_end
@pytest.mark.bfloat16
@pytest.mark.parametrize("family", ["classification", pytest.param("mlm", marks=pytest.mark.slow)])
def test_a_plain_export_stores_its_matrices_in_the_serving_precision(
    exported, loaded, models, family
):
    weights = loaded(family, precision="bfloat16").weights
    assert {(each.dtype.name, each.shape.rank) for each in weights} == {("bfloat16", 2)}
    sizes = [
        sum(file.stat().st_size for file in (exported(family, **options) / "variables").iterdir())
        for options in ({}, {"precision": "bfloat16"})
    ]
    matrices = sum(w.numpy().size for w in models(family).weights if w.ndim > 1)
    assert sizes[0] - sizes[1] > 1.9 * matrices


@pytest.mark.slow
@pytest.mark.bfloat16
@pytest.mark.parametrize("family", ["mlm", "token_classification"])
def test_each_weight_is_in_the_file_once_in_the_serving_precision(exported, models, family):
    folder = exported(family, **FAST)
    data = (folder / "saved_model.pb").read_bytes()
    variables = sum(file.stat().st_size for file in (folder / "variables").iterdir())
    assert variables < 1000
    encoder = models(family).encoder
    # The kernel is in the form for CPUs; see `bert_tf.export.fused_norms` and `sharded`.
    kernel = encoder.blocks[0].intermediate.kernel.numpy() / 2**15
    shards = np.split(kernel, SHARDS, axis=1)
    for exact in (encoder.embeddings.word_embeddings.numpy(), *shards):
        assert data.count(exact.astype(ml_dtypes.bfloat16).tobytes()) == 1
        assert data.count(exact.tobytes()) == 0


@pytest.mark.parametrize(
    ("family", "settings", "functions"),
    [
        ("classification", {"freeze": True}, 6),
        pytest.param("mlm", FAST, 9, marks=[pytest.mark.slow, pytest.mark.bfloat16]),
    ],
)
def test_few_functions_hold_the_weights_and_the_optimizer_spares_them(
    exported, family, settings, functions
):
    """TensorFlow copies the weights to each function that reaches them when it loads the graph."""
    graph = meta_graph(exported(family, **settings)).graph_def
    library = {each.signature.name: each for each in graph.library.function}
    calls = {
        name: {attr.func.name for node in each.node_def for attr in node.attr.values()}
        for name, each in library.items()
    }
    reaching = {name for name, each in library.items() if "_noinline" in each.attr}
    assert reaching and all(library[name].attr["_tf_data_function"].b for name in reaching)
    options = [
        config_pb2.ConfigProto.FromString(node.attr["config_proto"].s)
        for each in library.values()
        for node in each.node_def
        if "f" in node.attr and node.attr["f"].func.name in reaching
    ]
    assert options
    assert all(each.graph_options.rewrite_options.disable_tfg_optimizer for each in options)
    before: set[str] = set()
    while before != reaching:
        before = set(reaching)
        reaching |= {name for name, called in calls.items() if called & reaching}
    assert len(reaching) == functions


def test_a_plain_export_keeps_its_weights_in_variables(exported, models):
    folder = exported("mlm")
    table = models("mlm").encoder.embeddings.word_embeddings.numpy().tobytes()
    assert (folder / "saved_model.pb").read_bytes().count(table) == 0
    files = [file.read_bytes() for file in (folder / "variables").iterdir()]
    assert sum(file.count(table) for file in files) == 1


@pytest.mark.slow
@pytest.mark.bfloat16
def test_nothing_of_keras_and_no_variable_of_the_model_is_left(exported, loaded):
    assert loaded("mlm", **FAST).signatures["serving_default"].variables == ()
    objects = meta_graph(exported("mlm", **FAST)).object_graph_def.nodes
    kinds = {each.user_object.identifier for each in objects if each.HasField("user_object")}
    assert not [kind for kind in kinds if "keras" in kind]


def test_other_sizes_of_a_batch_do_not_trace_a_frozen_model_again(models):
    served = served_model.ServedModel(models("classification"), Form(freeze=True))
    traces = []
    double = served.function(lambda x: traces.append(x) or 2 * x)
    graph = tf.function(lambda x: double(x) + double(x[:1]), autograph=False)
    np.testing.assert_array_equal(graph(tf.ones([2, 3])), 4 * np.ones([2, 3]))
    np.testing.assert_array_equal(graph(tf.ones([5, 4])), 4 * np.ones([5, 4]))
    assert len(traces) == 1


def test_a_model_that_cannot_be_frozen_is_refused(models, tokenizer, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="--freeze is not for --kind hub"):
        save_hub(models("hub"), tokenizer, tmp_path / "x", form=Form(freeze=True))
    monkeypatch.setattr(served_model, "_MOST_BYTES", 1000)
    with pytest.raises(UserError, match="GB, but a frozen graph holds at most 2 GB"):
        save_model(models("mlm"), tmp_path / "x", form=Form(freeze=True))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("family", "trains"), [("classification", False), ("hub", True)])
def test_only_what_trains_holds_gradients(exported, family, trains):
    """Gradients would be most of the functions, which take time to load."""
    folder = exported(family) / ("encoder" if family == "hub" else "")
    library = meta_graph(folder).graph_def.library
    nodes = [node for function in library.function for node in function.node_def]
    assert bool(library.registered_gradients) == trains
    assert any("_gradient_op_type" in node.attr for node in nodes) == trains


def test_layers_share_the_places_of_their_heads(exported):
    """These operations would be a third of the graph."""
    functions = meta_graph(exported("classification")).graph_def.library.function
    (model,) = (
        each.node_def for each in functions if any("layer_1" in n.name for n in each.node_def)
    )
    # Only the first layer has them; in the last one only the token that is read has a place.
    assert not [n.name for n in model if "layer_1" in n.name and n.op in ("FloorDiv", "FloorMod")]
    assert [n.name for n in model if "layer_0" in n.name and n.op == "FloorDiv"]


@pytest.mark.bfloat16
def test_a_model_is_served_in_the_precision_asked_for(models, tokenizer):
    """The precision of training does not matter; it is only the default."""
    model = models("classification")
    encoder = Encoder(model.encoder.config, dtype="mixed_bfloat16")
    trained = TextClassifier(encoder, tokenizer, model.labels)
    trained.set_weights(model.get_weights())
    assert in_precision(trained, None) is trained
    assert in_precision(trained, "bfloat16") is trained
    asked = in_precision(trained, "float32")
    np.testing.assert_array_equal(asked(IDS), model(IDS))
    assert not np.allclose(trained(IDS), model(IDS), atol=1e-6)


def test_a_model_without_a_pooler_is_copied_without_one():
    model = QuestionAnswerer(Encoder(tiny.encoder_config(), with_pooler=False), None)
    copy = in_precision(model, "bfloat16")
    assert copy.encoder.pooler is None and copy.compute_dtype == "bfloat16"
    for ours, theirs in zip(copy.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_unknown_precision_is_refused(models, tmp_path):
    with pytest.raises(UserError, match="unknown precision 'float16'; choose float32 or bfloat16"):
        save_model(models("mlm"), tmp_path / "x", form=Form("float16"))
    assert not list(tmp_path.iterdir())


# Asks an export for batches of several sizes.
_ASK = """
import pickle, sys
import tensorflow as tf, tensorflow_text
folder, answers = sys.argv[1:]
loaded = tf.saved_model.load(folder)
ask = loaded.signatures["serving_default"]
texts = ["cat dog", "the cat", "dog"]
found = [ask(text=tf.constant(texts[:n]))["probabilities"].numpy() for n in (1, 3, 1)]
with open(answers, "wb") as file:
    pickle.dump(found, file)
"""


@pytest.mark.slow
@pytest.mark.bfloat16
def test_assuming_fixed_weights_changes_no_answer(exported, tmp_path):
    folder = exported("classification", precision="bfloat16")
    told = {}
    for value in ("0", "1"):
        environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1", FIXED_WEIGHTS: value}
        answers = tmp_path / value
        subprocess.run(
            [sys.executable, "-c", _ASK, str(folder), str(answers)], check=True, env=environment
        )
        told[value] = pickle.loads(answers.read_bytes())
    plain, fixed = told.values()
    for one, other in zip(plain, fixed, strict=True):
        np.testing.assert_allclose(one, other, atol=0.01)
    np.testing.assert_array_equal(fixed[0], fixed[2])
