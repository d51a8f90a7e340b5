"""The names of our weights, and what they say when a shape is not the expected one."""

import keras


def weight_names(model: keras.Model) -> dict[str, keras.Variable]:
    """Our names of a model's weights, for example "encoder/layer_0/output/kernel".

    They are the Keras paths less the names of the models themselves, which users may choose.
    """
    encoder = getattr(model, "encoder", model)
    inner = {id(weight) for weight in encoder.weights}
    names = {}
    for weight in model.weights:
        if id(weight) in inner:
            names["encoder/" + weight.path.split(f"{encoder.name}/", 1)[1]] = weight
        else:
            names[weight.path.split(f"{model.name}/", 1)[1]] = weight
    return names


def likely_cause(name: str, theirs: tuple[int, ...], ours: tuple[int, ...]) -> str:
    """What usually makes the shapes of weight `name` differ, and what to do about it."""
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
