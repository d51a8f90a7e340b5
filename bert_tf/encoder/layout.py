"""How the tokens of a batch lie in memory while they pass through the encoder.

Everything in BERT but attention works on each token by itself. The layers therefore see tokens
flat, as [tokens, hidden]: matrix product, bias and GELU then fuse into one kernel, and padding can
be left out. Attention asks the layout for rows again.

`UnpaddedLayout` keeps the real tokens, and just enough padding to round their number up; its shapes
depend on the data. `PaddedLayout` keeps every position; its shapes are static, which XLA and TPUs
need. Both give the same numbers.
"""

from collections.abc import Callable

import tensorflow as tf

from bert_tf.compat import custom_gradient


class PaddedLayout:
    """All positions of [batch, seq_len], padding included."""

    def __init__(self, input_mask: tf.Tensor):
        self._batch, self._seq_len = _sizes(input_mask)
        self._row_len = self._seq_len
        # bool [batch, row_len], true at tokens that may be attended to.
        self.key_mask = tf.not_equal(input_mask, 0)

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        """[batch, seq_len, ...] -> [tokens, ...]."""
        return self._collect(tf.reshape(rows, [self._batch * self._row_len, *rows.shape[2:]]))

    def to_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, ...] -> [batch, row_len, ...], with arbitrary finite values at padding."""
        return tf.reshape(self._spread(tokens), [self._batch, self._row_len, *tokens.shape[1:]])

    def to_heads(self, tokens: tf.Tensor, num_heads: int, parts: int) -> list[tf.Tensor]:
        """[tokens, parts * hidden] -> `parts` of [batch, num_heads, row_len, hidden / heads]."""
        size = tokens.shape[-1] // (parts * num_heads)
        split = tf.reshape(tokens, [self._batch, self._seq_len, parts, num_heads, size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]))

    def from_heads(self, heads: tf.Tensor) -> tf.Tensor:
        """[batch, heads, row_len, size] -> [tokens, heads * size]."""
        rows = tf.transpose(heads, [0, 2, 1, 3])
        return tf.reshape(rows, [self._batch * self._seq_len, heads.shape[1] * heads.shape[3]])

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        """[tokens, hidden] -> [batch, seq_len, hidden], zero where the mask is 0."""
        return _zero_unless(self.key_mask, self.to_rows(tokens))

    def select(self, tokens: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """[tokens, hidden], int [batch, n] -> [batch * n, hidden], zero where the mask is 0."""
        return _zero_unless(self.is_real(positions), tf.gather(tokens, self._indices(positions)))

    def is_real(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether the mask is non-zero at places: int [batch, n] -> bool [batch * n]."""
        return tf.gather(tf.reshape(self.key_mask, [-1]), self._in_order(positions))

    def _indices(self, positions: tf.Tensor) -> tf.Tensor:
        """The indices of the flat tokens at places: int [batch, n] -> int32 [batch * n]."""
        return self._in_order(positions)

    def _in_order(self, positions: tf.Tensor) -> tf.Tensor:
        """Places in rows that are laid end to end: int32 [batch, n] -> [batch * n]."""
        starts = (tf.range(self._batch) * self._row_len)[:, tf.newaxis]
        return tf.reshape(starts + positions, [-1])

    def _spread(self, tokens: tf.Tensor) -> tf.Tensor:
        return tokens

    def _collect(self, rows: tf.Tensor) -> tf.Tensor:
        return rows


class UnpaddedLayout(PaddedLayout):
    """The tokens whose mask is non-zero, row after row, and a little padding."""

    def __init__(self, input_mask: tf.Tensor):
        super().__init__(input_mask)
        places = tf.range(1, self._seq_len + 1)
        longest = tf.reduce_max(tf.where(self.key_mask, places, 0))
        # Rows are as long as the longest one needs, not as the caller padded them.
        self._row_len = _rounded_up(longest)
        self.key_mask = self._fit(self.key_mask, self._row_len)
        kept = tf.reshape(self.key_mask, [-1])
        # Some padding is kept, so that the number of tokens is a round one, too.
        count = tf.reduce_sum(tf.cast(kept, tf.int32))
        padding = tf.cumsum(1 - tf.cast(kept, tf.int32))
        kept = tf.logical_or(kept, padding <= _rounded_up(count) - count)
        # int32 [tokens]: the place of each token in the rows laid end to end, and its inverse,
        # which sends padding to any existing token.
        self._places = tf.cast(tf.reshape(tf.where(kept), [-1]), tf.int32)
        self._tokens = tf.maximum(tf.cumsum(tf.cast(kept, tf.int32)) - 1, 0)
        self._known: dict[tuple, tf.Tensor] = {}

    def flatten(self, rows: tf.Tensor) -> tf.Tensor:
        return super().flatten(self._fit(rows, self._row_len))

    def to_heads(self, tokens: tf.Tensor, num_heads: int, parts: int) -> list[tf.Tensor]:
        # One gather of vectors separates the heads and spreads the tokens over their rows.
        size = tokens.shape[-1] // (parts * num_heads)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            places = self._once(self._places_of_vectors, num_heads, parts)
            return tf.gather(tf.reshape(upstream, [-1, size]), places)

        vectors = tf.reshape(tokens, [-1, size])
        found = _gather(vectors, self._once(self._vectors_at_places, num_heads, parts), gradient)
        return tf.unstack(found, parts)

    def from_heads(self, heads: tf.Tensor) -> tf.Tensor:
        num_heads, size = heads.shape[1], heads.shape[3]

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            spread = tf.gather(upstream, self._once(self._vectors_at_places, num_heads, 1)[0])
            return tf.reshape(_zero_unless(self.key_mask[:, tf.newaxis], spread), [-1, size])

        vectors = tf.reshape(heads, [-1, size])
        found = _gather(vectors, self._once(self._places_of_vectors, num_heads, 1), gradient)
        return tf.reshape(found, [-1, num_heads * size])

    def restore(self, tokens: tf.Tensor) -> tf.Tensor:
        return self._fit(super().restore(tokens), self._seq_len)

    def is_real(self, positions: tf.Tensor) -> tf.Tensor:
        inside = tf.reshape(positions < self._row_len, [-1])
        return tf.logical_and(super().is_real(positions), inside)

    def _indices(self, positions: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._tokens, self._in_order(positions))

    def _in_order(self, positions: tf.Tensor) -> tf.Tensor:
        # A place beyond the longest row becomes the first one.
        return super()._in_order(tf.where(positions < self._row_len, positions, 0))

    def _fit(self, rows: tf.Tensor, length: tf.Tensor | int) -> tf.Tensor:
        """[batch, any, ...] -> [batch, length, ...]: cut, or filled up with zeros."""
        rows = tf.convert_to_tensor(rows)[:, :length]
        missing = length - tf.shape(rows)[1]
        fitted = tf.pad(rows, [[0, 0], [0, missing], *[[0, 0]] * (rows.shape.rank - 2)])
        fitted.set_shape([None, None, *rows.shape[2:]])
        return fitted

    def _once(
        self, index: Callable[[int, int], tf.Tensor], num_heads: int, parts: int
    ) -> tf.Tensor:
        """The result of `index`, computed once for all layers of a graph."""
        # Otherwise these operations would be a third of the graph of an export, and slow to load.
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        key = index.__name__, num_heads, parts, graph
        if key not in self._known:
            self._known[key] = index(num_heads, parts)
        return self._known[key]

    def _vectors_at_places(self, num_heads: int, parts: int) -> tf.Tensor:
        """int32 [parts, batch, num_heads, row_len]: the index of the vector at each place."""
        # The vectors of a token follow each other, beginning with those of the first part's heads.
        token = tf.reshape(self._tokens, [1, self._batch, 1, self._row_len])
        vector = tf.reshape(tf.range(parts * num_heads), [parts, 1, num_heads, 1])
        return token * (parts * num_heads) + vector

    def _places_of_vectors(self, num_heads: int, parts: int) -> tf.Tensor:
        """int32 [tokens * parts * num_heads]: the inverse, the place of each vector."""
        quotients = self._places // self._row_len, self._places % self._row_len
        row, column = (tf.reshape(each, [-1, 1, 1]) for each in quotients)
        part = tf.reshape(tf.range(parts), [1, parts, 1])
        head = tf.reshape(tf.range(num_heads), [1, 1, num_heads])
        place = ((part * self._batch + row) * num_heads + head) * self._row_len + column
        return tf.reshape(place, [-1])

    def _spread(self, tokens: tf.Tensor) -> tf.Tensor:
        # At padding there is a copy of some token. It never counts, since masked keys have
        # probability zero and the outputs of padded queries are not read. Its gradient is zero.
        return _gather(tokens, self._tokens, lambda upstream: tf.gather(upstream, self._places))

    def _collect(self, rows: tf.Tensor) -> tf.Tensor:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            real = tf.reshape(self.key_mask, [-1] + [1] * (upstream.shape.rank - 1))
            return tf.where(real, tf.gather(upstream, self._tokens), tf.zeros([], upstream.dtype))

        return _gather(rows, self._places, gradient)


TokenLayout = PaddedLayout | UnpaddedLayout

# oneDNN makes a kernel for every new shape. This is a sixth of the time that a small model takes
# for a question of a new length. With round numbers there are few shapes: sixteen for each power of
# two, so rounding up adds at most a sixteenth.
_ROUND_NUMBERS = [*range(1, 16), *(n << power for power in range(26) for n in range(16, 32))]


def _rounded_up(number: tf.Tensor) -> tf.Tensor:
    """The next round number, at least 1; int32 []."""
    numbers = tf.constant(_ROUND_NUMBERS)
    return tf.gather(numbers, tf.searchsorted(numbers, number[tf.newaxis])[0])


def _gather(x: tf.Tensor, index: tf.Tensor, gradient: Callable) -> tf.Tensor:
    """`x` at `index`, where the gradient of `x` is a gather too."""

    # This gradient avoids the slow segment sum that TensorFlow would use for a general gather.
    @custom_gradient
    def gather(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        return tf.gather(x, index), gradient

    return gather(x)


def _zero_unless(keep: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """`values` where `keep` (all axes but the last) is true, else 0."""
    return tf.where(keep[..., tf.newaxis], values, tf.zeros([], values.dtype))


def _sizes(x: tf.Tensor) -> tuple[tf.Tensor | int, tf.Tensor | int]:
    """The first two axes of `x`, as numbers where they are known."""
    dynamic = tf.shape(x)
    return tuple(x.shape[i] if x.shape[i] is not None else dynamic[i] for i in (0, 1))
