"""The base of all models with heads: their encoder, configuration, training step and loss."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import extensible, layers_below, without_retracing_notice
from bert_tf.config.arguments import checked
from bert_tf.dependencies import FIXED_WEIGHTS
from bert_tf.encoder.encoder import Encoder, ids_of
from bert_tf.encoder.saving import freeze, frozen_layers
from bert_tf.errors import UserError
from bert_tf.training.loop import Gradients, accumulated, batch_sums, mean_loss, record_loss, update

# Reductions of Keras's losses that are not means over rows.
_NOT_SHARED = {"sum", "mean_with_sample_weight"}


@extensible
class EncoderModel(keras.Model):
    """A Keras model that owns an `Encoder` and adds a head to it.

    A subclass passes its own arguments to `__init__` as `head`, for `get_config` and checkpoints,
    and creates the head's weights in `build`. If the head does not read the pooled output, the
    pooler's weights are not trained, and do not decay either.
    """

    def __init__(
        self, encoder: Encoder, head: dict[str, Any], uses_pooler: bool = True, **kwargs: Any
    ):
        kwargs.setdefault("dtype", encoder.dtype_policy)
        super().__init__(**kwargs)
        if uses_pooler and encoder.pooler is None:
            raise UserError(
                f"a {type(self).__name__} requires the pooled output; create its encoder with "
                "with_pooler=True"
            )
        self.encoder = encoder
        self.head = head
        self.supports_jit = encoder.supports_jit
        self.uses_pooler = uses_pooler
        self.accumulation_steps = 1
        # How the model learns from a teacher (see `bert_tf.distillation.teaching`), and the adapter
        # that is trained instead of the encoder's weights (see `bert_tf.training.adapter`).
        self.teaching: Any = None
        self.adapter: Any = None
        self.updates: Any = None  # the updates that an adapter has added to the weights

    @property
    def rematerialize(self) -> bool:
        """Whether blocks compute their intermediates again for the gradient; see `compile`."""
        return any(tower.rematerialize for tower in self.encoder.towers().values())

    @checked
    def compile(
        self, *args: Any, accumulation_steps: int = 1, rematerialize: bool = False, **kwargs: Any
    ) -> None:
        """Keras's `compile`, with two ways to train in less memory.

        Each batch is cut into `accumulation_steps` parts, whose gradients are summed before one
        update; the batch size stays the same. With `rematerialize`, only the input of each block is
        kept, and the rest is computed again for the gradient; a step takes about a third longer.
        """
        losses = tf.nest.flatten(kwargs.get("loss", args[1:2]))
        found = {getattr(loss, "reduction", None) for loss in losses} & _NOT_SHARED
        if found and accumulation_steps * _replicas() > 1:
            raise UserError(
                f"a loss with reduction {found.pop()!r} cannot be computed over parts of a batch; "
                "remove the reduction"
            )
        self.accumulation_steps = accumulation_steps
        for tower in self.encoder.towers().values():
            tower.rematerialize = rematerialize
        super().compile(*args, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if not config:
            return config
        return config | {
            "accumulation_steps": self.accumulation_steps,
            "rematerialize": self.rematerialize,
            # Before the first step there is no state to load.
            "optimizer_has_state": self.optimizer is not None and self.optimizer.built,
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` says; Keras loads the optimizer's state afterwards."""
        settings = keras.saving.deserialize_keras_object(config)
        has_state = settings.pop("optimizer_has_state", True)  # files of 0.2.0 do not say
        self.compile(**settings)
        if self.optimizer is not None and has_state:
            self.optimizer.build(self.trainable_variables)

    def rebuilt(self, encoder: Encoder) -> "EncoderModel":
        """The same model with new weights, around another encoder."""
        return type(self)(encoder, **self.head)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(ids_of(inputs), *args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        optimizer = getattr(self, "optimizer", None)
        if optimizer is not None and not optimizer.built and _is_built(self):
            # If variables are created while the step is traced, TensorFlow traces it twice.
            with scope_of(self):
                optimizer.build(self.trainable_variables)
        with without_retracing_notice():
            return super().fit(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        with without_retracing_notice():
            return super().evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        with without_retracing_notice():
            return super().predict(*args, **kwargs)

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Keras's `export`, a SavedModel that takes ids.

        Raises:
            UserError: there is no `input_signature`; Keras cannot find one by itself.
        """
        if "input_signature" not in kwargs:
            raise UserError(
                "exporting a model that takes ids requires an input_signature; to serve strings, "
                "export a checkpoint of it with bert-tf export"
            )
        super().export(*args, **kwargs)

    @property
    def weights(self) -> list[keras.Variable]:
        return [*super().weights, *(self.adapter.weights if self.adapter is not None else ())]

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        """The weights that training changes, including those of `teaching`."""
        weights = super().trainable_weights
        if self.adapter is not None:
            trained = self.adapter.trained
            weights = [weight for weight in weights if id(weight) in trained]
        if self.teaching is not None:
            weights = [*weights, *self.teaching.weights]
        if self.uses_pooler or self.encoder.pooler is None:
            return weights
        unused = {id(weight) for weight in self.encoder.pooler.weights}
        return [weight for weight in weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        return self.trainable_weights

    @property
    def non_trainable_weights(self) -> list[keras.Variable]:
        return _but_trained(self, self.weights)

    @property
    def non_trainable_variables(self) -> list[keras.Variable]:
        return _but_trained(self, self.variables)

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update from one batch: `bert_tf.training.loop.update`."""
        if os.environ.get(FIXED_WEIGHTS, "").lower() in ("1", "true"):
            raise UserError(
                f"{FIXED_WEIGHTS} is set, which is only for serving: training would keep using the "
                "weights of its first step; unset it and start again"
            )
        if not _is_built(self):
            # A subclass may have added a layer that gets its weights from its first call.
            self(keras.utils.unpack_x_y_sample_weight(data)[0], training=False)
        return update(self, data)

    def accumulated(
        self, gradients_of: Callable[[Any], Gradients], batch: Any, weights: list[tf.Variable]
    ) -> Gradients:
        """The gradients of a batch and its loss, summed over parts of the batch."""
        # A subclass whose loss compares all rows of a batch overrides this.
        return accumulated(gradients_of, batch, self.accumulation_steps, weights, self.jit_compile)

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        sums = batch_sums(self, y)
        loss = self.share_of_loss(x, y, y_pred, sample_weight, sums, training=False)
        record_loss(self, loss, sums)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        return super().compute_metrics(x, *_as_columns(y, y_pred), sample_weight)

    def get_metrics_result(self) -> dict[str, Any]:
        """The values of all metrics; the loss alone if the rows have no targets."""
        if self.teaching is None or self.teaching.has_metrics:
            return super().get_metrics_result()
        return {"loss": mean_loss(self).result()}

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> tf.Tensor:
        """This replica's share of the batch's loss; a subclass may compute another loss here."""
        return self.part_loss(x, y, y_pred, sample_weight, batch_sums(self, y))

    def replica_sums(self, y: Any) -> dict[str, tf.Tensor]:
        """This replica's contribution to the sums of `bert_tf.training.loop.batch_sums`."""
        return {"rows": _rows(y)}

    def part_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, sums: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """The share of some rows in the loss of the batch whose sums are `sums`."""
        loss = super().compute_loss(x, *_as_columns(y, y_pred), sample_weight)
        # Keras weights the means of all replicas equally. Here the number of rows is the weight: in
        # the last batch of an epoch, a replica may have fewer rows than another, or none.
        return loss * _replicas() * _rows(y) / sums["rows"]

    def share_of_loss(
        self,
        x: Any,
        y: Any,
        y_pred: Any,
        sample_weight: Any,
        sums: Mapping[str, tf.Tensor],
        training: bool,
    ) -> tf.Tensor:
        """The share of some rows in the batch's loss, also if `compute_loss` is overridden."""
        if type(self).compute_loss is EncoderModel.compute_loss:
            return self.part_loss(x, y, y_pred, sample_weight, sums)
        if (self.accumulation_steps if training else 1) * _replicas() > 1:
            raise UserError(
                f"the compute_loss of {type(self).__name__} cannot be computed over parts of a "
                "batch; override part_loss instead"
            )
        return self.compute_loss(x, y, y_pred, sample_weight, training=training)

    def get_config(self) -> dict[str, Any]:
        encoder = keras.saving.serialize_keras_object(self.encoder)
        own = {"encoder": encoder, "frozen": frozen_layers(self)}
        return super().get_config() | self.head | own

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "EncoderModel":
        fields = dict(config)
        frozen = fields.pop("frozen", ())
        encoder = keras.saving.deserialize_keras_object(fields.pop("encoder"))
        model = cls(encoder, **fields)
        freeze(model, frozen)
        return model


def scope_of(model: keras.Model) -> Any:
    """The scope in which a model's variables are made."""
    return (model.distribute_strategy or tf.distribute.get_strategy()).scope()


def _is_built(model: keras.Model) -> bool:
    """Whether all layers have their weights; some get them from their first call."""
    return all(layer.built for layer in layers_below(model))


def _but_trained(model: keras.Model, variables: list[keras.Variable]) -> list[keras.Variable]:
    trained = {id(weight) for weight in model.trainable_weights}
    return [variable for variable in variables if id(variable) not in trained]


def _as_columns(y: Any, y_pred: Any) -> tuple[Any, Any]:
    """[batch] as [batch, 1]; Keras reduces vectors to one mean, which ignores the rows' weights."""
    if not tf.is_tensor(y_pred) or y_pred.shape.rank != 1:
        return y, y_pred
    y = tf.convert_to_tensor(y)
    return y[:, None] if y.shape.rank == 1 else y, y_pred[:, None]


def _rows(tensors: Any) -> tf.Tensor:
    """The size of the first axis, which all tensors share, as float32."""
    return tf.cast(tf.shape(tf.nest.flatten(tensors)[0])[0], tf.float32)


def _replicas() -> int:
    return tf.distribute.get_strategy().num_replicas_in_sync
