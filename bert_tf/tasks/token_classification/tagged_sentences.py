"""Sentences with a tag on every word, or on none, wherever they were read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bert_tf.errors import UserError
from bert_tf.tasks.texts.tfds_rows import load_split
from bert_tf.tasks.token_classification.tag_schemes import find_violation, parse, tag_of, to_iob2

# The names that data sets of TFDS give their words, and tags of entities.
_WORDS = ("tokens", "words")
_TAGS = ("ner", "ner_tags", "tags")


class Sentence(NamedTuple):
    """One sentence.

    >>> sentence = Sentence(("Ada", "sat"), ("B-PER", "O"), row=1, line=7)
    >>> sentence.tags, sentence.place(1)
    (('B-PER', 'O'), 'line 8')

    Attributes:
        words: its words.
        tags: their tags, in IOB2; None if they are not known.
        row: its number among all sentences, counted from 1.
        line: the line of the first word in a file of one word a line, else None; the other words
            are on the lines after it.
        document: the number of its document.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    row: int
    line: int | None = None
    document: int = 0

    def place(self, word: int) -> str:
        """The place of word `word`, counted from 0, for a message."""
        if self.line is None:
            return f"row {self.row}, word {word + 1}"
        return f"line {self.line + word}"


def tidied(
    source: str, sentences: Sequence[Sentence], lenient_tags: bool = False
) -> list[Sentence]:
    """Sentences in IOB2.

    >>> sentence = Sentence(("Ada", "sat"), ("S-PER", "O"), row=1)  # in BIOES
    >>> tidied("train.txt", [sentence])[0].tags
    ('B-PER', 'O')

    Args:
        source: the name of their origin in messages.
        sentences: all of them have tags, of any scheme, or none.
        lenient_tags: take tags that break the scheme of the others as conlleval and seqeval do (see
            `Tag.begins`), instead of raising.

    Raises:
        UserError: a tag that breaks the scheme of the others, or no sentence at all.
    """
    if not sentences:
        raise UserError(f"{source} has no sentences")
    tagged = [list(map(tag_of, each.tags)) for each in sentences if each.tags is not None]
    found = None if lenient_tags else find_violation(tagged)
    if found is not None:
        place = sentences[found.sentence].place(found.word)
        raise UserError(
            f"{source}, {place}: {found.why}; correct it, or set data.lenient_tags: true, with "
            "which such a tag begins an entity, as in conlleval"
        )
    if not tagged:
        return list(sentences)
    pairs = zip(sentences, tagged, strict=True)
    return [each._replace(tags=to_iob2(tags)) for each, tags in pairs]


def read_tfds_tags(name: str, split: str, lenient_tags: bool = False) -> list[Sentence]:
    """The sentences of a split of TensorFlow Datasets, such as conll2003; without documents.

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
    if not classes or not all(map(parse, classes)):
        raise UserError(f"{source}: the feature {tags!r} does not contain tags such as O, B-…, I-…")
    kept = (row for row in rows if len(row[words]))
    sentences = [
        Sentence(
            tuple(word.decode("utf-8", "replace") for word in row[words]),
            tuple(classes[tag] for tag in row[tags]),
            number,
        )
        for number, row in enumerate(kept, start=1)
    ]
    return tidied(source, sentences, lenient_tags)


def _feature(features: Any, names: tuple[str, ...], source: str) -> str:
    """The first of `names` that is a feature."""
    for name in names:
        if name in features:
            return name
    raise UserError(
        f"{source}: no feature {' or '.join(names)}; the features are {', '.join(features)}"
    )
