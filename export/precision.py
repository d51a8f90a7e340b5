"""The precision that a model is served in."""

import keras

from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.config import POLICIES
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError


def in_precision(model: keras.Model, precision: str | None) -> keras.Model:
    """`model`, or a copy of it in `precision` if the model computes in another one."""
    if precision is None:
        return model
    if precision not in POLICIES:
        raise UserError(f"unknown precision {precision!r}; choose {' or '.join(POLICIES)}")
    policy = POLICIES[precision]
    return model if model.dtype_policy.name == policy else copied(model, policy)


def copied(model: keras.Model, policy: str | keras.DTypePolicy) -> keras.Model:
    """A copy of a model with weights of its own, which computes as a dtype policy says."""
    return with_encoder(model, getattr(model, "encoder", model).copied(dtype=policy))


def with_encoder(model: keras.Model, encoder: Encoder) -> keras.Model:
    """A copy of a model around `encoder`; weights that have the same names are copied."""
    copy = model.rebuilt(encoder) if hasattr(model, "encoder") else encoder
    weights = weight_names(model)
    for name, variable in weight_names(copy).items():
        if name in weights:
            variable.assign(weights[name])
    return copy
