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
        return f"the vocabulary has {ours[0]} pieces, the checkpoint's {theirs[0]}"
    if name.endswith("position_embeddings") and theirs[1:] == ours[1:]:
        return f"set max_position_embeddings to {theirs[0]}"
    if name.startswith("dense_"):
        return "leave pooling and dense out, or give those of the checkpoint"
    if not name.startswith("encoder/"):
        return "the checkpoint's files are not of one model; copy them anew from where they came"
    return "the sizes under `model` are not those of the checkpoint"
