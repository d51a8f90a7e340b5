"""Serving a `TokenClassifier` or `FeatureTagger`: texts in, words with labels and entities out."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.decoding.tags import EntityTypes, Tags, WordTagger
from bert_tf.models import FeatureTagger, TokenClassifier
from bert_tf.text import Tokenizer, WordPreprocessor, tokenize_words, without_padding
from bert_tf.text.cutting import cut
from bert_tf.text.rows import owners, splits_of
from bert_tf.text.word_splitting import split_words
from export.service import Service, Signature, Tensors, class_names, strings

_TEXT = {"text": ["Ada Lovelace met Charles Babbage in London."]}
_WORDS = {"words": [["Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", "."]]}


class TokenClassificationService(Service):
    """`text` or `words` -> `words`, `labels`, `starts`, `ends`, `scores`; `text` -> entities.

    All outputs are [batch, words] or [batch, entities], padded with "", -1 and 0. `scores` are
    probabilities of the labels. Offsets are bytes; those of words that were given as words are of
    the text that they make when one space stands between each two.

    Args:
        model: the tagger.
        tokenizer: its tokenizer.
        labels: names of the labels in the order of the logits; by default their numbers. Where all
            are such as O, B-PER, I-PER there is the signature `entities` too.
        max_length: most tokens of a window; by default as many as the model has positions.
        stride: see `WordPreprocessor`.

    Raises:
        UserError: another number of labels than the model has.
    """

    has_labels = True
    assumed = (
        "windows of as many tokens as the model has positions; for those of its training use "
        "export.save(…, max_length=…, stride=…)"
    )

    def __init__(
        self,
        model: TokenClassifier | FeatureTagger,
        tokenizer: Tokenizer,
        labels: tuple[str, ...] = (),
        max_length: int | None = None,
        stride: int | None = None,
    ):
        labels = class_names(labels, model.head["num_classes"])
        super().__init__(model, tokenizer, labels)
        max_length = max_length or model.encoder.config.max_position_embeddings
        self._tokenizer = tokenizer
        self._tagger = WordTagger(model, WordPreprocessor(tokenizer, max_length, stride))
        self._types = EntityTypes(labels) if EntityTypes.are_tags(labels) else None

    @staticmethod
    def options_of(config: RunConfig) -> dict[str, Any]:
        """See `Service`."""
        return {"max_length": config.train.max_length, "stride": config.data.stride}

    def signatures(self) -> dict[str, Signature]:
        """Two or three signatures."""
        words = {"words": tf.TensorSpec([None, None], tf.string, "words")}
        signatures = {
            "serving_default": Signature(strings("text"), self.tag_text, _TEXT),
            "words": Signature(words, self.tag_words, _WORDS),
        }
        if self._types is not None:
            signatures["entities"] = Signature(strings("text"), self.find_entities, _TEXT)
        return signatures

    def tag_text(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """Cuts `text`, string [batch], into words and labels these."""
        pieces, starts, ends = split_words(inputs["text"], self._tokenizer)
        words = cut(inputs["text"], starts, ends)
        return self._answer(words, self._tagger(pieces), starts, ends, width=None)

    def tag_words(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """Labels `words`, string [batch, words], in which "" after the last word is padding."""
        words = without_padding(inputs["words"])
        tags = self._tagger(tokenize_words(words, self._tokenizer))
        sizes = tf.strings.length(words.values)
        first_bytes = splits_of(sizes + 1)
        text = owners(tf.cast(words.row_splits, tf.int32))
        starts = first_bytes[:-1] - tf.gather(first_bytes, tf.gather(words.row_splits, text))
        starts, ends = words.with_values(starts), words.with_values(starts + sizes)
        return self._answer(words, tags, starts, ends, width=tf.shape(inputs["words"])[1])

    def find_entities(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """The entities in `text`, string [batch]; a score is the mean over an entity's words."""
        pieces, starts, ends = split_words(inputs["text"], self._tokenizer)
        found = self._types.entities(self._tagger(pieces), starts, ends)
        names = tf.constant(self._types.names, tf.string)
        types = found.types.with_values(tf.gather(names, found.types.values))
        return {
            "entities": cut(inputs["text"], found.starts, found.ends).to_tensor(""),
            "types": types.to_tensor(""),
            "starts": found.starts.to_tensor(-1),
            "ends": found.ends.to_tensor(-1),
            "scores": found.scores.to_tensor(0.0),
        }

    def _answer(
        self,
        words: tf.RaggedTensor,
        tags: Tags,
        starts: tf.RaggedTensor,
        ends: tf.RaggedTensor,
        width: tf.Tensor | None,
    ) -> Tensors:
        """Words with what is known of them, padded to `width` or else to the longest text."""
        labels = tags.labels.with_values(tf.gather(tf.constant(self.labels), tags.labels.values))
        shape = None if width is None else tf.stack([-1, width])
        return {
            "words": words.to_tensor("", shape=shape),
            "labels": labels.to_tensor("", shape=shape),
            "starts": starts.to_tensor(-1, shape=shape),
            "ends": ends.to_tensor(-1, shape=shape),
            "scores": tags.scores.to_tensor(0.0, shape=shape),
        }
