"""Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685) of an encoder while they are trained.

A linear layer with an update computes x @ kernel + scale * x @ A @ B, in two thin products, so the
gradient of the kernel is never computed. A has random values and B is zero. When training ends,
scale * A @ B is added to the kernel, so models that are saved or exported never have an adapter.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from bert_tf.checkpoints.names import weight_names
from bert_tf.checkpoints.peft import Pair, Updates, of_head
from bert_tf.config.train import LoraConfig
from bert_tf.encoder.encoder import TransformerBlock
from bert_tf.encoder.layers import Dropout, Linear
from bert_tf.errors import UserError

# The variables A and B for each equal part of a kernel's columns; None for parts without an update.
_Pairs = tuple[Pair | None, ...]


class Adapter:
    """The updates of a model's encoder; frozen layers get none. Create it in the scope of the
    model's strategy. `weights` are A [input, rank] and B [rank, columns] of each update.
    """

    def __init__(self, model: Any, settings: LoraConfig):
        self._model, self._settings, encoder = model, settings, model.encoder
        if encoder.factories["block"] is not TransformerBlock:
            raise UserError("lora is for BERT's blocks, but this encoder has others; remove lora")
        self._dropout = Dropout(settings.dropout, dtype=encoder.dtype_policy)
        self.generators = self._dropout.variables
        self._updated: list[tuple[Linear, _Pairs]] = []
        for block in (each for tower in encoder.towers().values() for each in tower.blocks):
            for linear, targets in (
                (block.attention.query_key_value, ("query", "key", "value")),
                (block.attention.output_projection, ("attention_output",)),
                (block.intermediate, ("intermediate",)),
                (block.output_projection, ("output",)),
            ):
                chosen = [target in settings.targets for target in targets]
                if linear.trainable and any(chosen):
                    pairs = zip(targets, chosen, strict=True)
                    made = (self._pair(linear, *pair, len(targets)) for pair in pairs)
                    self._updated.append((linear, tuple(made)))
        if not self._updated:
            raise UserError(
                "lora has nothing to train: all layers of the encoder are frozen; make some "
                "trainable, or remove lora"
            )
        found = [pair for _, pairs in self._updated for pair in pairs if pair]
        self.weights: list[keras.Variable] = [weight for pair in found for weight in pair]

    def _pair(self, linear: Linear, target: str, is_chosen: bool, parts: int) -> Pair | None:
        """A and B of one of the equal parts of a kernel; A is uniform in +-1 / sqrt(rows)."""
        if not is_chosen:
            return None
        (rows, columns), rank, dtype = linear.kernel.shape, self._settings.rank, linear.kernel.dtype
        random = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
        # "MODEL/adapter/encoder/layer_0/output/A", so that the layer decides the learning rate.
        path = linear.kernel.path.partition(f"{self._model.encoder.name}/")[2].split("/")[:-1]
        with contextlib.ExitStack() as scopes:
            for part in (self._model.name, "adapter", self._model.encoder.name, *path, target):
                scopes.enter_context(keras.name_scope(part))
            return Pair(
                keras.Variable(random, (rows, rank), dtype, name="A"),
                keras.Variable("zeros", (rank, columns // parts), dtype, name="B"),
            )

    @property
    def trained(self) -> set[int]:
        return {id(weight) for weight in (*self.weights, *of_head(self._model).values())}

    @property
    def exact(self) -> dict[str, keras.Variable]:
        """A, B and the kernels without the updates, by our names, for the next session."""
        kept = {id(each) for each in (*self.weights, *(each.kernel for each, _ in self._updated))}
        found = weight_names(self._model).items()
        return {name: weight for name, weight in found if id(weight) in kept}

    def updates(self) -> Updates:
        names = {id(weight): name for name, weight in weight_names(self._model).items()}
        arrays = {
            names[id(linear.kernel)]: tuple(
                pair and Pair(pair.down.numpy(), pair.up.numpy()) for pair in pairs
            )
            for linear, pairs in self._updated
        }
        rank, scale = self._settings.rank, self._settings.scale
        return Updates(rank, scale * rank, self._settings.dropout, arrays)

    def attach(self) -> None:
        for linear, pairs in self._updated:
            linear.update = functools.partial(self._product, pairs)
        self._set(self)

    def merge(self) -> Updates:
        """Adds the updates to the kernels, and detaches the adapter; returns what was added."""
        updates = self.updates()
        for linear, _ in self._updated:
            linear.update = None
        self._set(None)
        updates.add_to(weight_names(self._model))
        for up in self.weights[1::2]:  # functions traced earlier still use them
            up.assign(tf.zeros_like(up))
        return updates

    def _set(self, adapter: "Adapter | None") -> None:
        self._model.adapter = adapter
        getattr(self._model, "_functions", {}).clear()

    def _product(self, pairs: _Pairs, tokens: tf.Tensor, training: bool) -> tf.Tensor:
        """scale * x @ A @ B: [tokens, input] -> [tokens, output]."""
        found = [pair for pair in pairs if pair]
        down = tf.concat([tf.convert_to_tensor(pair.down) for pair in found], axis=-1)
        low = tf.matmul(self._dropout.call(tokens, training), down) * self._settings.scale
        lows = iter(tf.split(low, len(found), axis=-1))
        nothing = tf.zeros([tf.shape(tokens)[0], found[0].up.shape[-1]], tokens.dtype)
        parts = [tf.matmul(next(lows), pair.up) if pair else nothing for pair in pairs]
        return tf.concat(parts, axis=-1)


@contextlib.contextmanager
def merged(model: Any) -> Iterator[None]:
    """Within this context, a model's adapter is merged into the weights, to save or export them."""
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
    """Wraps a model's method that saves or exports it: the adapter is merged during the call."""

    @functools.wraps(method)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        with merged(model):
            return method(model, *args, **kwargs)

    return call
