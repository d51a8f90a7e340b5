"""Filling the gaps of texts: from strings with [MASK] to pieces and their probabilities."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, output
from bert_tf.export.service import Tensors
from bert_tf.text import slide
from bert_tf.text.packing import Features, trim
from bert_tf.text.parts import first_equal, map_in_chunks, map_in_groups, shared
from bert_tf.text.rows import splits_of

# How many scores over the vocabulary are computed at a time, at most: a quarter of a GiB.
_MOST_LOGITS = 2**26

# The maximum number of masks of a window that a file for a device fills.
DEVICE_MASKS = 20

# The offset from a [MASK] to the token that predicts it. In a model that reads in one direction,
# every token has learned to predict the next token in that direction (`causal_lm_targets`).
_TO_READER = {"bidirectional": 0, "left_to_right": -1, "right_to_left": 1}


class GapFiller:
    """Fills each [MASK] of texts of any length in the window where it has most context. A model
    that reads in one direction fills a gap only from the tokens that it reads before the gap.
    """

    def __init__(self, model: Any):
        self._model, self._network = model, (network := model.network())
        # In plain text "[MASK]" is five pieces.
        self._tokenizer = model.tokenizer.with_settings(special_tokens="whole")
        self._windows = shared(self._windows_of)
        self._vectors = network.function(self._at_positions)
        self._fillings = network.function(self._fill)
        # A file for a device fills the masks of a window itself.
        self.fill = getattr(network, "fill_gaps", self._fill_by_parts)

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`tokens` and `probabilities`, [batch, masks, top_k], padded with "" and 0."""
        return self._by_row(map_in_groups(self._fill_texts, inputs))

    def of_ids(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """As `__call__`, for the encoder's inputs, int32 [batch, seq_len]: fills each [MASK]."""
        is_mask = inputs["input_word_ids"] == self._tokenizer.mask_id
        is_mask, rows = is_mask & (inputs["input_mask"] != 0), tf.range(tf.shape(is_mask)[0])
        return self._by_row(self._fill_masks(inputs, is_mask, rows, tf.size(rows)))

    def _by_row(self, found: Mapping[str, tf.Tensor]) -> Tensors:
        splits = splits_of(found["masks"])

        def by_text(values: tf.Tensor, padding: str | float) -> tf.Tensor:
            return tf.RaggedTensor.from_row_splits(values, splits).to_tensor(padding)

        vocabulary = tf.constant(self._tokenizer.vocabulary)
        return {
            "tokens": by_text(tf.gather(vocabulary, found["pieces"]), ""),
            "probabilities": by_text(found["probabilities"], 0.0),
        }

    def _fill_texts(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`masks` int32 [batch], how many each text has; the others are [all masks, top_k]."""
        features, is_mask, rows = self._windows(inputs["text"])
        return self._fill_masks(features, is_mask, rows, tf.size(inputs["text"]))

    def _windows_of(self, texts: tf.Tensor) -> tuple[Features, tf.Tensor, tf.Tensor]:
        """The windows of texts, the masks that each has to fill, and the rows of the windows."""
        # Strings live on the CPU; otherwise the small integer ops would be sent to a GPU and back.
        with tf.device("/CPU:0"):
            pieces, length = self._tokenizer.tokenize(texts), self._model.max_length
            windows = slide(pieces, self._tokenizer, length, max(1, length // 2))
            is_mask = windows.features["input_word_ids"] == self._tokenizer.mask_id
            return windows.features, is_mask & windows.has_most_context, windows.rows

    def _fill_masks(
        self,
        features: Mapping[str, tf.Tensor],
        is_mask: tf.Tensor,
        rows: tf.Tensor,
        count: tf.Tensor,
    ) -> Tensors:
        """As `_fill_texts`, for the masks in windows, bool [windows, seq_len], of `count` rows."""
        with tf.device("/CPU:0"):
            masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)
            masks, chosen = tf.math.unsorted_segment_sum(masks, rows, count), masks > 0
            windows = trim({name: tf.boolean_mask(v, chosen) for name, v in features.items()})
            wanted = tf.where(tf.boolean_mask(is_mask, chosen))
            window, position = tf.unstack(tf.cast(wanted, tf.int32), axis=1)
            used = tf.size(windows["input_mask"][:, 0], tf.int64)
            ragged = tf.RaggedTensor.from_value_rowids(position, wanted[:, 0], nrows=used)
            windows["positions"] = ragged.to_tensor(-1)
        filled = map_in_chunks(self.fill, windows)
        # Masks at the same position of equal windows are filled with the same pieces.
        same = first_equal(tf.concat([windows[name] for name in INPUTS], axis=1))
        first = first_equal(tf.stack([tf.gather(same, window), position], axis=1))
        return {name: tf.gather(each, first) for name, each in filled.items()} | {"masks": masks}

    def _fill_by_parts(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        vectors = self._vectors(inputs)
        wanted = tf.boolean_mask(vectors, tf.reshape(inputs["positions"] >= 0, [-1]))
        rows = max(1, _MOST_LOGITS // self._model.encoder.config.vocab_size)
        return map_in_chunks(self._fillings, {"vectors": wanted}, vectors.shape[-1] * rows)

    def _at_positions(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """float32 [windows * masks, hidden]: the last layer where `positions` are predicted."""
        # A [MASK] always has a neighbour on each side, at least [CLS] and [SEP].
        to_reader = _TO_READER[self._model.encoder.config.attention]
        positions = tf.maximum(inputs["positions"] + to_reader, 0)
        return tf.cast(self._network.encoder.encode_at(inputs, positions), tf.float32)

    def _fill(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        return best_pieces(self._model, self._network, inputs["vectors"])


def best_pieces(model: Any, network: Any, vectors: tf.Tensor) -> Tensors:
    """The `top_k` most probable pieces at tokens, from vectors float32 [tokens, hidden]. Pieces
    that only the model has are left out: its vocabulary may have been rounded up to a rounder size.
    """
    table = network.encoder.embeddings.word_embeddings.value
    logits = network.masked_lm(vectors, table)[:, : model.tokenizer.vocab_size]
    best = tf.math.top_k(logits, model.top_k)
    total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    return {"pieces": best.indices, "probabilities": tf.exp(best.values - total)}


def device_form(model: Any) -> DeviceForm:
    """The answers of a `MaskedLM` on a device, for the first masks of a window. `pieces` and
    `probabilities` are [1, masks, top_k], -1 and 0 where there are fewer masks. `restore` returns
    their values at `positions` of the windows, [all masks, top_k].
    """
    mask_id, top_k = model.tokenizer.mask_id, model.top_k
    if model.encoder.config.attention != "bidirectional":
        raise UserError(
            "a masked LM that reads in one direction cannot be exported to LiteRT or ONNX; export "
            "a SavedModel"
        )

    def answer(features: Mapping[str, tf.Tensor]) -> Tensors:
        is_mask = tf.cast(features["input_word_ids"] == mask_id, tf.float32)
        # `top_k` lists equal values in order. A row may be shorter than the list of its masks.
        found = tf.math.top_k(tf.pad(is_mask, [[0, 0], [0, DEVICE_MASKS]]), DEVICE_MASKS)
        is_there = found.values > 0
        places = tf.where(is_there, found.indices, 0)
        best = best_pieces(model, model, model.encoder.encode_at(features, places))
        shape, is_there = [-1, DEVICE_MASKS, top_k], is_there[:, :, tf.newaxis]
        return {
            "pieces": tf.where(is_there, tf.reshape(best["pieces"], shape), -1),
            "probabilities": tf.where(is_there, tf.reshape(best["probabilities"], shape), 0.0),
        }

    def restore(
        outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        is_mask = tf.cast(features["input_word_ids"] == mask_id, tf.int32)
        rank = tf.cumsum(is_mask, axis=1) - 1
        wanted = tf.where(features["positions"] >= 0)
        columns = tf.gather_nd(features["positions"], wanted)
        rows = tf.cast(wanted[:, 0], tf.int32)
        places = tf.gather_nd(rank, tf.stack([rows, columns], axis=1))
        said = f"a window has more than {DEVICE_MASKS} masks, the most that the file fills"
        fits = tf.debugging.Assert(tf.reduce_all(places < DEVICE_MASKS), [said])
        with tf.control_dependencies([fits]):
            index = tf.stack([rows, places], axis=1)
        return {name: tf.gather_nd(outputs[name], index) for name in outputs}

    shape = DEVICE_MASKS, top_k
    outputs = {"pieces": output(*shape, dtype=tf.int32), "probabilities": output(*shape)}
    return DeviceForm(outputs, answer, restore)
