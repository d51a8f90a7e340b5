"""The shapes that an encoder's weights must have, known before anything is built.

A checkpoint's configuration and its tensors come from elsewhere and need not agree. Checked here,
a configuration that asks for more than the files hold cannot fill the memory.
"""

from bert_tf.models import EncoderConfig


def encoder_shapes(config: EncoderConfig, layers: int) -> dict[str, tuple[int, ...]]:
    """Our names and shapes of the encoder's weights, of its first `layers` layers."""
    hidden, inner = config.hidden_size, config.intermediate_size

    def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}/kernel": (rows, columns), f"{name}/bias": (columns,)}

    def layer_norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}

    shapes = {
        "embeddings/word_embeddings": (config.vocab_size, hidden),
        "embeddings/position_embeddings": (config.max_position_embeddings, hidden),
        "embeddings/token_type_embeddings": (config.type_vocab_size, hidden),
        **layer_norm("embeddings/layer_norm"),
        **linear("pooler", config.output_size, config.output_size),
    }
    for n in range(layers):
        shapes |= linear(f"layer_{n}/attention/query_key_value", hidden, 3 * hidden)
        shapes |= linear(f"layer_{n}/attention/output", hidden, hidden)
        shapes |= layer_norm(f"layer_{n}/attention_layer_norm")
        shapes |= linear(f"layer_{n}/intermediate", hidden, inner)
        shapes |= linear(f"layer_{n}/output", inner, hidden)
        shapes |= layer_norm(f"layer_{n}/output_layer_norm")
    return {f"encoder/{name}": shape for name, shape in shapes.items()}
