"""The tasks of GLUE (Wang et al. 2019): columns, labels, metrics, submissions.

Columns and the order of the labels are those of google-research/bert, `run_classifier.py`. The
names of files and of predictions are those of the benchmark's distribution and server.
"""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task.

    >>> GLUE["mnli"].texts, GLUE["mnli"].classes
    (('sentence1', 'sentence2'), ('contradiction', 'entailment', 'neutral'))

    Attributes:
        texts: columns of the text, or of both texts.
        label: column of the label.
        classes: the labels in the order of the logits; () if the label is a number.
        metrics: GLUE's metrics; of several runs the one with the highest first one is best.
        submissions: name of a test file, or of a split of TFDS, without its ending -> name of its
            predictions for GLUE's server.
        parts: endings of the names of the dev and test files, and of TFDS's splits.
        tfds_texts: names of the texts in TFDS.
    """

    texts: tuple[str, ...]
    label: str
    classes: tuple[str, ...]
    metrics: tuple[str, ...]
    submissions: Mapping[str, str]
    parts: tuple[str, ...] = ("",)
    tfds_texts: tuple[str, ...] = ("sentence1", "sentence2")

    def named(self, split: str) -> dict[str, str]:
        """The names of the parts of a split, by the suffix of their metrics' names.

        >>> GLUE["mnli"].named("dev")
        {'': 'dev_matched', '_mismatched': 'dev_mismatched'}
        """
        return {part.removeprefix("_matched"): split + part for part in self.parts}


_NO_YES = ("0", "1")
_ENTAILED_OR_NOT = ("entailment", "not_entailment")
_ENTAILED_OR_WHAT = ("contradiction", "entailment", "neutral")
_ONE, _TWO = ("sentence",), ("sentence1", "sentence2")

GLUE = {
    "cola": GlueTask(_ONE, "label", _NO_YES, ("mcc",), {"test": "CoLA"}, tfds_texts=_ONE),
    "sst2": GlueTask(_ONE, "label", _NO_YES, ("accuracy",), {"test": "SST-2"}, tfds_texts=_ONE),
    "mrpc": GlueTask(
        ("#1 String", "#2 String"),
        "Quality",
        _NO_YES,
        ("f1", "accuracy"),
        {"test": "MRPC", "msr_paraphrase_test": "MRPC"},
    ),
    "qqp": GlueTask(
        ("question1", "question2"),
        "is_duplicate",
        _NO_YES,
        ("f1", "accuracy"),
        {"test": "QQP"},
        tfds_texts=("question1", "question2"),
    ),
    "stsb": GlueTask(_TWO, "score", (), ("spearman", "pearson"), {"test": "STS-B"}),
    "mnli": GlueTask(
        _TWO,
        "gold_label",
        _ENTAILED_OR_WHAT,
        ("accuracy",),
        {"test_matched": "MNLI-m", "test_mismatched": "MNLI-mm", "diagnostic": "AX", "AX": "AX"},
        parts=("_matched", "_mismatched"),
        tfds_texts=("premise", "hypothesis"),
    ),
    "qnli": GlueTask(
        ("question", "sentence"),
        "label",
        _ENTAILED_OR_NOT,
        ("accuracy",),
        {"test": "QNLI"},
        tfds_texts=("question", "sentence"),
    ),
    "rte": GlueTask(_TWO, "label", _ENTAILED_OR_NOT, ("accuracy",), {"test": "RTE"}),
    "wnli": GlueTask(_TWO, "label", _NO_YES, ("accuracy",), {"test": "WNLI"}),
    "ax": GlueTask(
        _TWO,
        "gold_label",
        _ENTAILED_OR_WHAT,
        ("mcc", "accuracy"),
        {"test": "AX", "AX": "AX", "diagnostic": "AX", "diagnostic-full": "AX"},
        tfds_texts=("premise", "hypothesis"),
    ),
}
