"""How the tokens of a batch lie in memory while they pass through the encoder.

Everything in BERT but attention works on each token by itself. The layers therefore see tokens
flat, as [tokens, hidden]: matrix product, bias and GELU then fuse into one kernel, and positions
that are only padding can be left out altogether. Attention asks the layout for rows again.

`UnpaddedLayout` keeps real tokens, and just so much padding that their number is a round one; its
shapes depend on the data. `PaddedLayout` keeps every position; its shapes are static, which XLA and
TPUs need. Both give the same numbers.
"""

from collections.abc import Callable

import tensorflow as tf


class PaddedLayout:
    """All positions of [batch, seq_len], padding included."""

    def __init__(self, input_mask: tf.Tensor):
        """Takes `input_mask`, int [batch, seq_len], non-zero at real tokens."""
        self._batch, self._seq_len = _sizes(input_mask)
        self._real = tf.not_equal(input_mask, 0)
        self.key_mask = self._real  # bool [batch, row_len]: keys that may be attended to

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch, seq_len, ...] -> [tokens, ...]."""
        return tf.reshape(rows, [self._batch * self._seq_len, *rows.shape[2:]])

    def to_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, ...] -> [batch, row_len, ...], with anything finite at padding."""
        return tf.reshape(tokens, [self._batch, self._seq_len, *tokens.shape[1:]])

    def from_rows(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch, row_len, ...] -> [tokens, ...], the inverse of `to_rows`."""
        return self.flatten(rows)

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, hidden] -> [batch, seq_len, hidden], zero where the mask is 0."""
        return _zero_unless(self._real, self.to_rows(tokens))

    def select(self, tokens: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Picks tokens by place: [tokens, hidden], int [batch, n] -> [batch * n, hidden].

        A position whose mask is 0 gives zeros.
        """
        found = tf.gather(tokens, self._in_order(positions))
        return _zero_unless(self.is_real(positions), found)

    def is_real(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether the mask is non-zero at places: int [batch, n] -> bool [batch * n]."""
        return tf.gather(tf.reshape(self._real, [-1]), self._in_order(positions))

    def _in_order(self, positions: tf.Tensor) -> tf.Tensor:
        """Places in rows that are laid end to end: int32 [batch, n] -> [batch * n]."""
        return tf.reshape(_row_starts(self._batch, self._seq_len) + positions, [-1])


class UnpaddedLayout:
    """The tokens whose mask is non-zero, row after row, and hardly more."""

    def __init__(self, input_mask: tf.Tensor):
        """Takes `input_mask`, int [batch, seq_len], non-zero at real tokens."""
        self._batch, self._seq_len = _sizes(input_mask)
        real = tf.not_equal(input_mask, 0)
        # Attention works on rows as long as the longest one, not as the caller padded them.
        places = tf.range(1, self._seq_len + 1)
        longest = tf.reduce_max(tf.where(real, places, 0))
        self._row_len = _rounded_up(longest)
        self.key_mask = self._fit(real, self._row_len)
        kept = tf.reshape(self.key_mask, [-1])
        # As much padding stays as makes the number of tokens a round one too.
        count = tf.reduce_sum(tf.cast(kept, tf.int32))
        padding = tf.cumsum(1 - tf.cast(kept, tf.int32))
        kept = tf.logical_or(kept, padding <= _rounded_up(count) - count)
        # int32 [tokens]: the place of each token in the rows laid end to end, and its inverse,
        # which sends padding to any existing token.
        self._places = tf.cast(tf.reshape(tf.where(kept), [-1]), tf.int32)
        self._tokens = tf.maximum(tf.cumsum(tf.cast(kept, tf.int32)) - 1, 0)

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch, seq_len, ...] -> [tokens, ...]."""
        return self.from_rows(self._fit(rows, self._row_len))

    def to_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, ...] -> [batch, row_len, ...], with anything finite at padding."""
        rows = self._spread(tokens)
        return tf.reshape(rows, [self._batch, self._row_len, *tokens.shape[1:]])

    def from_rows(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch, row_len, ...] -> [tokens, ...], the inverse of `to_rows`."""
        return self._collect(tf.reshape(rows, [self._batch * self._row_len, *rows.shape[2:]]))

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, hidden] -> [batch, seq_len, hidden], zero where the mask is 0."""
        rows = _zero_unless(self.key_mask, self.to_rows(tokens))
        return self._fit(rows, self._seq_len)

    def select(self, tokens: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Picks tokens by place: [tokens, hidden], int [batch, n] -> [batch * n, hidden].

        A position whose mask is 0 gives zeros.
        """
        found = tf.gather(tokens, tf.gather(self._tokens, self._in_order(positions)))
        return _zero_unless(self.is_real(positions), found)

    def is_real(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether the mask is non-zero at places: int [batch, n] -> bool [batch * n]."""
        real = tf.gather(tf.reshape(self.key_mask, [-1]), self._in_order(positions))
        return tf.logical_and(real, tf.reshape(positions < self._row_len, [-1]))

    def _in_order(self, positions: tf.Tensor) -> tf.Tensor:
        """Places in rows that are laid end to end: int32 [batch, n] -> [batch * n]; 0 outside."""
        inside = tf.where(positions < self._row_len, positions, 0)
        return tf.reshape(_row_starts(self._batch, self._row_len) + inside, [-1])

    def _fit(self, rows: tf.Tensor, length: tf.Tensor | int) -> tf.Tensor:
        """[batch, any, ...] -> [batch, length, ...]: cut, or filled up with zeros."""
        rows = tf.convert_to_tensor(rows)[:, :length]
        missing = length - tf.shape(rows)[1]
        fitted = tf.pad(rows, [[0, 0], [0, missing], *[[0, 0]] * (rows.shape.rank - 2)])
        fitted.set_shape([None, None, *rows.shape[2:]])
        return fitted

    # The two gathers below are each other's gradient, which spares the slow segment sum that
    # TensorFlow would use for a general gather.

    def _spread(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, ...] -> [batch * row_len, ...]; a copy of some token at padding.

        What is copied to padding never counts: masked keys have probability zero and the outputs
        of padded queries are not read. The gradient there is zero, and is dropped.
        """

        @tf.custom_gradient
        def spread(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
            return tf.gather(x, self._tokens), lambda upstream: tf.gather(upstream, self._places)

        return spread(tokens)

    def _collect(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch * row_len, ...] -> [tokens, ...]; its gradient is zero at padding."""
        padding = tf.logical_not(tf.reshape(self.key_mask, [-1]))

        @tf.custom_gradient
        def collect(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                places = [-1] + [1] * (upstream.shape.rank - 1)
                zero = tf.zeros([], upstream.dtype)
                spread = tf.gather(upstream, self._tokens)
                return tf.where(tf.reshape(padding, places), zero, spread)

            return tf.gather(x, self._places), gradient

        return collect(rows)


TokenLayout = PaddedLayout | UnpaddedLayout

# At most a sixteenth more than any number from 16 on, and sixteen for each power of two.
_ROUND_NUMBERS = [*range(1, 16), *(n << power for power in range(26) for n in range(16, 32))]


def _rounded_up(number: tf.Tensor) -> tf.Tensor:
    """The next round number, at least 1; int32 [].

    oneDNN makes a kernel for every shape that it meets, a sixth of the time that a question of a
    new length takes with a small model. Few shapes are soon all known.
    """
    numbers = tf.constant(_ROUND_NUMBERS)
    return tf.gather(numbers, tf.searchsorted(numbers, number[tf.newaxis])[0])


def _zero_unless(keep: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """`values` where `keep` (all axes but the last) is true, else 0."""
    return tf.where(keep[..., tf.newaxis], values, tf.zeros([], values.dtype))


def _row_starts(batch: tf.Tensor | int, row_len: tf.Tensor | int) -> tf.Tensor:
    """int32 [batch, 1]: where each row begins when rows are laid end to end."""
    return (tf.range(batch) * row_len)[:, tf.newaxis]


def _sizes(x: tf.Tensor) -> tuple[tf.Tensor | int, tf.Tensor | int]:
    """The first two axes of `x`, as numbers where they are known."""
    dynamic = tf.shape(x)
    return tuple(x.shape[i] if x.shape[i] is not None else dynamic[i] for i in (0, 1))
