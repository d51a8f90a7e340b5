"""Pictures of a tagger of words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking.row_files import Row, text_of
from bert_tf.data.columns import Columns
from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances, Inputs, log_odds
from bert_tf.interpret.looks import Look, Mark, PageSection
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.subject import Subject, without_padding
from bert_tf.tasks.token_classification.decoding import WordTagger
from bert_tf.tasks.token_classification.tag_schemes import OUTSIDE, parse_tags
from bert_tf.tasks.token_classification.tagged_sentences import (
    IGNORED,
    WordTags,
    ragged_words,
    texts_of,
)
from bert_tf.templates import macros
from bert_tf.text import WordWindows, tokenize_words

_TEMPLATE = macros("bert_tf/tasks/token_classification/words.html")
# How many words of a text have their tags explained.
_MOST_EXPLAINED = 12
# How many points of each type are in the projection.
_MOST_OF_TYPE = 60
# How many texts are encoded at a time.
_BATCH = 32
_NOTE = (
    "Each point is a word of the dev data: the output of the last layer at its first piece. At "
    f"most {_MOST_OF_TYPE} words of each type are drawn, chosen at random."
)


class _Words(NamedTuple):
    """The words of a text, the text before each, and the probabilities float32 [words, labels]."""

    texts: list[str]
    between: list[str]
    rest: str
    probabilities: np.ndarray


class TagPictures(Pictures):
    """Pictures of a `TokenClassifier`."""

    accepted = (("text",),)

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self._labels = subject.model.labels
        # The entity type of each label, "" for the outside tag.
        self._kinds = [tag.type for tag in parse_tags(self._labels).values()]
        self._windows = subject.model.windows()

    def look(self, row: Row) -> Look:
        # The words of interest are those with a tag, or else the word that most likely has one.
        subject = self.subject
        words, windows = self._tagged(text_of(row, "text"))
        best = words.probabilities.argmax(axis=1)
        named = np.array(list(map(bool, self._kinds)))
        interesting = np.flatnonzero(named[best])[:_MOST_EXPLAINED]
        if not len(interesting):
            interesting = words.probabilities[:, named].sum(axis=1).argsort()[-1:]
        seen, marks = [], []
        for window in range(len(windows.rows)):
            inputs = without_padding(windows.features, window)
            # The words of interest that this window tags, and the token at which it tags each.
            tagged = windows.words[window].numpy().tolist()
            places = {w: tagged.index(w) for w in interesting.tolist() if w in tagged}
            explained = self._explained(words, best, places, inputs) if places else []
            vectors = subject.encoder.encode(inputs, training=False).restore()[0].numpy()
            marks += [Mark(words.texts[word], vectors[place]) for word, place in places.items()]
            title = f"window {window + 1} of {len(windows.rows)}" if len(windows.rows) > 1 else ""
            focus = next(iter(places.values()), 0)
            seen.append(subject.seen(title, inputs, explained, focus))
        heading = (sections.shortened(text_of(row, "text")),)
        return Look(heading, self._answer(words, best), tuple(seen), tuple(marks))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        # The first `rows` sentences are taken, since they belong together.
        subject = self.subject
        data: Columns = subject.model.in_words(subject.read_dev().first(rows))
        logits = subject.model.infer(data)
        words = [word for sentence in data.column("words") for word in sentence]
        kinds = [kind or OUTSIDE for kind in self._kinds]
        names = list(dict.fromkeys(kinds))
        kind_of_label = np.array([names.index(kind) for kind in kinds])
        given_labels = WordTags(self._labels).numbers(data)
        counted = np.flatnonzero(given_labels != IGNORED)
        words, given_labels = [words[i] for i in counted], given_labels[counted]
        probabilities = tf.nn.softmax(logits[counted]).numpy()
        best = probabilities.argmax(axis=1)
        given, predicted = kind_of_label[given_labels], kind_of_label[best]
        right = (given == predicted).mean()
        of_kinds = [np.flatnonzero(given == kind) for kind in np.unique(given)]
        drawn = [each[sections.draw(len(each), _MOST_OF_TYPE)] for each in of_kinds]
        chosen = np.sort(np.concatenate(drawn))
        vectors = self._vectors(data)[counted[chosen]]
        titles = [words[i] for i in chosen]
        note = f"The types of {len(words)} words in {len(data)} sentences: {right:.1%} are right."
        return [
            *sections.by_label(vectors, titles, given[chosen].tolist(), names, marks, _NOTE),
            sections.confusions(names, given, predicted, note),
            sections.calibration(probabilities.max(axis=1), best == given_labels, "words"),
        ]

    def _tagged(self, text: str) -> tuple[_Words, WordWindows]:
        """The words of a text with their tags, as the served model finds them, and its windows."""
        data = text.encode()
        starts, ends, logits, windows = self._tag_words([data])
        bounds = np.stack([starts, ends], axis=1).tolist()
        before = [0, *(end for _, end in bounds)]
        return _Words(
            [data[start:end].decode() for start, end in bounds],
            [data[gap:start].decode() for gap, (start, _) in zip(before, bounds, strict=False)],
            data[before[-1] :].decode(),
            tf.nn.softmax(logits).numpy(),
        ), windows

    @tf.function(input_signature=[tf.TensorSpec([1], tf.string)], autograph=False)
    def _tag_words(self, texts: tf.Tensor) -> tuple:
        pieces, starts, ends = self.subject.model.split(texts)
        logits = self.subject.model.tagger().logits(pieces)
        return starts.values, ends.values, logits.values, self._windows.windows(pieces)

    def _explained(
        self, words: _Words, best: np.ndarray, places: Mapping[int, int], inputs: Inputs
    ) -> list[Importances]:
        """The importance of a window's tokens for the best tags of the words at `places`."""
        subject = self.subject

        def score(rows: Inputs) -> tf.Tensor:
            logits = subject.model(rows, training=False)
            odds = [log_odds(logits[:, place], best[word]) for word, place in places.items()]
            return tf.stack(odds, axis=1)

        label = {word: self._labels[best[word]] for word in places}
        names = [f"the log-odds of {label[word]} for “{words.texts[word]}”" for word in places]
        return subject.explain(names, inputs, score)

    def _answer(self, words: _Words, best: np.ndarray) -> Markup:
        kinds = sorted({*self._kinds} - {""})
        palette = dict(zip(kinds, charts.colours_of(len(kinds)), strict=True))
        tagged = []
        columns = (words.between, words.texts, best, words.probabilities)
        for gap, word, label, shares in zip(*columns, strict=True):
            colour = palette.get(self._kinds[label])
            tagged.append((gap, word, self._labels[label], shares[label], colour))
        return _TEMPLATE.words(tagged, words.rest)

    def _vectors(self, data: Columns) -> np.ndarray:
        """float32 [words, hidden]: the last layer at the first piece of each word of the file."""
        subject, texts, vectors = self.subject, texts_of(data), []

        def encode(rows: Inputs, training: bool = False) -> tf.Tensor:
            return subject.encoder.encode(rows, training=training).restore()

        reader = WordTagger(encode, self._windows)
        for first in range(0, len(texts), _BATCH):
            words = ragged_words(texts[first : first + _BATCH])
            pieces = tokenize_words(words, subject.tokenizer)
            vectors.append(reader.logits(pieces).values.numpy())
        return np.concatenate(vectors)
