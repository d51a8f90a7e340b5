"""Filling the gaps of texts: from strings with [MASK] to pieces and their probabilities."""

from collections.abc import Mapping

import tensorflow as tf

from bert_tf.export.service import Tensors
from bert_tf.tasks.interface import Network
from bert_tf.text import Tokenizer, slide
from bert_tf.text.packing import trim
from bert_tf.text.parts import map_in_chunks, map_in_groups
from bert_tf.text.rows import splits_of

# Scores over the vocabulary are computed for so many numbers at a time: a quarter of a GiB.
_MOST_LOGITS = 2**26

# The offset from a [MASK] to the token that predicts it. Where a model reads in one direction,
# every token has learned to predict the one that is read next (`causal_lm_targets`).
_TO_READER = {"bidirectional": 0, "left_to_right": -1, "right_to_left": 1}


class GapFiller:
    """Fills each [MASK] of texts of any length in the window where it has most context.

    A model that reads in one direction fills a gap from the tokens on that side alone.

    Args:
        network: a `MaskedLM`, used by its parts.
        tokenizer: its tokenizer.
        max_length: most tokens of a window.
        top_k: how many of the most probable pieces to give.
    """

    def __init__(self, network: Network, tokenizer: Tokenizer, max_length: int, top_k: int):
        self._network = network
        self._top_k = top_k
        config = network.encoder.config
        self._to_reader = _TO_READER[config.attention]
        self._vocab_size = config.vocab_size
        self._max_length = max_length
        self._stride = max(1, max_length // 2)
        # In plain text "[MASK]" is five pieces.
        self._tokenizer = Tokenizer(
            tokenizer.vocabulary, tokenizer.lower_case, keep_special_tokens=True
        )
        self._vectors = network.function(self._at_positions)
        self._fillings = network.function(self._fill)

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`tokens` string and `probabilities` float32, both [batch, masks, top_k].

        The most probable piece comes first. Texts with fewer masks than others are padded with ""
        and 0.
        """
        found = map_in_groups(self._fill_texts, inputs)
        splits = splits_of(found["masks"])

        def by_text(values: tf.Tensor, padding: str | float) -> tf.Tensor:
            return tf.RaggedTensor.from_row_splits(values, splits).to_tensor(padding)

        vocabulary = tf.constant(self._tokenizer.vocabulary)
        return {
            "tokens": by_text(tf.gather(vocabulary, found["pieces"]), ""),
            "probabilities": by_text(found["probabilities"], 0.0),
        }

    def _fill_texts(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The fillings of all masks in `text`, string [batch].

        Returns:
            `masks` int32 [batch], how many a text has; for each in order `pieces` int32 and
            `probabilities` float32 [all masks, top_k].
        """
        # Strings live on the CPU; the small integer ops would else be sent to a GPU and back.
        with tf.device("/CPU:0"):
            windows, rows = self._windows(inputs["text"])
        masks = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, tf.size(inputs["text"]))
        return map_in_chunks(self._fill_windows, windows) | {"masks": masks}

    def _windows(self, texts: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """The windows that have a [MASK] to fill.

        Args:
            texts: string [batch].

        Returns:
            The encoder's inputs, each int32 [windows, seq_len], with `positions` int32 [windows,
            masks] in order, padded with -1; and the text of each mask, int32 [all masks].
        """
        pieces = self._tokenizer.tokenize(texts)
        windows = slide(pieces, self._tokenizer, self._max_length, self._stride)
        is_mask = windows.features["input_word_ids"] == self._tokenizer.mask_id
        is_mask &= windows.has_most_context
        chosen = tf.reduce_any(is_mask, axis=1)
        features = trim(
            {name: tf.boolean_mask(each, chosen) for name, each in windows.features.items()}
        )
        rows, is_mask = tf.boolean_mask(windows.rows, chosen), tf.boolean_mask(is_mask, chosen)
        places = tf.where(is_mask)
        positions = tf.RaggedTensor.from_value_rowids(
            tf.cast(places[:, 1], tf.int32), places[:, 0], nrows=tf.size(rows, tf.int64)
        )
        return features | {"positions": positions.to_tensor(-1)}, tf.gather(rows, places[:, 0])

    def _fill_windows(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The best `pieces` int32 and their `probabilities` float32, [masks, top_k]."""
        vectors = self._vectors(inputs)
        return map_in_chunks(
            self._fillings,
            {"vectors": tf.boolean_mask(vectors, tf.reshape(inputs["positions"] >= 0, [-1]))},
            max_tokens=vectors.shape[-1] * max(1, _MOST_LOGITS // self._vocab_size),
        )

    def _at_positions(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The last layer where the tokens at `positions` [windows, masks] are predicted.

        Returns:
            float32 [windows * masks, hidden].
        """
        # A [MASK] has a neighbour on either side, if only [CLS] and [SEP].
        positions = tf.maximum(inputs["positions"] + self._to_reader, 0)
        return tf.cast(self._network.encoder.encode_at(inputs, positions), tf.float32)

    def _fill(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The best `pieces` and `probabilities` [masks, top_k] at `vectors` [masks, hidden]."""
        table = self._network.encoder.embeddings.word_embeddings.value
        # A model may have a few more pieces than its vocabulary, to be of a rounder size.
        logits = self._network.masked_lm(inputs["vectors"], table)[:, : self._tokenizer.vocab_size]
        best = tf.math.top_k(logits, self._top_k)
        total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        return {"pieces": best.indices, "probabilities": tf.exp(best.values - total)}
