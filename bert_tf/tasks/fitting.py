"""Training and evaluation on strings: Keras's `fit` and `evaluate`, and what they prepare."""

import contextlib
import dataclasses
import inspect
import random
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from pydantic import ValidationError

from bert_tf.asking import say_cut
from bert_tf.config.arguments import checked, plain
from bert_tf.config.distillation import DistillationLosses
from bert_tf.config.refusals import mistake
from bert_tf.config.train import FinetuningTrain, LoraConfig
from bert_tf.console import logger
from bert_tf.data import arrow
from bert_tf.data.columns import Columns
from bert_tf.data.targets import class_names
from bert_tf.distillation.teaching import Teaching, check_teacher, losses_of
from bert_tf.errors import UserError
from bert_tf.models.encoder_model import EncoderModel, scope_of
from bert_tf.optimization import make_optimizer
from bert_tf.tasks import inputs, uncertainty
from bert_tf.training.adapter import Adapter

_BATCH_SIZE = FinetuningTrain.model_fields["batch_size"].default  # as in configurations
_NO_SEED = 87654321  # the seed that TensorFlow reports where none was set


@inputs.columns_may_follow
@checked
def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: int | str = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool = True,
    class_weight: Mapping[Any, float] | None = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Collection[int] = 1,
    *,
    learning_rate: float | None = None,
    seed: int | None = None,
    teacher: Any = None,
    distillation: DistillationLosses | Mapping[str, Any] | None = None,
    lora: int | LoraConfig | Mapping[str, Any] | None = None,
    few_shot: bool = False,
) -> keras.callbacks.History:
    """Keras's `fit`, on strings or on ids.

    A model that was not compiled is compiled in each call with the paper's recipe: AdamW,
    10 % warm-up, linear decay over all steps, clipping at norm 1, weight decay 0.01.

    Strings in memory are tokenized once. Rows of similar length share a batch; rows that fill
    no batch at the end of an epoch are left for the next one. A dataset of strings is tokenized
    in its pipeline, and keeps its own batches. The logs carry the official metrics of the
    validation data as `val_…`.

    Args:
        x: the inputs, see the class; or a batched dataset of (x, y); or a table with named columns
            of pyarrow, pandas, polars or `datasets`, named as the files of the task name them.
        y: the targets, see the class; for a table, the name of their column if it is unusual.
        batch_size: rows of a batch (32).
        class_weight: weights by the class's number or name.
        learning_rate: the highest learning rate, if the model is not compiled (5e-5).
        seed: decides the order of the rows; None follows `keras.utils.set_random_seed`.
        teacher: a trained model of the same class, labels and vocabulary, from whose outputs
            the model learns, with or without `y` (knowledge distillation). If the model was
            compiled with a loss, that loss applies to `y`.
        distillation: the losses of the teacher and their weights, a dict of the keys of the
            section `distillation` in docs/reference/configuration.md, such as
            `{"temperature": 4.0, "hidden": 1.0}`.
        lora: trains low-rank updates of the encoder's weights, and the head, instead of all weights
            (LoRA): their rank, or a dict of the keys of `train.lora` in
            docs/reference/configuration.md. Afterwards the updates are a part of the weights; see
            `save_adapter`. Begin with four times the learning rate.
        few_shot: learns from few texts, such as 8 of each label; for a `TextClassifier`.
        epochs: as in Keras, and so are all parameters that are not named here.

    Returns:
        Keras's history.

    Raises:
        UserError: inputs or targets that do not fit the model or each other; one sentence with
            the position.
    """
    if few_shot:
        return _fit_few(model, locals())
    x, validation_data = (inputs.of_generator(each, False) for each in (x, validation_data))
    x, y = inputs.of_table(model, x, y)
    options: dict[str, Any] = {
        "epochs": epochs,
        "verbose": verbose,
        "callbacks": callbacks,
        "class_weight": class_weight,
        "initial_epoch": initial_epoch,
        "steps_per_epoch": steps_per_epoch,
        "validation_data": validation_data,
        "validation_steps": validation_steps,
        "validation_batch_size": validation_batch_size,
        "validation_freq": validation_freq,
    }
    adapter = _settings_of(lora)
    model.remember({})  # forgets the results of an earlier `fit`
    _check_teaching(model, teacher, distillation)
    if inputs.is_for_keras(x):
        if teacher is not None and y is None and not isinstance(x, tf.data.Dataset):
            raise UserError(
                "fit on ids requires targets, even with a teacher; give y, or fit on strings"
            )
        with _taught(model, teacher, distillation), _adapted(model, adapter):
            options |= {"validation_split": validation_split, "sample_weight": sample_weight}
            return EncoderModel.fit(model, x, y, batch_size, shuffle=shuffle, **options)
    labelled = True
    if learning_rate is not None:
        check_not_compiled(model, "learning_rate", "the optimizer in compile")
    if isinstance(x, tf.data.Dataset):
        if y is not None or sample_weight is not None or validation_split:
            raise UserError(
                "a dataset contains its targets and weights; remove y, sample_weight and "
                "validation_split"
            )
        model._learn_from_dataset(x, steps_per_epoch)
        if class_weight is not None and len(x.element_spec) > 2:
            raise UserError(
                "the dataset contains weights, which Keras does not combine with "
                "class_weight; multiply the weights in the dataset instead"
            )
        options["class_weight"] = _weights_by_number(model, class_weight)
        batches, steps = encoded_dataset(model, x), steps_per_epoch or _steps_of(x)
    else:
        rows = model.given(x, y, sample_weight, may_lack_targets=teacher is not None)
        if validation_split and validation_data is None:
            rows, validation_data = rows.split(validation_split)
        labelled = model.target is None or model.target.is_in(rows)
        if teacher is not None and not labelled:
            _check_unlabelled(model, sample_weight, class_weight, validation_data)
            rows = rows.without_targets()
        model.learn_from(rows)
        say_cut(model, rows.values)
        examples = model.examples(rows, _weights_by_number(model, class_weight))
        batch_size = min(batch_size or _BATCH_SIZE, len(examples.lengths))
        steps = steps_per_epoch or len(examples.lengths) // batch_size
        first = (model._epochs_drawn + initial_epoch) * steps
        batches = model._batches(examples, batch_size, seed, first, shuffle)
        model._epochs_drawn += epochs - initial_epoch
        options |= {"class_weight": None, "steps_per_epoch": steps}
    options["validation_batch_size"] = size = validation_batch_size or batch_size
    is_tuple = isinstance(validation_data, tuple | list) and len(validation_data)
    if not inputs.is_for_keras(validation_data[0] if is_tuple else validation_data):
        if not isinstance(validation_data, Columns):
            validation_data = validation_rows(model, validation_data, validation_steps)
        # Mistakes in the validation targets are reported before the training.
        if model.target is not None and validation_data.targets is not None:
            model.target.numbers(validation_data)
        validation = _Validation(model, validation_data, size, verbose, validation_freq)
        options |= {"callbacks": _first(validation, callbacks), "validation_data": None}
    with _taught(model, teacher, distillation, labelled), _adapted(model, adapter):
        if not is_compiled_by_user(model):
            _compile_for(model, steps * epochs, learning_rate)
        try:
            return EncoderModel.fit(model, batches, shuffle=False, **options)
        except tf.errors.InvalidArgumentError as error:
            raise _explained(error) from None


def _fit_few(model: Any, arguments: Mapping[str, Any]) -> keras.callbacks.History:
    train = getattr(model, "_fit_few_shot", None)
    if train is None:
        raise UserError(
            f"few_shot is for a TextClassifier, not for a {type(model).__name__}; remove it"
        )
    parameters = inspect.signature(fit).parameters
    given = {n: v for n, v in arguments.items() if v is not parameters[n].default}
    return train(**{n: v for n, v in given.items() if n not in ("model", "few_shot")})


def _check_teaching(model: Any, teacher: Any, distillation: Any) -> None:
    if teacher is None:
        if distillation is not None:
            raise UserError(
                "distillation requires a teacher; give teacher=, or remove distillation"
            )
        return
    losses_of(distillation)
    with scope_of(model):
        # Without labels, the model gets those of the teacher.
        check_teacher(model, teacher)


def _check_unlabelled(
    model: Any, sample_weight: Any, class_weight: Any, validation_data: Any
) -> None:
    for name, value in (("sample_weight", sample_weight), ("class_weight", class_weight)):
        if value is not None:
            raise UserError(
                f"{name} applies to the loss on labels, but there are no labels; remove it"
            )
    if isinstance(validation_data, Columns) and validation_data.targets is None:
        raise UserError(
            "validation_split would select rows without labels, which cannot be evaluated; "
            "give validation_data"
        )


@contextlib.contextmanager
def _taught(model: Any, teacher: Any, distillation: Any, labelled: bool = True) -> Iterator[None]:
    if teacher is None:
        yield
        return
    with scope_of(model):
        teaching = Teaching(model, teacher, losses_of(distillation), labelled)
    if is_compiled_by_user(model):
        teaching.check_compiled(model)
    try:
        # The training step has to be traced with the teacher, and afterwards without it.
        model.teaching, model.train_function = teaching, None
        yield
    finally:
        model.teaching, model.train_function = None, None


def _settings_of(lora: Any) -> LoraConfig | None:
    """The argument `lora` of `fit`, checked as `train.lora` is."""
    values = {"steps": 1, "lora": plain(lora)}
    try:
        return FinetuningTrain.model_validate(values).adapter
    except ValidationError as error:
        raise UserError(mistake(error, FinetuningTrain, values)[1]) from None


@contextlib.contextmanager
def _adapted(model: Any, lora: LoraConfig | None) -> Iterator[None]:
    """Trains a model with a new adapter, if its settings are given. A compiled model then gets a
    new optimizer with the same settings, since its own may be built for other weights.
    """
    before, model.updates = model.updates, None
    if lora is None:
        yield
        return
    if before is not None:
        logger.info(
            "the earlier adapter is now part of the weights; save_adapter saves the new one"
        )
    optimizer = model.optimizer if is_compiled_by_user(model) else None
    with scope_of(model):
        adapter = Adapter(model, lora)
        if optimizer is not None:
            model.optimizer = type(optimizer).from_config(optimizer.get_config())
    adapter.attach()
    _trace_again(model)
    try:
        yield
    finally:
        model.updates = adapter.merge()
        _trace_again(model)
        if optimizer is not None:
            model.optimizer = optimizer


def _trace_again(model: Any) -> None:
    model.train_function = model.test_function = model.predict_function = None


@inputs.columns_may_follow
@checked
def evaluate(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    verbose: int | str = "auto",
    sample_weight: Any = None,
    steps: int | None = None,
    callbacks: Any = None,
    return_dict: bool = False,
    confidence: float | None = None,
    **kwargs: Any,
) -> Any:
    """The official metrics on strings; on ids, Keras's `evaluate`.

    Args:
        x: as for `fit`.
        y: as for `fit`.
        batch_size: rows of a batch (32).
        verbose: 0 shows no progress.
        steps: batches to take of a dataset.
        sample_weight, callbacks, return_dict: as in Keras, for ids.
        confidence: such as 0.95, adds `accuracy_low`, `accuracy_high` and so on: the interval that
            holds this share of the metric's values in 1,000 samples of the rows, drawn with
            replacement (percentile bootstrap).
        **kwargs: as in Keras, for ids.

    Returns:
        On strings a dict of metrics, the same that `bert-tf evaluate` prints.

    Raises:
        UserError: as `fit`.
    """
    x = inputs.of_generator(x, False)
    if inputs.is_for_keras(x):
        if confidence is not None:
            raise UserError("confidence is for strings, not for ids; remove it")
        return EncoderModel.evaluate(
            model, x, y, batch_size, verbose, sample_weight, steps, callbacks, return_dict, **kwargs
        )
    if sample_weight is not None:
        raise UserError("the official metrics weight all rows equally; remove sample_weight")
    check_ready(model)
    rows = _rows_of(model, x, y, steps, "x")
    say_cut(model, rows.values)
    return scored(model, rows, batch_size, verbose, confidence)


def with_intervals(
    score: Any, model: Any, predictions: Any, rows: Any, confidence: float | None
) -> dict[str, float]:
    """`score(model, predictions, rows)`, with intervals of the metrics if there is a confidence."""
    metrics = score(model, predictions, rows)
    if confidence is None or not metrics:
        return metrics
    samples = uncertainty.bootstrap(score, model, predictions, rows)
    return metrics | uncertainty.intervals(samples, confidence)


@inputs.columns_may_follow
@checked
def calibrate(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    verbose: int | str = "auto",
) -> dict[str, float]:
    """Makes probabilities match the share of right answers: temperature scaling (Guo et al. 2017).

    Logits are divided by one number, `temperature`, before they become probabilities. This number
    makes the targets of held-out data likeliest. The answers and the weights do not change. The
    temperature is saved with the model, and is a part of its exports. `fit` sets it back to 1.

    Args:
        x, y: data that the model was not trained on, as for `fit`.
        batch_size, verbose: as for `evaluate`.

    Returns:
        `temperature`, and the expected calibration error in 15 bins of equal width before and
        after: the mean distance between the probability of predictions and the share of right
        ones. If a row can have several labels, each label is a prediction of its own.

    Raises:
        UserError: as `evaluate`; the family has no such probabilities; all rows have the same
            label; or the model gives NaN.
    """
    check_ready(model)
    rows = _rows_of(model, inputs.of_generator(x, False), y, None, "x")
    say_cut(model, rows.values)
    return calibrate_on(model, rows, batch_size, verbose)


def calibrate_on(model: Any, rows: Columns, *options: Any) -> dict[str, float]:
    """As `calibrate`, on checked rows."""
    targets = model.calibration_targets(rows)
    uncertainty.check_targets(targets)
    predictions = model.infer(rows, *options)
    logits = getattr(predictions, "logits", predictions)
    if not np.isfinite(logits).all():
        raise UserError("the model gives logits that are not finite; train it again")
    if targets.ndim == 1:
        logits, targets = logits[targets >= 0], targets[targets >= 0]
    now = model.temperature  # the model may have a temperature already
    factor = uncertainty.best_temperature(logits * now, targets, now) / now
    model.rescale(factor)
    errors = [
        uncertainty.reliability(*uncertainty.graded(each, targets))[-1]
        for each in (logits, logits / factor)
    ]
    return dict(zip(uncertainty.CALIBRATION, (model.temperature, *errors), strict=True))


def official_metrics(model: Any, predictions: Any, rows: Any) -> dict[str, float]:
    """The official metrics of predictions; {} if the rows lack targets that the task requires."""
    lacks = rows.targets is None if isinstance(rows, Columns) else False
    if lacks and model.target is not None and not model.target.is_optional:
        return {}
    return model.official_metrics(predictions, rows)


def check_ready(model: Any) -> None:
    """Raises UserError if a model has no head yet."""
    if model.has_labels and not model.labels:
        raise UserError(
            f"this {type(model).__name__} has no labels yet; train it with fit, or load a "
            "checkpoint with a head"
        )


def is_compiled_by_user(model: Any) -> bool:
    """Whether the user called `compile`, which then decides how the model is trained."""
    return model.compiled and not model._compiled_by_fit


def check_not_compiled(model: Any, option: str, place: str) -> None:
    """Raises UserError if an option of `fit` has no use, since the user compiled the model."""
    if is_compiled_by_user(model):
        raise UserError(
            f"{option} has no effect on a compiled model; give it to {place}, or remove it"
        )


def _rows_of(model: Any, x: Any, y: Any, steps: int | None, what: str) -> Columns:
    if isinstance(x, tf.data.Dataset):
        x, y = inputs.from_dataset(x, steps, what)
    return model.given(*inputs.of_table(model, x, y, what))


def validation_rows(model: Any, data: Any, steps: int | None) -> Columns:
    """The validation data as checked rows: a dataset, (x, y), or x alone if that is complete."""
    is_list = isinstance(data, list | tuple) and len(data) > 0
    has_targets = model.target is not None and not (is_list and isinstance(data[0], Mapping))
    if not has_targets or isinstance(data, tf.data.Dataset) or arrow.is_table(data):
        data = data, None
    elif is_list and len(data) == 3 and inputs.takes_two(model) and not isinstance(data[0], tuple):
        data = tuple(data[:2]), data[2]
    elif not is_list or len(data) != 2:
        raise UserError("validation_data must be a pair, (inputs, labels)")
    x, y = data
    return _rows_of(model, x, y, steps, "validation_data")


def scored(
    model: Any,
    rows: Any,
    batch_size: int | None,
    verbose: int | str,
    confidence: float | None = None,
) -> dict[str, float]:
    """The official metrics of a model on rows, as `evaluate` returns them."""
    predictions = model.infer(rows, batch_size, verbose)
    return with_intervals(official_metrics, model, predictions, rows, confidence)


def _weights_by_number(
    model: Any, class_weight: Mapping[Any, float] | None
) -> dict[int, float] | None:
    """Weights by class number, from weights by number or by name."""
    if class_weight is None:
        return None
    if not model.has_labels:
        raise UserError(
            f"class_weight is for classes, but a {type(model).__name__} has none; remove it"
        )
    if model.predicts == "labels":
        raise UserError("class_weight requires exactly one label per text; remove it")
    numbers, weights = {name: i for i, name in enumerate(model.labels)}, {}
    for key, weight in class_weight.items():
        (name,) = class_names([key], lambda _: "a key of class_weight")
        is_number = not isinstance(key, str) and name.isdecimal()
        number = numbers.get(name, int(name) if is_number else -1)
        if not 0 <= number < len(model.labels):
            raise UserError(
                f"class_weight has {key!r}, which is not a label; the labels are "
                f"{', '.join(model.labels)}"
            )
        weights[number] = float(weight)
    return weights


def _compile_for(model: Any, steps: int, learning_rate: float | None) -> None:
    steps = max(steps, 1)
    recipe = FinetuningTrain(steps=steps)
    if learning_rate is not None:
        recipe = recipe.model_copy(update={"learning_rate": learning_rate})
    with scope_of(model):
        model.compile(optimizer=make_optimizer(recipe, steps))
    model._compiled_by_fit = True


def encoded_dataset(model: Any, dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset of strings as one of ids, tokenized in the pipeline."""

    def encode(x: Any, *targets: Any) -> tuple:
        if isinstance(x, Mapping):
            x = tuple(x[column.name] for column in model.columns_of(x))
        return model.encode(x if isinstance(x, tuple) else (x,), *targets)

    return dataset.map(encode, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


@dataclasses.dataclass(eq=False)
class _Validation(keras.callbacks.Callback):
    """Adds the official metrics as `val_…` to the logs of an epoch, before all other callbacks."""

    owner: Any
    rows: Any
    batch_size: int | None
    verbose: int | str
    every: int | Collection[int]
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        every = self.every
        due = (epoch + 1) % every == 0 if isinstance(every, int) else epoch + 1 in every
        if due:
            # With 2, Keras writes a line for each epoch and nothing else.
            verbose = 0 if self.verbose == 2 else self.verbose
            self.metrics = scored(self.owner, self.rows, self.batch_size, verbose)
            if logs is not None:
                logs.update({f"val_{name}": value for name, value in self.metrics.items()})

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.metrics:
            self.owner.remember(self.metrics)


def _first(validation: _Validation, callbacks: Any) -> Any:
    if isinstance(callbacks, keras.callbacks.CallbackList):
        validation.set_model(callbacks.model)
        callbacks.callbacks.insert(0, validation)
        return callbacks
    return [validation, *tf.nest.flatten(callbacks or [])]


def random_seed() -> int:
    """The seed that `keras.utils.set_random_seed` has set, or a random one."""
    # Keras also sets TensorFlow's seed, and only that one can be read.
    seed, _ = tf.compat.v1.get_seed(1)
    return random.randrange(2**31) if seed in (None, _NO_SEED) else int(seed)


def _steps_of(dataset: tf.data.Dataset) -> int:
    known = int(dataset.cardinality())
    return known if known >= 0 else int(dataset.reduce(0, lambda count, *_: count + 1))


def _explained(error: tf.errors.InvalidArgumentError) -> Exception:
    found = re.search(r"assertion failed: \[(in the dataset, [^\]]*)\]", str(error))
    # TensorFlow escapes quotation marks.
    return UserError(found[1].replace("\\'", "'")) if found else error
