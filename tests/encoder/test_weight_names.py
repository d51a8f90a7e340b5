"""All weights of every model, by name, and their shapes: checkpoints and decay go by these."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import (
    MultipleChoice,
    QuestionAnswerer,
    Reranker,
    TextClassifier,
    TokenClassifier,
)
from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import LAMB, AdamW
from tests import tiny

CONFIG = tiny.encoder_config(vocab_size=30, num_hidden_layers=2, max_position_embeddings=12)

LAYER = """\
encoder/layer_0/attention/query_key_value/kernel    8 24
encoder/layer_0/attention/query_key_value/bias        24
encoder/layer_0/attention/output/kernel              8 8
encoder/layer_0/attention/output/bias                  8
encoder/layer_0/attention_layer_norm/gamma             8
encoder/layer_0/attention_layer_norm/beta              8
encoder/layer_0/intermediate/kernel                 8 16
encoder/layer_0/intermediate/bias                     16
encoder/layer_0/output/kernel                       16 8
encoder/layer_0/output/bias                            8
encoder/layer_0/output_layer_norm/gamma                8
encoder/layer_0/output_layer_norm/beta                 8
"""
ENCODER = f"""
encoder/embeddings/word_embeddings                  30 8
encoder/embeddings/position_embeddings              12 8
encoder/embeddings/token_type_embeddings             2 8
encoder/embeddings/layer_norm/gamma                    8
encoder/embeddings/layer_norm/beta                     8
{LAYER}{LAYER.replace("layer_0", "layer_1")}
encoder/pooler/kernel                                8 8
encoder/pooler/bias                                    8
"""
LSTM = """\
token_classifier/lstm_0/forward_lstm/lstm_cell/kernel             8 16
token_classifier/lstm_0/forward_lstm/lstm_cell/recurrent_kernel   4 16
token_classifier/lstm_0/forward_lstm/lstm_cell/bias                 16
token_classifier/lstm_0/backward_lstm/lstm_cell/kernel            8 16
token_classifier/lstm_0/backward_lstm/lstm_cell/recurrent_kernel  4 16
token_classifier/lstm_0/backward_lstm/lstm_cell/bias                16
"""
HEADS = {
    "encoder": "",
    "pretrainer": """
pretrainer/masked_lm/transform/kernel                8 8
pretrainer/masked_lm/transform/bias                    8
pretrainer/masked_lm/layer_norm/gamma                  8
pretrainer/masked_lm/layer_norm/beta                   8
pretrainer/masked_lm/output_bias                      30
pretrainer/next_sentence/kernel                      8 2
pretrainer/next_sentence/bias                          2
""",
    "text_classifier": """
text_classifier/classifier/kernel                     8 3
text_classifier/classifier/bias                         3
""",
    "question_answerer": """
question_answerer/span/kernel                         8 2
question_answerer/span/bias                             2
""",
    "token_classifier": """
token_classifier/classifier/kernel                    8 5
token_classifier/classifier/bias                        5
""",
    "multiple_choice": """
multiple_choice/choice/kernel                        8 1
multiple_choice/choice/bias                            1
""",
    "reranker": """
reranker/classifier/kernel                        8 1
reranker/classifier/bias                            1
""",
    "feature_tagger": f"""
{LSTM}{LSTM.replace("lstm_0", "lstm_1")}
token_classifier/feature_classifier/kernel                         8 5
token_classifier/feature_classifier/bias                             5
""",
}
# Weights that decay: kernels and tables; no bias, no layer normalization.
DECAYS = re.compile(r"/(recurrent_)?kernel$|_embeddings$")
# Weights that no task on tokens trains.
POOLER = {"encoder/pooler/kernel", "encoder/pooler/bias"}


def make(name: str) -> keras.Model:
    encoder = Encoder(CONFIG)
    return {
        "encoder": lambda: encoder,
        "pretrainer": lambda: PreTrainer(encoder),
        "text_classifier": lambda: TextClassifier(encoder, None, range(3)),
        "question_answerer": lambda: QuestionAnswerer(encoder, None, max_question_length=2),
        "token_classifier": lambda: TokenClassifier(encoder, None, range(5)),
        "multiple_choice": lambda: MultipleChoice(encoder, None),
        "reranker": lambda: Reranker(encoder, None),
        "feature_tagger": lambda: TokenClassifier(
            encoder, None, range(5), features="last", lstm_units=4
        ),
    }[name]()


def table(name: str) -> dict[str, tuple[int, ...]]:
    rows = (line.split() for line in (ENCODER + HEADS[name]).splitlines() if line)
    return {path: tuple(map(int, shape)) for path, *shape in rows}


@pytest.mark.parametrize("name", HEADS)
def test_all_weights_have_their_names_and_shapes(name):
    model, expected = make(name), table(name)
    assert {weight.path: tuple(weight.shape) for weight in model.weights} == expected
    ours = {path.partition("/")[2] for path in expected if not path.startswith("encoder/")}
    ours |= {path for path in expected if path.startswith("encoder/")}
    assert set(weight_names(model)) == ours


@pytest.mark.parametrize("name", HEADS)
def test_a_summary_shows_all_shapes_and_counts_all_parameters(name):
    model, lines = make(name), []
    model.summary(line_length=100, print_fn=lines.append)
    text = "\n".join(lines)
    assert "?" not in text
    assert "unbuilt" not in text
    rows = [line.split("│")[2].strip() for line in text.splitlines() if line.startswith("│")]
    assert all(re.fullmatch(r"\((None, )+\d+\)", shape) for shape in rows)
    assert len(rows) == len(model.layers)

    sizes = {path: int(np.prod(shape)) for path, shape in table(name).items()}
    fixed = {
        "question_answerer": POOLER,
        "token_classifier": POOLER,
        "feature_tagger": {path for path in sizes if path.startswith("encoder/")},
    }.get(name, set())
    untrained = sum(sizes[path] for path in fixed)
    assert f" Total params: {sum(sizes.values()):,} (" in text
    assert f" Trainable params: {sum(sizes.values()) - untrained:,} (" in text
    assert f" Non-trainable params: {untrained:,} (" in text


@pytest.mark.parametrize("make_optimizer", [AdamW, LAMB])
@pytest.mark.parametrize("name", ["pretrainer", "feature_tagger"])
def test_kernels_and_tables_decay_and_nothing_else_does(name, make_optimizer):
    model = make(name)
    for weight in model.weights:
        weight.assign(np.ones(weight.shape))
    trained = model.trainable_weights
    make_optimizer(0.1, weight_decay=0.5).apply([tf.zeros(w.shape) for w in trained], trained)
    moved = {w.path for w in model.weights if np.any(w.numpy() != 1.0)}
    assert moved == {w.path for w in trained if DECAYS.search(w.path)}
    assert len(moved) > 4
