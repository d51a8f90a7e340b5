"""Processes any number of rows, a part of them at a time, with the same result for equal rows.

The last bit of a result depends on the place of its row in a batch. Without `as_first` such a bit
would decide which of two equal texts is ranked first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

Columns = Mapping[str, tf.Tensor]  # [rows, ...] by name
OfRows = Callable[[Columns], Any]  # called with a part of the rows; see `map_in_parts`
# Bytes of text that are tokenized at a time; that takes some 25 times as much memory.
MAX_BYTES = 8_000_000
# The most tokens, padding included, that a model is given at a time. In windows of 384 tokens, the
# attention of BERT-base then takes some 200 MB.
MAX_TOKENS = 16_384


def shared(compute: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    """`compute` as one function of the graph, for all callers with tensors of the same ranks."""
    # `compute` may have other arguments, with defaults.
    function = tf.function(lambda inputs: compute(inputs), autograph=False, **options)

    def call(inputs: Any) -> Any:
        # No size is known to the function, so other sizes need no other trace.
        form = tf.nest.map_structure(
            lambda each: tf.TensorSpec([None] * each.shape.rank, each.dtype), inputs
        )
        outputs = function.get_concrete_function(form)(inputs)
        # TensorFlow's optimizer does not know the shape of a call's outputs unless it is set.
        return tf.nest.map_structure(lambda each: tf.ensure_shape(each, each.shape), outputs)

    return call


def map_in_groups(function: OfRows, texts: Columns, max_bytes: int = MAX_BYTES) -> Any:
    """Calls `function` on rows of strings with at most `max_bytes`, or one row that has more."""
    sizes = tf.add_n([tf.cast(tf.strings.length(each), tf.int64) for each in texts.values()])
    ends = tf.cumsum(sizes)
    before = tf.concat([tf.zeros([1], tf.int64), ends], axis=0)

    def stop_after(start: tf.Tensor) -> tf.Tensor:
        fitting = tf.searchsorted(ends, [before[start] + max_bytes], side="right")[0]
        return tf.maximum(fitting, start + 1)

    return map_in_parts(function, texts, stop_after)


def map_in_chunks(function: OfRows, inputs: Columns, max_tokens: int = MAX_TOKENS) -> Any:
    """Calls `function` on rows with at most `max_tokens`, padding included, or on one alone."""
    length = tf.shape(next(iter(inputs.values())))[1]
    per_chunk = tf.maximum(max_tokens // tf.maximum(length, 1), 1)
    return map_in_parts(function, inputs, lambda start: start + per_chunk)


def map_rows(function: OfRows, inputs: Columns, max_tokens: int = MAX_TOKENS) -> Any:
    """As `map_in_chunks`, for a function with one result per row; equal rows get equal results."""
    first = first_equal(tf.concat([*inputs.values()], axis=1))
    results = map_in_chunks(function, inputs, max_tokens)
    return tf.nest.map_structure(lambda each: tf.gather(each, first), results)


def first_equal(rows: tf.Tensor) -> tf.Tensor:
    """int32 [rows]: for each row, of whole numbers or float32, the first row that equals it."""
    # On the CPU the operation takes an axis; it was not tried on another device.
    with tf.device("/CPU:0"):
        count = tf.shape(rows)[0]
        flat = tf.reshape(rows, [count, tf.reduce_prod(tf.shape(rows)[1:])])
        distinct = tf.raw_ops.UniqueV2(x=flat, axis=[0]).idx
        first = tf.math.unsorted_segment_min(tf.range(count), distinct, count)
        return tf.gather(first, distinct)


def as_first(values: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`values` [rows, ...] computed from `rows`; equal rows all get the value of the first."""
    return tf.gather(values, first_equal(rows))


def map_in_parts(
    function: OfRows, inputs: Columns, stop_after: Callable[[tf.Tensor], tf.Tensor]
) -> Any:
    """Calls `function` on one part of the rows after the other, and joins the results.

    A part of the inputs, tensors [rows, ...], may have no rows. Only the first axis of results may
    depend on the rows. `stop_after` takes the row where a part starts, and returns the row after
    its end, which may be beyond the last row.
    """
    inputs = dict(inputs)
    rows = tf.shape(next(iter(inputs.values())))[0]
    # Only for the outputs' forms. The loop does not call this function: each that reaches frozen
    # weights gets a copy of them when a SavedModel is loaded.
    traced = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, *each.shape[1:]], each.dtype) for name, each in inputs.items()}
    )
    forms = tf.nest.flatten(traced.structured_outputs)
    arrays = [
        tf.TensorArray(
            each.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=each.shape
        )
        for each in forms
    ]

    def is_more(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tf.Tensor:
        # Without rows there is one empty part, since its output gives the other axes.
        return (start < rows) | (arrays[0].size() == 0)

    def step(start: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple:
        stop = tf.minimum(stop_after(start), rows)
        part = tf.nest.flatten(function({name: each[start:stop] for name, each in inputs.items()}))
        place = arrays[0].size()
        return stop, [a.write(place, v) for a, v in zip(arrays, part, strict=True)]

    _, arrays = tf.while_loop(is_more, step, (tf.constant(0), arrays), parallel_iterations=1)
    # A loop's arrays forget their shapes.
    results = [
        tf.ensure_shape(array.concat(), [None, *each.shape[1:]])
        for array, each in zip(arrays, forms, strict=True)
    ]
    return tf.nest.pack_sequence_as(traced.structured_outputs, results)
