"""A frozen export answers as the plain one does, and holds its weights once, as constants."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, saved_model_pb2

from bert_tf.errors import UserError
from bert_tf.export import served_model
from bert_tf.export.saving import save_hub, save_task
from bert_tf.export.served_model import Form
from bert_tf.export.sharded import SHARDS
from tests.export.requests import assert_same, request

FAMILIES = [
    "classification",
    *(
        pytest.param(family, marks=pytest.mark.slow)
        for family in (
            "mlm",
            "question_answering",
            "pair",
            "regression",
            "multiple_choice",
            "reranking",
            "token_classification",
            "nsp",
            "embedding",
        )
    ),
]
FAST = {"freeze": True, "precision": "bfloat16"}


def answers(loaded):
    """What each signature says to a request of several rows."""
    return {name: each(**request(each)) for name, each in loaded.signatures.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_stay_the_same(loaded, family):
    plain, frozen = answers(loaded(family)), answers(loaded(family, freeze=True))
    assert plain.keys() == frozen.keys()
    for signature, outputs in plain.items():
        assert_same(frozen[signature], outputs, tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.bfloat16
@pytest.mark.parametrize(
    ("family", "output"),
    [("classification", "probabilities")]
    + [
        pytest.param(*each, marks=pytest.mark.slow)
        for each in (
            ("mlm", "probabilities"),
            ("nsp", "is_next"),
            ("embedding", "embedding"),
            ("regression", "score"),
        )
    ],
)
def test_in_bfloat16_answers_are_close(loaded, family, output):
    plain = answers(loaded(family))["serving_default"][output]
    for options in (FAST, {"precision": "bfloat16"}):
        fast = answers(loaded(family, **options))["serving_default"][output]
        # Eight bits of precision, through two layers of weights far larger than BERT's.
        np.testing.assert_allclose(fast, plain, atol=0.05 * np.abs(plain).max())
        assert not np.array_equal(fast, plain)


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
    """TensorFlow gives each that reaches them a copy when it loads the graph."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((exported(family, **settings) / "saved_model.pb").read_bytes())
    library = {
        each.signature.name: each for each in saved.meta_graphs[0].graph_def.library.function
    }
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
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((exported("mlm", **FAST) / "saved_model.pb").read_bytes())
    objects = saved.meta_graphs[0].object_graph_def.nodes
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


def test_what_cannot_be_frozen_is_told_in_one_line(models, tokenizer, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="--freeze is not for --kind hub"):
        save_hub(models("hub"), tokenizer, tmp_path / "x", Form(freeze=True))
    monkeypatch.setattr(served_model, "_MOST_BYTES", 1000)
    with pytest.raises(UserError, match="GB, but a frozen graph holds at most 2 GB"):
        save_task(models("mlm"), tmp_path / "x", Form(freeze=True))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("family", "trains"), [("classification", False), ("hub", True)])
def test_only_what_trains_holds_gradients(exported, family, trains):
    """They would be most of the functions, which take time to load."""
    folder = exported(family) / ("encoder" if family == "hub" else "")
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    library = saved.meta_graphs[0].graph_def.library
    nodes = [node for function in library.function for node in function.node_def]
    assert bool(library.registered_gradients) == trains
    assert any("_gradient_op_type" in node.attr for node in nodes) == trains


def test_layers_share_the_places_of_their_heads(exported):
    """These operations would be a third of the graph."""
    saved = saved_model_pb2.SavedModel.FromString(
        (exported("classification") / "saved_model.pb").read_bytes()
    )
    functions = saved.meta_graphs[0].graph_def.library.function
    (model,) = (
        each.node_def for each in functions if any("layer_1" in n.name for n in each.node_def)
    )
    # The first layer's; of the last one only the token that is read has a place.
    assert not [n.name for n in model if "layer_1" in n.name and n.op in ("FloorDiv", "FloorMod")]
    assert [n.name for n in model if "layer_0" in n.name and n.op == "FloorDiv"]
