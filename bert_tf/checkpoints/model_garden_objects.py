"""The objects that Model Garden's models look for when they restore a checkpoint.

Restoring walks from the reader's objects to the checkpoint's by the names of their attributes, so
that a checkpoint fits every model whose attributes it has: those of `BertEncoder`, `BertEncoderV2`,
`BertPretrainerV2`, `BertClassifier`, `BertSpanLabeler` and `BertTokenClassifier` in
`official/nlp/modeling` of tf-models-official.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.correspondence import UNMAPPED
from bert_tf.checkpoints.description import Description


class _Owner:
    """Makes objects that own variables.

    Args:
        named: arrays by Model Garden's names of the variables.
    """

    def __init__(self, named: Mapping[str, np.ndarray]):
        self.variables = {name: tf.Variable(array, name=name) for name, array in named.items()}

    def layer(self, prefix: str) -> tf.train.Checkpoint | None:
        """The object with the variables directly below `prefix`; None if there are none."""
        names = [n for n in self.variables if n.startswith(prefix) and "/" not in n[len(prefix) :]]
        return node(**{n[len(prefix) :]: self.variables[n] for n in names}) if names else None


def node(**children: Any) -> tf.train.Checkpoint:
    """An object with such attributes; those that are None it does not have."""
    return tf.train.Checkpoint(**{k: v for k, v in children.items() if v is not None})


def objects(named: dict[str, np.ndarray], description: Description) -> tf.Module:
    """The root of the objects for `tf.train.Checkpoint(root=…)`.

    Args:
        named: the arrays by their names in Model Garden.
        description: what they are.
    """
    owner = _Owner(named | _pooler_of_head(named))
    encoder = _encoder(owner, description.encoder.num_hidden_layers)
    root = tf.Module()
    # What `tf.train.Checkpoint.save` counts, and `restore` expects to find.
    root.save_counter = tf.Variable(1, dtype=tf.int64, name="save_counter")
    root.encoder = encoder
    match description.model:
        case "PreTrainer" | "MaskedLM":
            root.masked_lm = _masked_lm(owner)
            root.model = node(encoder_network=encoder, masked_lm=root.masked_lm)
            pooler = owner.layer("next_sentence/pooler_dense/")
            if pooler is not None:
                setattr(root, "next_sentence.pooler_dense", pooler)
                head = node(dense=pooler, out_proj=owner.layer("next_sentence/logits/"))
                root.model.classification_heads = node(**{"0": head})
        case "TextClassifier" | "MultiLabelClassifier" | "TextRegressor":
            head = node(out_proj=owner.layer("sentence_prediction/logits/"))
            root.model = node(_network=encoder, classifier=head)
        case "QuestionAnswerer":
            head = node(**{"layer_with_weights-0": owner.layer("span_labeling/logits/")})
            root.model = node(_network=encoder, span_labeling=head)
        case "TokenClassifier":
            head = owner.layer("token_classifier/logits/")
            root.model = node(_network=encoder, classifier=head)
        case _:
            root.model = encoder
    own = {n[len(UNMAPPED) :]: v for n, v in owner.variables.items() if n.startswith(UNMAPPED)}
    if own:
        root.bert_tf = node(**own)
    return root


def _pooler_of_head(named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The pooler once more, for a next-sentence head: theirs has one of its own."""
    return {
        name.replace("pooler_transform/", "next_sentence/pooler_dense/"): array
        for name, array in named.items()
        if name.startswith("pooler_transform/") and "next_sentence/logits/bias" in named
    }


def _encoder(owner: _Owner, layers: int) -> tf.train.Checkpoint:
    blocks = {str(n): _block(owner, f"transformer/layer_{n}/") for n in range(layers)}
    return node(
        _embedding_layer=owner.layer("word_embeddings/"),
        _position_embedding_layer=owner.layer("position_embedding/"),
        _type_embedding_layer=owner.layer("type_embeddings/"),
        _embedding_norm_layer=owner.layer("embeddings/layer_norm/"),
        _transformer_layers=node(**blocks),
        _pooler_layer=owner.layer("pooler_transform/"),
    )


def _block(owner: _Owner, prefix: str) -> tf.train.Checkpoint:
    attention = f"{prefix}self_attention/"
    return node(
        _attention_layer=node(
            _query_dense=owner.layer(f"{attention}query/"),
            _key_dense=owner.layer(f"{attention}key/"),
            _value_dense=owner.layer(f"{attention}value/"),
            _output_dense=owner.layer(f"{attention}attention_output/"),
        ),
        _attention_layer_norm=owner.layer(f"{prefix}self_attention_layer_norm/"),
        _intermediate_dense=owner.layer(f"{prefix}intermediate/"),
        _output_dense=owner.layer(f"{prefix}output/"),
        _output_layer_norm=owner.layer(f"{prefix}output_layer_norm/"),
    )


def _masked_lm(owner: _Owner) -> tf.train.Checkpoint:
    return node(
        dense=owner.layer("cls/predictions/transform/dense/"),
        layer_norm=owner.layer("cls/predictions/transform/LayerNorm/"),
        embedding_table=owner.variables["word_embeddings/embeddings"],
        **{"output_bias/bias": owner.variables["cls/predictions/output_bias/bias"]},
    )
