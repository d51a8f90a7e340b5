"""The names and the shapes of our weights."""

import keras
import numpy as np

from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError


def weight_names(model: keras.Model) -> dict[str, keras.Variable]:
    """Our names of a model's weights, for example "encoder/layer_0/output/kernel"."""
    encoder = getattr(model, "encoder", model)
    # Our names are the Keras paths without the names of the models, which users may choose.
    inner = {id(weight) for weight in encoder.weights}
    names = {}
    for weight in model.weights:
        if id(weight) in inner:
            names["encoder/" + weight.path.split(f"{encoder.name}/", 1)[1]] = weight
        else:
            names[weight.path.split(f"{model.name}/", 1)[1]] = weight
    return names


def check_finite(array: np.ndarray, name: str, where: object) -> None:
    """Raises UserError if a weight of the checkpoint `where` contains NaN or infinity."""
    if not np.isfinite(array).all():
        raise UserError(f"{where}: the weight {name} contains NaN or infinity; copy it again")


def encoder_shapes(config: EncoderConfig, layers: int) -> dict[str, tuple[int, ...]]:
    """Our names and shapes of the encoder's weights, with its first `layers` layers."""
    hidden, inner, width = config.hidden_size, config.intermediate_size, config.embedding_width

    def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}/kernel": (rows, columns), f"{name}/bias": (columns,)}

    def layer_norm(name: str, width: int = hidden) -> dict[str, tuple[int, ...]]:
        return {f"{name}/gamma": (width,), f"{name}/beta": (width,)}

    shapes = {
        "embeddings/word_embeddings": (config.vocab_size, width),
        "embeddings/position_embeddings": (config.max_position_embeddings, width),
        **layer_norm("embeddings/layer_norm", width),
        **linear("pooler", config.output_size, config.output_size),
    }
    if config.type_vocab_size:
        shapes["embeddings/token_type_embeddings"] = (config.type_vocab_size, width)
    if width != hidden:
        shapes |= linear("embeddings/projection", width, hidden)
    for n in range(layers):
        shapes |= linear(f"layer_{n}/attention/query_key_value", hidden, 3 * hidden)
        shapes |= linear(f"layer_{n}/attention/output", hidden, hidden)
        shapes |= layer_norm(f"layer_{n}/attention_layer_norm")
        shapes |= linear(f"layer_{n}/intermediate", hidden, inner)
        shapes |= linear(f"layer_{n}/output", inner, hidden)
        shapes |= layer_norm(f"layer_{n}/output_layer_norm")
    return {f"encoder/{name}": shape for name, shape in shapes.items()}


def likely_cause(name: str, theirs: tuple[int, ...], ours: tuple[int, ...]) -> str:
    """The usual reason why the shapes of weight `name` differ, and the remedy."""
    if name.endswith("word_embeddings") and theirs[1:] == ours[1:]:
        return (
            f"the vocabulary has {ours[0]} pieces, but that of the checkpoint has {theirs[0]}; "
            "use the vocabulary of the checkpoint"
        )
    if name.endswith("position_embeddings") and theirs[1:] == ours[1:]:
        return f"set max_position_embeddings to {theirs[0]}"
    if name.startswith("dense_"):
        return "remove pooling and dense, or set them as in the checkpoint"
    if not name.startswith("encoder/"):
        return "the files of the checkpoint belong to different models; copy all of them again"
    return "the sizes under `model` differ from those of the checkpoint; use the same sizes"
