"""Model Garden's encoder of the sizes that a configuration says."""

from typing import Any

import tensorflow as tf

from bert_tf.models import EncoderConfig


def make_encoder(config: EncoderConfig) -> Any:
    """A new `BertEncoderV2` (tf-models-official), with random weights."""
    from official.nlp.modeling import networks

    return networks.BertEncoderV2(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size,
        inner_dim=config.intermediate_size,
        inner_activation=_tanh_gelu if config.hidden_act == "gelu_new" else _erf_gelu,
        norm_first=False,
    )


# Named functions: Model Garden writes the activation's name into its configuration.
def _erf_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=False)


def _tanh_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=True)
