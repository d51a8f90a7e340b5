"""Exports in 8-bit integers answer nearly as those in float32, and say what they need."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextClassifier
from bert_tf.asking.session import SessionModel
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.encoder.layers import Linear
from bert_tf.errors import UserError
from bert_tf.export import integer_products
from bert_tf.export.run import export_run
from bert_tf.export.saving import save_hub, save_model
from bert_tf.export.served_model import Form, ServedModel
from tests import tiny
from tests.checkpoints import tiny_models
from tests.export.conftest import TASKS
from tests.export.requests import TEXTS, meta_graph, request
from tests.export.test_run import classifier, start

# Weights of the small models are far larger than BERT's; numbers of vectors have a variance of one.
MARGIN, OF_VECTORS = 0.1, 0.4
QUICK = {"classification": "probabilities"}
CLOSE = QUICK | {
    "pair": "probabilities",
    "multi_label": "probabilities",
    "mlm": "probabilities",
    "nsp": "is_next",
    "embedding": "embedding",
    "reranking": "scores",
    "multiple_choice": "probabilities",
}


def rows(count=24):
    """Rows of the encoder's inputs."""
    source, size = np.random.default_rng(0), len(tiny.VOCABULARY)
    ids = [source.integers(5, size, 4 + n % 9).astype(np.int32) for n in range(count)]
    return [
        dict(zip(INPUTS, (each, np.ones_like(each), np.zeros_like(each)), strict=True))
        for each in ids
    ]


def save(model, out):
    save_model(model, out, form=Form("int8", calibration=rows()))
    return out


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "family",
    [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in TASKS],
)
def test_every_task_answers_nearly_as_in_float32(loaded, models, tmp_path, family):
    found = tf.saved_model.load(str(save(models(family), tmp_path / "int8")))
    plain = loaded(family).signatures["serving_default"]
    expected = plain(**request(plain))
    answers = found.signatures["serving_default"](**request(plain))
    assert answers.keys() == expected.keys()
    assert all(answers[name].dtype == each.dtype for name, each in expected.items())
    if output := CLOSE.get(family):
        margin = OF_VECTORS if output == "embedding" else MARGIN
        np.testing.assert_allclose(answers[output], expected[output], rtol=0, atol=margin)


def test_products_of_the_blocks_are_integers(models, tmp_path):
    out = save(models("classification"), tmp_path / "int8")
    graph = meta_graph(out)
    nodes = [node for f in graph.graph_def.library.function for node in f.node_def]
    products = [node for node in nodes if node.op == "_QuantizedMatMul"]
    shards = 2 * models("classification").encoder.config.num_hidden_layers
    assert len(products) == 4 * shards
    fused = [b" ".join(node.attr["fused_ops"].list.s) for node in products]
    assert fused.count(b"BiasAdd GeluApproximate Requantize") == shards
    card = (out / "assets.extra" / "model_card.md").read_text()
    assert "- precision: int8" in card and "Op type not registered '_QuantizedMatMul'" in card
    stored = tf.train.list_variables(str(out / "variables" / "variables"))
    matrices = {tuple(shape) for _, shape in stored if len(shape) == 2}
    hidden = models("classification").encoder.config.hidden_size
    assert (hidden, 3 * hidden // 2) in matrices
    types = tf.train.load_checkpoint(str(out / "variables" / "variables"))
    names = types.get_variable_to_dtype_map()
    assert sum(dtype == tf.int8 for dtype in names.values()) == 4 * shards


@pytest.mark.end_to_end
def test_the_c_library_answers_the_same(models, tmp_path):
    out = save(models("classification"), tmp_path / "int8")
    asked = [{"text": text} for text in TEXTS]
    found = SessionModel.load(str(out)).ask("serving_default", asked)
    expected = tf.saved_model.load(str(out)).signatures["serving_default"](tf.constant(TEXTS))
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=2e-6)


def test_a_product_that_integers_would_change_stays_as_it_is(monkeypatch, caplog):
    config = tiny.encoder_config(16, num_hidden_layers=2, intermediate_size=64)
    model = TextClassifier(Encoder(config), None, ["a", "b"])
    best_bound = integer_products._best_bound

    def found(kernel, tokens):
        bound, error = best_bound(kernel, tokens)
        # The second product of a feed-forward layer, in one of its two shards.
        return bound, 0.06 if kernel.shape == (32, 16) else error

    monkeypatch.setattr(integer_products, "_best_bound", found)
    with caplog.at_level(logging.INFO):
        served = ServedModel(model, Form("int8", calibration=rows()))
    said = "int8: 4 products stay in float32: encoder/layer_0/output_0, encoder/layer_0/output_1, "
    assert said in caplog.text
    made = integer_products.integer_products(served.encoder)
    assert len(made) == 3 * 2 * 2 and all(each.following is None for each in made.values())
    ids = {name: tf.constant([row]) for name, row in rows()[5].items()}
    answered = tf.function(served, autograph=False)(ids)
    np.testing.assert_allclose(answered, model(ids), rtol=0, atol=1.0)


def test_columns_share_large_numbers_with_the_kernel():
    source = np.random.default_rng(0)
    tokens = source.normal(size=(64, 16)).astype(np.float32)
    tokens[:, 3] *= 200
    kernel = source.normal(size=(16, 8)).astype(np.float32)
    kernel[3] /= 200
    _, alone = integer_products._best_bound(kernel, tokens)
    balance = integer_products._balance(kernel, tokens, 0.5)
    _, shared = integer_products._best_bound(kernel * balance[:, None], tokens / balance)
    assert alone > 0.2 and shared < 0.03


def test_large_numbers_are_summed_exactly_on_every_processor():
    linear = Linear(8)
    linear.build((None, 768))
    linear.set_weights([np.full((768, 8), 2.0, np.float32), np.zeros(8, np.float32)])
    product = integer_products.IntegerProduct(linear, 3.0)
    found = tf.function(product, autograph=False)(tf.fill([4, 768], 3.0))
    np.testing.assert_allclose(found, np.full((4, 8), 768 * 6.0), rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"precision": "int8"},
            "requires texts to compute value ranges; give a few hundred as calibration",
        ),
        (
            {"precision": "int8", "calibration": TEXTS, "freeze": True},
            "int8 is for the CPU and stores its weights as variables; remove freeze and device",
        ),
        (
            {"precision": "int8", "calibration": TEXTS, "device": "any"},
            "int8 is for the CPU",
        ),
        ({"calibration": TEXTS}, "calibration is for precision int8; remove it, or choose int8"),
        ({"precision": "int8", "calibration": []}, "the calibration has no texts"),
        ({"precision": "int4"}, "unknown precision 'int4'"),
    ],
)
def test_what_does_not_fit_is_refused(models, tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        models("classification").export(tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()


def test_other_blocks_and_the_hub_are_refused(models, tmp_path):
    with pytest.raises(UserError, match="--kind hub must stay trainable"):
        export_run("x", tmp_path / "x", kind="hub", precision="int8")
    with pytest.raises(UserError, match="--precision int8 is for --format tf_saved_model or lite"):
        export_run("x", tmp_path / "x.onnx", format="onnx", precision="int8")
    with pytest.raises(UserError, match="unknown precision 'int8'"):
        save_hub(models("hub"), tiny.tokenizer(), tmp_path / "x", Form("int8"))
    encoder = models("hub")
    encoder = getattr(encoder, "encoder", encoder)
    changed = encoder.copied(block=OtherBlock)
    with pytest.raises(UserError, match="int8 is for BERT's own blocks"):
        ServedModel(changed, Form("int8", calibration=rows()))


class OtherBlock(type(Encoder(tiny.encoder_config()).blocks[0])):
    """A block of another program."""


@pytest.mark.end_to_end
def test_a_run_brings_its_own_texts(tmp_path):
    encoder = Encoder(tiny.encoder_config(16))
    run = start(tiny.write_finetuning(tmp_path), classifier(encoder), "model.hidden_size=16")
    out = export_run(run.path, tmp_path / "int8", precision="int8")
    assert "_QuantizedMatMul" in str(meta_graph(out))
    bare = tiny_models.FIXTURES / "huggingface_heads" / "BertForSequenceClassification"
    with pytest.raises(UserError, match="is not a fine-tuning run, so --precision int8 requires"):
        export_run(bare, tmp_path / "x", precision="int8")
