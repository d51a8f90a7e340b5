"""The objects that Model Garden's models look for when they restore a checkpoint.

TensorFlow matches the model's objects with the checkpoint's by the names of their attributes. A
checkpoint therefore fits every model whose attributes it has: `BertEncoder`, `BertEncoderV2`,
`BertPretrainerV2`, `BertClassifier`, `BertSpanLabeler` and `BertTokenClassifier` in
`official/nlp/modeling` of tf-models-official.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import heads
from bert_tf.checkpoints.correspondence import UNMAPPED
from bert_tf.checkpoints.description import Description

_POOLER = "pooler_transform/"

Layers = Callable[[str], tf.train.Checkpoint | None]
"""Gives the object with the variables directly below a prefix of names; None without variables."""


def node(**children: Any) -> tf.train.Checkpoint:
    """An object with such attributes, without those that are None."""
    return tf.train.Checkpoint(**{k: v for k, v in children.items() if v is not None})


def objects(named: Mapping[str, np.ndarray], description: Description) -> tf.Module:
    """The root of the objects for `tf.train.Checkpoint(root=…)`.

    Args:
        named: the arrays by their names in Model Garden.
        description: what they are.
    """
    variables = {name: tf.Variable(array, name=name) for name, array in named.items()}

    def layer(prefix: str) -> tf.train.Checkpoint | None:
        names = [n for n in variables if n.startswith(prefix) and "/" not in n[len(prefix) :]]
        return node(**{n[len(prefix) :]: variables[n] for n in names}) if names else None

    encoder = _encoder(layer, description.encoder.num_hidden_layers)
    root = tf.Module()
    # What `tf.train.Checkpoint.save` counts, and `restore` expects to find.
    root.save_counter = tf.Variable(1, dtype=tf.int64, name="save_counter")
    root.encoder = encoder
    head = heads.of(description.model)
    if heads.MASKED_LM in head.pretraining:
        root.masked_lm = node(
            dense=layer("cls/predictions/transform/dense/"),
            layer_norm=layer("cls/predictions/transform/LayerNorm/"),
            embedding_table=variables["word_embeddings/embeddings"],
            **{"output_bias/bias": variables["cls/predictions/output_bias/bias"]},
        )
        root.model = node(encoder_network=encoder, masked_lm=root.masked_lm)
        logits = layer("next_sentence/logits/")
        if logits is not None:
            # Their next-sentence head has its own pooler.
            for name in [name for name in variables if name.startswith(_POOLER)]:
                copied = name.replace(_POOLER, "next_sentence/pooler_dense/")
                variables[copied] = tf.Variable(named[name], name=copied)
            pooler = layer("next_sentence/pooler_dense/")
            setattr(root, "next_sentence.pooler_dense", pooler)
            root.model.classification_heads = node(**{"0": node(dense=pooler, out_proj=logits)})
    elif "model_garden" in head.places:
        place = head.places["model_garden"]
        attribute, *inner = place.attributes.split("/")
        held = layer(place.prefix)
        for each in reversed(inner):
            held = node(**{each: held})
        root.model = node(_network=encoder, **{attribute: held})
    else:
        root.model = encoder
    own = {n[len(UNMAPPED) :]: v for n, v in variables.items() if n.startswith(UNMAPPED)}
    if own:
        root.bert_tf = node(**own)
    return root


def _encoder(layer: Layers, layers: int) -> tf.train.Checkpoint:
    blocks = {str(n): _block(layer, f"transformer/layer_{n}/") for n in range(layers)}
    return node(
        _embedding_layer=layer("word_embeddings/"),
        _position_embedding_layer=layer("position_embedding/"),
        _type_embedding_layer=layer("type_embeddings/"),
        _embedding_norm_layer=layer("embeddings/layer_norm/"),
        _transformer_layers=node(**blocks),
        _pooler_layer=layer(_POOLER),
    )


def _block(layer: Layers, prefix: str) -> tf.train.Checkpoint:
    attention = f"{prefix}self_attention/"
    return node(
        _attention_layer=node(
            _query_dense=layer(f"{attention}query/"),
            _key_dense=layer(f"{attention}key/"),
            _value_dense=layer(f"{attention}value/"),
            _output_dense=layer(f"{attention}attention_output/"),
        ),
        _attention_layer_norm=layer(f"{prefix}self_attention_layer_norm/"),
        _intermediate_dense=layer(f"{prefix}intermediate/"),
        _output_dense=layer(f"{prefix}output/"),
        _output_layer_norm=layer(f"{prefix}output_layer_norm/"),
    )
