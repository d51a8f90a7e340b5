"""A tag for each word, as for named entities (paper, section 5.3): fine-tuned or feature-based.

The first piece of each word is classified. With `data.document_context` a text is a whole document,
its sentences one after the other, and else one sentence; what is longer than the model takes is
cut into windows, and each word is trained and tagged in the one where it has most context. So a
document is encoded hardly more than once, and not once for each of its sentences.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.atomic import write_text
from bert_tf.config import TaggerModel, TokenClassificationData
from bert_tf.data.batching import batches_by_length
from bert_tf.data.conll import read_conll, separator
from bert_tf.data.tag_schemes import OUTSIDE, parse
from bert_tf.data.tagged_sentences import Sentence
from bert_tf.data.tagged_windows import TaggedWindows, ragged
from bert_tf.data.tfds_tags import read_tfds_tags
from bert_tf.decoding.tags import WordTagger, best_labels
from bert_tf.errors import UserError
from bert_tf.metrics.entities import entity_metrics
from bert_tf.models import Encoder, FeatureTagger, TokenClassifier
from bert_tf.progress import Progress
from bert_tf.tasks.task import Task
from bert_tf.text import WordPreprocessor, tokenize_words

FORMATS = ("conll", "tfds")
# Texts that are tagged at a time.
_EVALUATION_BATCH = 64


@dataclasses.dataclass(frozen=True)
class TaggedTexts:
    """Sentences, tagged or not, and the texts that they are read in.

    Attributes:
        sentences: in the file's order; all have tags, or none.
        by_document: whether sentences of a document are one text.
        separator: what parts the columns of the file.
    """

    sentences: Sequence[Sentence]
    by_document: bool
    separator: str = " "

    @cached_property
    def texts(self) -> list[list[str]]:
        """The words of each text."""
        return [[word for each in text for word in each.words] for text in self._grouped()]

    @property
    def tags(self) -> list[list[str]]:
        """Their tags, which have to be told."""
        return [[tag for each in text for tag in each.tags] for text in self._grouped()]

    def by_sentence(self, values: Sequence[Any]) -> list[list[Any]]:
        """A value for every word of the file -> a list for each sentence."""
        rest = iter(values)
        return [list(itertools.islice(rest, len(each.words))) for each in self.sentences]

    def _grouped(self) -> list[list[Sentence]]:
        if not self.by_document:
            return [[each] for each in self.sentences]
        groups = itertools.groupby(self.sentences, key=lambda each: each.document)
        return [list(group) for _, group in groups]


class TokenClassification(Task):
    """Trains a `TokenClassifier`, or a `FeatureTagger` where `model.features` says so."""

    best_metric = "f1"
    data: TokenClassificationData

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._preprocess = WordPreprocessor(
            self.tokenizer, self.config.train.max_length, self.data.stride
        )
        self._tagger: tuple[keras.Model, Any] | None = None

    def files(self, split: str) -> dict[str, Path]:
        """See `Task`; of TFDS, the name and the split."""
        if self.data.format not in FORMATS:
            raise UserError(
                f"unknown data.format {self.data.format!r}; choose one of {', '.join(FORMATS)}"
            )
        if self.data.format == "tfds":
            return {"": Path(self.data.path) / (getattr(self.data, split) or split)}
        return super().files(split)

    def train_examples(self) -> TaggedWindows:
        """See `Task`. Every type has its B and its I, even if training lacks one of them.

        The types are those of the whole file, whatever `train_rows` says.
        """
        (path,) = self.files("train").values()
        data = self._read(path)
        types = {parse(tag).type for each in data.sentences for tag in each.tags} - {""}
        data = dataclasses.replace(data, sentences=data.sentences[: self.data.train_rows])
        if not types:
            raise UserError(f"{path}: all tags are {OUTSIDE}; there is no entity to learn from")
        prefixed = (f"{prefix}-{kind}" for kind in sorted(types) for prefix in "BI")
        self.labels = (OUTSIDE, *prefixed)
        index = {label: number for number, label in enumerate(self.labels)}
        labels = [[index[tag] for tag in tags] for tags in data.tags]
        return TaggedWindows.cut(data.texts, labels, self._preprocess)

    def model(self, encoder: Encoder) -> TokenClassifier | FeatureTagger:
        """See `Task`."""
        settings: TaggerModel = self.config.model
        if settings.features is None:
            return TokenClassifier(encoder, len(self.labels))
        return FeatureTagger(encoder, len(self.labels), settings.features, settings.lstm_units)

    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model`, which has its loss built in."""
        model.compile(**options)

    def read(self, path: Path) -> TaggedTexts:
        """The sentences of a file, or of TFDS where no file has such a name.

        Other than those of the training and dev files, they may be words alone.
        """
        data = self._read(path)
        for sentence in data.sentences:
            for word, tag in enumerate(sentence.tags or ()):
                if tag not in self.labels:
                    raise UserError(
                        f"{path}, {sentence.place(word)}: entities of type {parse(tag).type!r} are "
                        f"not in the training data; known labels are {', '.join(self.labels)}; "
                        "train with some of them, or tag them O"
                    )
        return data

    def predict(self, model: keras.Model, data: TaggedTexts) -> np.ndarray:
        """float32 [words, labels]: the logits of every word, in the file's order."""
        tag = self._tag(model)
        lengths = np.array([len(text) for text in data.texts])
        first_words = np.cumsum([0, *lengths])
        logits = np.zeros((first_words[-1], len(self.labels)), np.float32)
        done = 0
        with Progress("tagging", len(lengths), unit="texts") as progress:
            for chosen in batches_by_length(lengths, _EVALUATION_BATCH):
                places = [np.arange(first_words[i], first_words[i + 1]) for i in chosen]
                logits[np.concatenate(places)] = tag(ragged([data.texts[i] for i in chosen]))
                done += len(chosen)
                progress.update(done, line=True)
        return logits

    def score(self, predictions: np.ndarray, data: TaggedTexts) -> dict[str, float]:
        """See `entity_metrics`; and `loss`, the mean cross-entropy of words. None without tags."""
        if data.sentences[0].tags is None:
            return {}
        types = [label.removeprefix("B-") for label in self.labels if label.startswith("B-")]
        gold = [each.tags for each in data.sentences]
        metrics = entity_metrics(gold, self._predicted(predictions, data), types)
        index = {label: number for number, label in enumerate(self.labels)}
        labels = np.array([index[tag] for tags in gold for tag in tags])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)
        return metrics | {"loss": float(tf.reduce_mean(loss))}

    def write_predictions(
        self, predictions: np.ndarray, data: TaggedTexts, folder: Path, name: str
    ) -> None:
        """Writes word, tag if it is told, and predicted tag, in columns parted as in the data.

        So CoNLL's own script reads them with spaces, and that of WNUT-17 with tabs.
        """
        blocks = []
        for sentence, predicted in zip(
            data.sentences, self._predicted(predictions, data), strict=True
        ):
            told = [] if sentence.tags is None else [sentence.tags]
            rows = zip(sentence.words, *told, predicted, strict=True)
            # Those of TFDS are of no file, and may have the spaces that part them here.
            columns = ([field.replace(data.separator, "_") for field in row] for row in rows)
            blocks.append("".join(f"{data.separator.join(row)}\n" for row in columns))
        write_text(folder / f"{name}.conll", "\n".join(blocks))

    def _read(self, path: Path) -> TaggedTexts:
        settings = self.data
        if settings.format == "tfds" and not path.is_file():
            sentences = read_tfds_tags(str(path.parent), path.name, settings.lenient_tags)
            parted_by = " "
        else:
            parted_by = separator(path)
            sentences = read_conll(
                path,
                settings.word_column,
                settings.tag_column,
                settings.lenient_tags,
                self.needs_labels(path),
            )
        if settings.document_context and not sentences[-1].document:
            raise UserError(
                f"{path} has no -DOCSTART- lines that part documents; mark them, or set "
                "data.document_context: false"
            )
        return TaggedTexts(sentences, settings.document_context, parted_by)

    def _predicted(self, logits: np.ndarray, data: TaggedTexts) -> list[list[str]]:
        """The best tags of each sentence."""
        best = best_labels(logits).labels.numpy()
        return data.by_sentence([self.labels[label] for label in best])

    def _tag(self, model: keras.Model) -> Any:
        """The function of texts, RaggedTensor string [batch, (words)], to logits; traced once."""
        if self._tagger is None or self._tagger[0] is not model:
            tagger = WordTagger(model, self._preprocess)
            form = tf.RaggedTensorSpec([None, None], tf.string)

            @tf.function(input_signature=[form])
            def tag(words: tf.RaggedTensor) -> tf.Tensor:
                return tagger.logits(tokenize_words(words, self.tokenizer)).values

            self._tagger = model, tag
        return self._tagger[1]
