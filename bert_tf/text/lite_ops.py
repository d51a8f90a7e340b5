"""tf-text's ops that LiteRT has too, on flat lists with int32 positions."""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.text.rows import ragged


class Normalized(NamedTuple):
    """Texts from the normalizer, and the byte of the original that each of their bytes comes from.

    Attributes:
        texts: string [batch].
        splits: int32 [batch + 1], where the bytes of each text lie in `origins`; there is one more
            for each text's end.
        origins: int32, bytes of the original text.
    """

    texts: tf.Tensor
    splits: tf.Tensor
    origins: tf.Tensor


def normalize(texts: tf.Tensor, model: tf.Tensor) -> Normalized:
    """Replaces characters of `texts`.

    >>> from bert_tf.text.normalizer_model import normalizer_model
    >>> model = tf.constant(normalizer_model({"e": [ord("é")]}))
    >>> texts, splits, origins = normalize(tf.constant(["né"]), model)
    >>> texts.numpy().tolist(), splits.numpy().tolist(), origins.numpy().tolist()
    ([b'ne'], [0, 3], [0, 1, 3])

    Args:
        texts: string [batch].
        model: of `normalizer_model`, uint8 [bytes].
    """
    import tensorflow_text as tf_text

    normalizer = tf_text.FastBertNormalizer(model_buffer=model)
    normalized, origins = normalizer.normalize_with_offsets(texts)
    splits = tf.cast(origins.row_splits, tf.int32)
    return Normalized(normalized, splits, tf.cast(origins.values, tf.int32))


class FlatPieces(NamedTuple):
    """The pieces of some texts in one list.

    Attributes:
        splits: int32 [batch + 1], the first piece of each text.
        ids: int32 [pieces].
        starts, ends: int32 [pieces], bytes of the piece's text.
    """

    splits: tf.Tensor
    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def wordpiece(texts: tf.Tensor, model: tf.Tensor) -> FlatPieces:
    """Splits texts into pieces.

    >>> from bert_tf.text.tokenizer import wordpiece_model_of
    >>> model = tf.constant(wordpiece_model_of(["[UNK]", "cat", "##s"], unk_id=0))
    >>> pieces = wordpiece(tf.constant(["cats", "a cat"]), model)
    >>> pieces.splits.numpy().tolist(), pieces.ids.numpy().tolist()
    ([0, 2, 4], [1, 2, 0, 1])

    Args:
        texts: string [batch].
        model: of `Tokenizer.wordpiece_model`, uint8 [bytes].
    """
    import tensorflow_text as tf_text

    tokenizer = tf_text.FastWordpieceTokenizer(model_buffer=model, token_out_type=tf.int32)
    ids, *offsets = tokenizer.tokenize_with_offsets(texts)
    starts, ends = (tf.cast(each.values, tf.int32) for each in offsets)
    return FlatPieces(tf.cast(ids.row_splits, tf.int32), ids.values, starts, ends)


def substrings(
    texts: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor, splits: tf.Tensor
) -> tf.Tensor:
    """Parts of each text, all in one list: string [parts].

    >>> starts, ends = tf.constant([0, 2]), tf.constant([1, 5])
    >>> substrings(tf.constant(["a cat"]), starts, ends, splits=tf.constant([0, 2])).numpy()
    array([b'a', b'cat'], dtype=object)

    Args:
        texts: string [batch].
        starts, ends: int32 [parts], bytes.
        splits: int32 [batch + 1], the first part of each text.
    """
    import tensorflow_text as tf_text

    rows = (ragged(each, splits) for each in (starts, ends))
    return tf_text.ByteSplitter().split_by_offsets(texts, *rows).values


def counts(numbers: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """How often each number below `size` is in `numbers`: int32 [size].

    >>> counts(tf.constant([0, 2, 2]), size=4).numpy().tolist()
    [1, 0, 2, 0]
    """
    return tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, size)
