"""Checks of Python arguments, by the rules of configuration keys and with the same messages."""

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


# The kinds of values, and the arguments that have them. A name means the same in every call.
_KINDS: tuple[tuple[Any, str], ...] = (
    (
        bool,
        "bias_correction decay_after_warmup few_shot freeze include_prompt multi_label normalize "
        "rematerialize skip_nonfinite",
    ),
    (bool | None, "pair split_punctuation unanswerable"),
    (
        Count,
        "accumulation_steps epochs lstm_units max_answer_length max_question_length n_best "
        "total_steps",
    ),
    (
        Count | None,
        "batch_size max_windows num_hidden_layers steps steps_per_epoch stride top_k truncate_dim "
        "validation_batch_size validation_steps version",
    ),
    (Natural, "initial_epoch warmup_steps"),
    (Seed | None, "seed"),
    (Length | None, "max_length"),
    (Annotated[tuple[Length, ...], Field(min_length=1)] | None, "lengths"),
    (Positive, "temperature"),
    (Positive | None, "clip_norm learning_rate"),  # or a schedule
    (Weight, "epsilon peak weight_decay"),
    (dict[bool | int | float | str, Weight] | None, "class_weight"),
    (float | None, "margin null_threshold"),
    (Share, "beta_1 beta_2 min_score"),
    (Share | None, "abstain"),
    (Rate | None, "dropout"),
    (Annotated[float, Field(ge=0, lt=1)], "validation_split"),
    (Annotated[float, Field(gt=0, lt=1)] | None, "confidence"),
    (Count | tuple[Count, ...], "validation_freq"),
    (str | None, "default_prompt"),
    (bool | Literal["batch"], "shuffle"),
    (bool | Literal["auto", 0, 1, 2], "verbose"),
    (LongText, "long_text"),
    (WindowPooling | None, "window_pooling"),
    (Literal["float32", "int8", "binary"], "vectors"),
    (Literal["sigmoid", "identity"], "activation"),
    (Literal["first", "mean", "max"], "aggregation"),
    (Literal["cpu", "any"], "device"),
    (Literal["ids", "strings"], "inputs"),
)
_KIND_OF = {name: kind for kind, names in _KINDS for name in names.split()}


@functools.cache
def _adapter(name: str) -> TypeAdapter:
    return TypeAdapter(_KIND_OF[name], config=Section.model_config)


def checked_argument(name: str, value: Any) -> Any:
    """An argument as plain Python; a UserError if one of that name cannot have this value."""
    if name not in _KIND_OF or name == "learning_rate" and callable(value):
        return value
    try:
        return _adapter(name).validate_python(plain(value))
    except ValidationError as error:
        raise UserError(sentence(closest(error.errors(include_url=False)), name)) from None


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Checks the arguments of each call of a function that have a name in `_KINDS`."""
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
