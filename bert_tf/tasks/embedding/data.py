"""Rows of texts that an embedder learns from: groups of texts, with or without a target."""

import dataclasses

import numpy as np

from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.tasks.embedding.losses import Form


@dataclasses.dataclass(frozen=True)
class TextGroups:
    """Rows of one text or more.

    >>> rows = TextGroups((["a cat", "a dog"], ["the cat", "the dog"]))
    >>> texts, numbers = rows.numbered()
    >>> texts, numbers.tolist()
    (['a cat', 'the cat', 'a dog', 'the dog'], [[0, 1], [2, 3]])

    Attributes:
        columns: the texts of each row: one, or an anchor and its positive, or these two and hard
            negatives.
        form: what is known of the rows; see `EmbeddingLoss`.
        targets: float32 [rows] scores, int32 [rows] classes, or float32 [rows, width] vectors;
            None of the form "texts".
        source: their origin, for messages.
    """

    columns: tuple[list[str], ...]
    form: Form = "texts"
    targets: np.ndarray | None = None
    source: str = "the data"

    def __post_init__(self) -> None:
        if not self.columns[0]:
            raise UserError(f"{self.source} has no rows")

    def __len__(self) -> int:
        return len(self.columns[0])

    def first(self, rows: int | None) -> "TextGroups":
        """The first `rows` rows; None is all of them."""
        return dataclasses.replace(
            self,
            columns=tuple(column[:rows] for column in self.columns),
            targets=None if self.targets is None else self.targets[:rows],
        )

    def numbered(self) -> tuple[list[str], np.ndarray]:
        """The groups to train on, by numbers of texts.

        A single text without a target forms a group with itself, and a labelled text with the next
        text of its class, after the last one the first; a text that is alone in its class forms a
        group with itself.

        Returns:
            All different texts in the order in which they occur, and int32 [rows, texts]: their
            numbers.

        Raises:
            UserError: all texts have one label, or no two different texts have the same.
        """
        number: dict[str, int] = {}
        numbers = np.array(
            [
                [number.setdefault(text, len(number)) for text in row]
                for row in zip(*self.columns, strict=True)
            ],
            np.int32,
        )
        if self.form == "labels":
            numbers = self._with_partners(numbers[:, 0])
        elif self.form == "texts" and len(self.columns) == 1:
            numbers = np.repeat(numbers, 2, axis=1)
        return list(number), numbers

    def _with_partners(self, texts: np.ndarray) -> np.ndarray:
        """int32 [rows, 2]: each text with the next one of its class."""
        assert self.targets is not None
        if len(set(self.targets.tolist())) == 1:
            raise UserError(
                f"all texts of {self.source} have the same label; give texts with at least two "
                "labels"
            )
        partners = np.empty_like(texts)
        for label in np.unique(self.targets):
            rows = np.flatnonzero(self.targets == label)
            different = list(dict.fromkeys(texts[rows].tolist()))
            following = dict(zip(different, different[1:] + different[:1], strict=True))
            partners[rows] = [following[text] for text in texts[rows].tolist()]
        if (partners == texts).all():
            raise UserError(
                f"each label of {self.source} has only one text; give at least two texts per "
                "label (pairs are two columns of x, not x and y)"
            )
        return np.stack([texts, partners], axis=1)

    def collection(self) -> Collection:
        """The rows as a search for what belongs together.

        Of pairs, each anchor is a query, and its positives are the relevant ones of all texts that
        are not anchors. Of labelled texts, each is a query for the other texts of its class.
        A text has the same id as a query and as a passage.
        """
        number: dict[str, str] = {}
        for column in self.columns:
            for text in column:
                number.setdefault(text, str(len(number)))
        texts = {name: text for text, name in number.items()}
        relevant: dict[str, dict[str, int]] = {}
        if self.form == "labels":
            assert self.targets is not None
            of_class: dict[int, dict[str, int]] = {}
            for text, label in zip(self.columns[0], self.targets.tolist(), strict=True):
                of_class.setdefault(label, {})[number[text]] = 1
            for text, label in zip(self.columns[0], self.targets.tolist(), strict=True):
                others = {name: 1 for name in of_class[label] if name != number[text]}
                if others:
                    relevant.setdefault(number[text], {}).update(others)
            passages = texts
        else:
            for anchor, positive in zip(self.columns[0], self.columns[1], strict=True):
                relevant.setdefault(number[anchor], {})[number[positive]] = 1
            names = {number[text] for column in self.columns[1:] for text in column}
            passages = {name: text for name, text in texts.items() if name in names}
        if not relevant:
            raise UserError(
                f"no two texts of {self.source} have the same label, so retrieval cannot be "
                "measured; give more texts"
            )
        return Collection(passages, {name: texts[name] for name in relevant}, relevant)
