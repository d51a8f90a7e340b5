"""Parts of the page that several tasks have: projection, confusions, calibration."""

from collections.abc import Sequence

import numpy as np

from bert_tf.interpret import charts
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.interpret.projection import plane_of
from bert_tf.tasks.uncertainty import BINS, reliability
from bert_tf.templates import figures

MEAN_NOTE = "Each point is a text: the mean of the last layer over its tokens."
_LONGEST = 120  # characters that are shown of a text


def draw(rows: int, most: int) -> np.ndarray:
    """int64 [at most `most`], ascending: rows drawn at random, the same ones every time."""
    random = np.random.default_rng(0)
    return np.sort(random.choice(rows, min(rows, most), replace=False))


def shortened(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def by_label(
    vectors: np.ndarray,
    texts: Sequence[str],
    labels: Sequence[int],
    names: Sequence[str],
    marks: Sequence[Mark],
    note: str,
) -> list[PageSection]:
    """The projection of float32 [points, hidden]; the colour is the label, a place in `names`."""
    palette = charts.colours_of(len(names))
    titles = [f"{names[label]}: {text}" for label, text in zip(labels, texts, strict=True)]
    legend = [(names[i], palette[i]) for i in sorted(set(labels))]
    return projection(vectors, titles, [palette[i] for i in labels], legend, marks, note)


def by_number(
    vectors: np.ndarray,
    texts: Sequence[str],
    given: np.ndarray,
    predicted: np.ndarray,
    marks: Sequence[Mark],
    note: str,
    found: str,
) -> list[PageSection]:
    """The projection of float32 [points, hidden], and predicted against given float [points]."""
    titles = [f"{number:.3g}: {text}" for number, text in zip(given, texts, strict=True)]
    low, high = float(given.min()), float(given.max())
    colours = [charts.between(float(x - low) / max(high - low, 1e-9)) for x in given]
    legend = [(f"{low:.3g}", charts.between(0)), (f"{high:.3g}", charts.between(1))]
    both = charts.scatter(
        np.stack([given, predicted], axis=1),
        [shortened(each) for each in titles],
        colours,
        ("given", "predicted"),
        diagonal=True,
    )
    return [
        *projection(vectors, titles, colours, legend, marks, note),
        PageSection("Predicted against given", both, found),
    ]


def of_marks(marks: Sequence[Mark], note: str = MEAN_NOTE) -> list[PageSection]:
    """The texts that were looked at in one plane, where a model has no dev data."""
    if not marks:
        return []
    names = [mark.name for mark in marks]
    colours = charts.colours_of(len(marks))
    vectors = np.stack([mark.vector for mark in marks])
    return projection(vectors, names, colours, [*zip(names, colours, strict=True)], (), note)


def projection(
    vectors: np.ndarray,
    titles: Sequence[str],
    colours: Sequence[str],
    legend: Sequence[tuple[str, str]],
    marks: Sequence[Mark],
    note: str,
) -> list[PageSection]:
    """The points in the plane of their two principal components; nothing if they are too few."""
    if len(vectors) < 3:  # fewer say nothing about directions
        return []
    plane = plane_of(vectors)
    shares = np.nan_to_num(plane.explained_variance_ratio_)
    first, second = (f"component ({share:.1%} of the variance)" for share in shares)
    axes = (f"first {first}", f"second {second}")
    placed = [(mark.name, plane.transform(mark.vector[None])[0]) for mark in marks]
    shown = [shortened(each) for each in titles]
    picture = charts.scatter(plane.transform(vectors), shown, colours, axes, placed, legend)
    rings = " Rings mark the texts above." if marks else ""
    return [PageSection("Embeddings", picture, f"{note}{rings}")]


def classes(
    names: Sequence[str], probabilities: np.ndarray, given: np.ndarray, what: str
) -> list[PageSection]:
    """Confusions and calibration of float32 [predictions, classes]; given are int [predictions]."""
    predicted = probabilities.argmax(axis=1)
    right = predicted == given
    note = f"{right.mean():.1%} of {len(given)} {what} are right."
    sure = probabilities.max(axis=1)
    return [
        confusions(names, given, predicted, note),
        calibration(sure, right, what),
        coverage(sure, right, what),
    ]


def confusions(
    names: Sequence[str], given: np.ndarray, predicted: np.ndarray, note: str
) -> PageSection:
    """The table of int [predictions] by int [predictions]."""
    picture = charts.confusion_table(*confusion_counts(names, given, predicted))
    return PageSection("Confusions", picture, f"{note} The shade shows the share of the row.")


def calibration(confidence: np.ndarray, right: np.ndarray, what: str) -> PageSection:
    """The reliability diagram of float32 [predictions] and bool [predictions]."""
    *bins, error = reliability(confidence, right)
    note = (
        f"Expected calibration error {figures(error)}, from {len(right)} {what} in "
        f"{BINS} bins (Guo et al. 2017). Blue bars show the accuracy of each bin. "
        "Dots show accuracy against mean predicted probability; a perfectly calibrated model "
        "lies on the dashed line. Grey bars show the number of predictions, relative to the "
        "fullest bin."
    )
    return PageSection("Calibration", charts.reliability(*bins), note)


def coverage(confidence: np.ndarray, right: np.ndarray, what: str) -> PageSection:
    """The share answered against the accuracy, of float32 [predictions] and bool [predictions]."""
    order = np.argsort(-confidence, kind="stable")
    sure, counts = confidence[order], np.arange(1, len(right) + 1)
    points = np.stack([counts / len(right), np.cumsum(right[order]) / counts], axis=1)
    ends = np.flatnonzero(np.diff(sure, append=-1))  # equally sure ones are answered together
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, 50).astype(int))]
    titles = [
        f"abstain={sure[end]:.3f}: {points[end, 0]:.0%} answered, {points[end, 1]:.1%} right"
        for end in ends
    ]
    axes = "share answered", "accuracy"
    picture = charts.scatter(points[ends], titles, charts.colours_of(1) * len(ends), axes)
    note = f"Each point is a value of abstain: which {what} are answered, and how many are right."
    return PageSection("Coverage", picture, note)


def confusion_counts(
    names: Sequence[str], given: np.ndarray, predicted: np.ndarray, most: int = 24
) -> tuple[tuple[str, ...], np.ndarray]:
    """Classes, the rarest as one if there are many, and int64 [classes given, predicted]."""
    from sklearn.metrics import confusion_matrix

    classes = len(names)
    counts = confusion_matrix(given, predicted, labels=range(classes))
    if classes <= most:
        return tuple(names), counts
    frequent = np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")
    kept = np.sort(frequent[: most - 1])
    place = np.full(classes, most - 1)
    place[kept] = np.arange(most - 1)
    merged = np.zeros((most, most), np.int64)
    np.add.at(merged, (place[:, None], place[None, :]), counts)
    return (*(names[i] for i in kept), "(all others)"), merged
