"""TensorFlow Datasets (TFDS) to documents, in the order in which a data set is stored.

Each example is one document of running text: the feature `text`, or the only feature that is text.
`data.path` is the data set's name, such as `wikipedia/20230601.en`, a folder that TFDS has
prepared, or a list of these. `data.split` is written as in TFDS, such as `train[:10%]`. Data sets
that are not on this machine yet are downloaded to TFDS's own folder.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from bert_tf.data.corpora.sentences import split_sentences
from bert_tf.data.tfds import one_line, read_rows, tfds, tfds_builder
from bert_tf.errors import UserError


class TfdsCorpus:
    """The documents of data sets; like `Corpus`, it can be iterated any number of times.

    Args:
        path: `data.path`.
        split: `data.split`.

    Attributes:
        parts: stretches of the splits, one for each of their files: the name of the data set, and
            the stretch as TFDS describes it.
        size: documents of all of them.
        position, unit, unit_size: as in `Corpus`.

    Raises:
        UserError: TFDS is not installed; a data set or a split that does not exist, cannot be
            downloaded, is empty or holds no text. While iterating: files that are damaged.
    """

    unit, unit_size = "documents", 1

    def __init__(self, path: str | os.PathLike | Sequence[str | os.PathLike], split: str):
        names = [path] if isinstance(path, str | os.PathLike) else path
        self.parts: list[tuple[str, Any]] = []
        self.size = self.position = 0
        for name in map(str, names):
            builder = tfds_builder(name)
            _text_feature(name, builder)
            try:
                chosen = builder.info.splits[split]
            except (KeyError, ValueError) as error:
                raise UserError(f"{name} has no data.split {split!r} ({one_line(error)})") from None
            if not chosen.num_examples:
                raise UserError(f"data.split {split!r} of {name} is empty; choose a larger part")
            pieces = tfds().even_splits(split, len(chosen.file_instructions))
            self.parts += [(name, piece) for piece in pieces]
            self.size += chosen.num_examples

    def __iter__(self) -> Iterator[list[str]]:
        self.position, has_text = 0, False
        for part in self.parts:
            for document in self._documents(part):
                self.position += 1
                if document:
                    has_text = True
                    yield document
        if not has_text:
            raise UserError(f"{self.parts[0][0]} contains no text; check data.path and data.split")

    def read(self, part: tuple[str, Any]) -> Iterator[list[str]]:
        """The documents of one of the `parts`."""
        return filter(None, self._documents(part))

    def _documents(self, part: tuple[str, Any]) -> Iterator[list[str]]:
        name, stretch = part
        builder = tfds_builder(name)
        feature = _text_feature(name, builder)
        dataset = builder.as_dataset(
            split=stretch,
            shuffle_files=False,
            decoders=tfds().decode.PartialDecoding({feature: True}),
            # One file after the other, for an order that is always the same.
            read_config=tfds().ReadConfig(interleave_cycle_length=1),
        )
        for example in read_rows(dataset.as_numpy_iterator(), f"TFDS {name}"):
            yield split_sentences(example[feature].decode("utf-8", "replace"))


def _text_feature(name: str, builder: Any) -> str:
    features = builder.info.features
    texts = [key for key in features if isinstance(features[key], tfds().features.Text)]
    if "text" in texts:
        return "text"
    if len(texts) == 1:
        return texts[0]
    kind = "several features of text" if texts else "no feature of text"
    raise UserError(
        f"{name} has {kind} and none is named text, among {', '.join(sorted(features))}; choose "
        "another data set"
    )
