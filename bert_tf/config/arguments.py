"""Arguments of Python calls, checked as the keys of a configuration are.

The same mistake has the same sentence in Python as in YAML, where the file and the line come before
it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from bert_tf.config.model import LongText, WindowPooling
from bert_tf.config.refusals import closest, sentence
from bert_tf.config.section import (
    Count,
    Length,
    Natural,
    Positive,
    Rate,
    Section,
    Seed,
    Share,
    Weight,
)
from bert_tf.errors import UserError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Arguments(Section):
    """The arguments that are checked, by their names. A name means the same in every call."""

    # Training
    accumulation_steps: Count
    batch_size: Count | None
    class_weight: dict[bool | int | float | str, Weight] | None
    confidence: Annotated[float, Field(gt=0, lt=1)] | None
    epochs: Count
    few_shot: bool
    initial_epoch: Natural
    learning_rate: Positive | None  # or a schedule
    rematerialize: bool
    seed: Seed | None
    shuffle: bool | Literal["batch"]
    steps: Count | None
    steps_per_epoch: Count | None
    validation_batch_size: Count | None
    validation_freq: Count | tuple[Count, ...]
    validation_split: Annotated[float, Field(ge=0, lt=1)]
    validation_steps: Count | None
    verbose: bool | Literal["auto", 0, 1, 2]
    # Optimizers
    beta_1: Share
    beta_2: Share
    bias_correction: bool
    clip_norm: Positive | None
    decay_after_warmup: bool
    epsilon: Weight
    peak: Weight
    skip_nonfinite: bool
    total_steps: Count
    warmup_steps: Natural
    weight_decay: Weight
    # Models
    abstain: Share | None
    truncate_dim: Count | None
    vectors: Literal["float32", "int8", "binary"]
    activation: Literal["sigmoid", "identity"]
    aggregation: Literal["first", "mean", "max"]
    default_prompt: str | None
    dropout: Rate | None
    include_prompt: bool
    long_text: LongText
    lstm_units: Count
    max_answer_length: Count
    max_length: Length | None
    max_question_length: Count
    max_windows: Count | None
    min_score: Share
    multi_label: bool
    n_best: Count
    normalize: bool
    null_threshold: float | None
    num_hidden_layers: Count | None
    pair: bool | None
    split_punctuation: bool | None
    stride: Count | None
    temperature: Positive
    top_k: Count | None
    unanswerable: bool | None
    window_pooling: WindowPooling | None
    # Exports
    device: Literal["cpu", "any"]
    freeze: bool
    inputs: Literal["ids", "strings"]
    lengths: Annotated[tuple[Length, ...], Field(min_length=1)] | None
    version: Count | None


@functools.cache
def _kind(name: str) -> TypeAdapter | None:
    """What an argument of that name may be; None if it is not checked here."""
    field = Arguments.model_fields.get(name)
    if field is None:
        return None
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return TypeAdapter(kind, config=Arguments.model_config)


def checked_argument(name: str, value: Any) -> Any:
    """An argument as plain Python; a UserError if one of that name cannot have this value."""
    kind = _kind(name)
    if kind is None or name == "learning_rate" and callable(value):
        return value
    try:
        return kind.validate_python(plain(value))
    except ValidationError as error:
        raise UserError(sentence(closest(error.errors(include_url=False)), name)) from None


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Checks the arguments of each call of a function whose names are in `Arguments`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the function itself says what is wrong
            return function(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {
                    key: checked_argument(key, each) for key, each in value.items()
                }
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = checked_argument(name, value)
        return function(*bound.args, **bound.kwargs)

    return call


def plain(value: Any) -> Any:
    """A value without types of NumPy, and a list, a range or a set as a tuple."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | range | set | frozenset):
        return tuple(map(plain, value))
    return value
