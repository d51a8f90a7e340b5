"""Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685) of an encoder while they are trained.

A linear layer with an update computes x @ kernel + scale * x @ A @ B, in two thin products, so the
gradient of the kernel is never computed. A has random values and B is zero, so training starts from
the model as it is. When training ends, scale * A @ B is added to the kernel. Models that are saved
or exported therefore never have an adapter.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bert_tf.checkpoints.names import weight_names
from bert_tf.checkpoints.peft import Pair, Updates
from bert_tf.config.train import LoraConfig
from bert_tf.encoder.block import TransformerBlock
from bert_tf.encoder.dropout import Dropout
from bert_tf.encoder.linear import Linear
from bert_tf.errors import UserError


class _Updated(NamedTuple):
    """A linear layer and the variables A and B of each part of its columns; None has no update."""

    linear: Linear
    pairs: tuple[Pair | None, ...]


class Adapter:
    """The updates of a model's encoder, to be made in the scope of the model's strategy.

    Frozen layers of the encoder get no update.

    Args:
        model: an `EncoderModel`.
        settings: rank, scale, dropout and targets.

    Attributes:
        weights: A [input, rank] and B [rank, columns] of each update.
        generators: the states of its dropout.

    Raises:
        UserError: the encoder has other blocks than BERT's, or all its layers are frozen.
    """

    def __init__(self, model: Any, settings: LoraConfig):
        self._model, self._settings = model, settings
        encoder = model.encoder
        if encoder.factories["block"] is not TransformerBlock:
            raise UserError("lora is for BERT's blocks, but this encoder has others; remove lora")
        self._dropout = Dropout(settings.dropout, dtype=encoder.dtype_policy)
        self._updated: dict[str, _Updated] = {}
        names = {id(weight): name for name, weight in weight_names(model).items()}
        for tower in encoder.towers().values():
            for linear, targets in (each for block in tower.blocks for each in _linears(block)):
                if linear.trainable and not {*targets}.isdisjoint(settings.targets):
                    name = names[id(linear.kernel)]
                    self._updated[name] = _Updated(linear, self._pairs(name, linear, targets))
        if not self._updated:
            raise UserError(
                "lora has nothing to train: all layers of the encoder are frozen; make some "
                "trainable, or remove lora"
            )
        pairs = [pair for each in self._updated.values() for pair in each.pairs if pair]
        self.weights: list[keras.Variable] = [weight for pair in pairs for weight in pair]
        self.generators = self._dropout.variables

    def _pairs(
        self, name: str, linear: Linear, targets: tuple[str, ...]
    ) -> tuple[Pair | None, ...]:
        rows, columns = linear.kernel.shape
        rank, dtype = self._settings.rank, linear.kernel.dtype
        # As in peft: A is uniform in +-1 / sqrt(rows).
        random = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")

        def pair(target: str) -> Pair:
            with contextlib.ExitStack() as scopes:
                for part in (self._model.name, "adapter", *name.split("/")[:-1], target):
                    scopes.enter_context(keras.name_scope(part))
                return Pair(
                    keras.Variable(random, (rows, rank), dtype, name="A"),
                    keras.Variable("zeros", (rank, columns // len(targets)), dtype, name="B"),
                )

        return tuple(pair(each) if each in self._settings.targets else None for each in targets)

    @property
    def trained(self) -> set[int]:
        """The ids of the weights that are trained: those of the updates and of the head."""
        return {id(weight) for weight in (*self.weights, *of_head(self._model).values())}

    @property
    def exact(self) -> dict[str, keras.Variable]:
        """Our names and variables of A, B and the kernels without them, for the next session."""
        kept = {id(each.linear.kernel) for each in self._updated.values()}
        kept |= {id(weight) for weight in self.weights}
        found = weight_names(self._model).items()
        return {name: weight for name, weight in found if id(weight) in kept}

    def attach(self) -> None:
        """Lets the model compute with the updates, and train nothing else of its encoder."""
        for each in self._updated.values():
            each.linear.update = self._function(each.pairs)
        self._set(self)

    def updates(self) -> Updates:
        """The updates as they are now."""
        settings = self._settings
        pairs = {
            name: tuple(pair and Pair(*(each.numpy() for each in pair)) for pair in updated.pairs)
            for name, updated in self._updated.items()
        }
        return Updates(settings.rank, settings.scale * settings.rank, settings.dropout, pairs)

    def merge(self) -> Updates:
        """Adds the updates to the kernels, and detaches the adapter; returns what was added."""
        updates = self.updates()
        for each in self._updated.values():
            each.linear.update = None
        self._set(None)
        updates.add_to(weight_names(self._model))
        for up in self.weights[1::2]:  # functions that were traced before compute with them
            up.assign(tf.zeros_like(up))
        return updates

    def _set(self, adapter: "Adapter | None") -> None:
        self._model.adapter = adapter
        getattr(self._model, "_functions", {}).clear()

    def _function(self, pairs: tuple[Pair | None, ...]) -> Callable[[tf.Tensor, bool], tf.Tensor]:
        """Computes scale * x @ A @ B: [tokens, input], training -> [tokens, output]."""
        found = [pair for pair in pairs if pair]

        def update(tokens: tf.Tensor, training: bool) -> tf.Tensor:
            tokens = self._dropout.call(tokens, training)
            down = tf.concat([tf.convert_to_tensor(pair.down) for pair in found], axis=-1)
            low = tf.matmul(tokens, down) * self._settings.scale
            lows = iter(tf.split(low, len(found), axis=-1))
            nothing = tf.zeros([tf.shape(tokens)[0], found[0].up.shape[-1]], tokens.dtype)
            parts = [tf.matmul(next(lows), pair.up) if pair else nothing for pair in pairs]
            return tf.concat(parts, axis=-1)

        return update


def of_head(model: Any) -> dict[str, keras.Variable]:
    """Our names and variables of what is trained besides an adapter.

    Outside of BERT, a pooler that the model reads is a part of the head, as in transformers.
    """
    with_pooler = model.uses_pooler and model.encoder.config.model_type != "bert"
    pooler = "encoder/pooler/" if with_pooler else ()
    return {
        name: weight
        for name, weight in weight_names(model).items()
        if not name.startswith(("encoder/", "adapter/")) or name.startswith(pooler)
    }


@contextlib.contextmanager
def merged(model: Any) -> Iterator[None]:
    """Within this context a model has no adapter: it is in the weights, to be saved or exported."""
    adapter = model.adapter
    if adapter is None:
        yield
        return
    before = [(weight, weight.numpy()) for weight in adapter.exact.values()]
    adapter.merge()
    try:
        yield
    finally:
        for weight, value in before:
            weight.assign(value)
        adapter.attach()


def without_adapter(method: Callable) -> Callable:
    """A method of a model that saves or exports it, called while its adapter is in the weights."""

    @functools.wraps(method)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        with merged(model):
            return method(model, *args, **kwargs)

    return call


def _linears(block: TransformerBlock) -> list[tuple[Linear, tuple[str, ...]]]:
    """The linear layers of a block, and the targets that are equal parts of their columns."""
    return [
        (block.attention.query_key_value, ("query", "key", "value")),
        (block.attention.output_projection, ("attention_output",)),
        (block.intermediate, ("intermediate",)),
        (block.output_projection, ("output",)),
    ]
