"""Tagged sentences of TensorFlow Datasets, such as conll2003."""

from typing import Any

from bert_tf.errors import UserError
from bert_tf.tasks.texts.tfds_rows import load_split
from bert_tf.tasks.token_classification.tag_schemes import parse
from bert_tf.tasks.token_classification.tagged_sentences import RawSentence, Sentence, tidied

# Under what names data sets have words, and tags of entities.
_WORDS = ("tokens", "words")
_TAGS = ("ner", "ner_tags", "tags")


def read_tfds_tags(name: str, split: str, lenient_tags: bool = False) -> list[Sentence]:
    """The sentences of a split; the data say nothing about documents.

    Args:
        name, split: as for `load_split`.
        lenient_tags: see `tidied`.

    Raises:
        UserError: as `load_split` and `tidied`; no words, or no classes that are tags.
    """
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    words, tags = (_feature(features, names, source) for names in (_WORDS, _TAGS))
    classes = getattr(getattr(features[tags], "feature", None), "names", None) or ()
    parsed = [parse(each) for each in classes]
    if not parsed or None in parsed:
        raise UserError(f"{source}: the feature {tags!r} does not tag words with O, B-…, I-…")
    return tidied(
        source,
        [
            RawSentence(
                [word.decode("utf-8", "replace") for word in row[words]],
                [parsed[tag] for tag in row[tags]],
            )
            for row in rows
            if len(row[words])
        ],
        lenient_tags,
    )


def _feature(features: Any, names: tuple[str, ...], source: str) -> str:
    """The first of `names` that is a feature."""
    for name in names:
        if name in features:
            return name
    raise UserError(f"{source}: no feature {' or '.join(names)}; there are {', '.join(features)}")
