"""What the runs of an ablation have in common, and in what they differ."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from bert_tf.report import origin
from bert_tf.report.ablations.cells import column_of
from bert_tf.report.naming import distinct_names
from bert_tf.report.page import Section
from bert_tf.report.runs import RunFacts, TracedFacts

Facts = TypeVar("Facts", bound=RunFacts)


class Ablation(NamedTuple):
    """A group of runs that differ in one thing.

    Attributes:
        section: their table.
        shown: those that need no other table, since this one has their result.
    """

    section: Section
    shown: Sequence[RunFacts]


def fine_tuned(facts: Iterable[RunFacts]) -> list[TracedFacts]:
    """The runs that went on from a known pre-training, or from none.

    What a frozen encoder's activations give is no result of fine-tuning.
    """
    traced = (each for each in facts if isinstance(each, TracedFacts))
    return [each for each in traced if not features_of(each)]


def groups(runs: Iterable[Facts], key: Callable[[Facts], object]) -> list[list[Facts]]:
    """Runs of the same key together, in the order in which the keys first come."""
    found: dict[object, list[Facts]] = {}
    for each in runs:
        found.setdefault(key(each), []).append(each)
    return list(found.values())


def last_of_each(runs: Iterable[Facts], row: Callable[[Facts], object]) -> list[Facts]:
    """Of several runs of one row and benchmark, which would share a cell, the last."""
    return list({(row(each), column_of(each)): each for each in runs}.values())


def by_pretraining(runs: Sequence[TracedFacts]) -> list[tuple[str, list[TracedFacts]]]:
    """The runs of each pre-training with its objective, and its name where two have the same.

    They are in the order of `OBJECTIVES`, and others behind.
    """
    order = {name: place for place, name in enumerate(origin.OBJECTIVES)}
    objectives = dict.fromkeys(each.origin.objective for each in runs)
    return [
        (objective + name, same)
        for objective in sorted(objectives, key=lambda name: order.get(name, len(order)))
        for name, same in by_folder([e for e in runs if e.origin.objective == objective])
    ]


def by_folder(runs: Sequence[TracedFacts]) -> list[tuple[str, list[TracedFacts]]]:
    """The runs of each pre-training with ": " and its name, or with nothing where it is alone."""
    found = groups(runs, lambda each: each.origin.folder)
    if len(found) == 1:
        return [("", found[0])]
    names = distinct_names([same[0].origin.folder or "" for same in found])
    return [(f": {name}", same) for name, same in zip(names, found, strict=True)]


def pretraining_of(facts: TracedFacts) -> tuple[str, Path | None]:
    """The pre-training that a run started from: its objective and its folder."""
    return facts.origin.objective, facts.origin.folder


def size_of(facts: RunFacts) -> tuple[int, int, int]:
    """Layers, width and heads."""
    sizes = facts.encoder
    return sizes.num_hidden_layers, sizes.hidden_size, sizes.num_attention_heads


def features_of(facts: RunFacts) -> str | None:
    """The activations that a tagger reads of a frozen encoder; None where all is trained."""
    return getattr(facts.config.model, "features", None)
