"""Pictures of a report: curves of training, and scores by size or step."""

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.report.curves import Curves
from bert_tf.report.plots import new_figure, to_png

# The name of a line, and its points (x, y) by ascending x.
Line = tuple[str, list[tuple[float, float]]]

# The curves on training batches, and those on held-out data.
_KINDS: dict[str, dict[str, Any]] = {
    "train": {"linewidth": 0.8, "alpha": 0.6},
    "dev": {"linewidth": 2.0, "marker": "."},
}
_NAMES = {"train": "training", "dev": "held out"}


def draw_curves(runs: Sequence[tuple[str, Mapping[str, Curves]]], metrics: Sequence[str]) -> bytes:
    """A PNG with a panel for each metric and a colour for each run, by "train" and "dev"."""
    figure, panels = new_figure(1, len(metrics), figsize=(4.5 * len(metrics), 3.6), squeeze=False)
    for panel, metric in zip(panels[0], metrics, strict=True):
        for number, (name, curves) in enumerate(runs):
            for kind, style in _KINDS.items():
                if metric in curves[kind]:
                    # The name is last, since a legend leaves out labels that begin with "_".
                    label = f"{_NAMES[kind]}: {name}"
                    panel.plot(*curves[kind][metric], color=f"C{number}", label=label, **style)
        panel.set_title(metric.replace("_", " "))
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    handles, labels = panels[0][0].get_legend_handles_labels()
    if handles:
        # Outside the panels, where the legend hides no curve.
        figure.legend(handles, labels, loc="outside right upper", fontsize="small")
    return to_png(figure)


def draw_lines(lines: Sequence[Line], axis: str, logarithmic: bool = False) -> bytes:
    """A PNG of all lines; `axis` is the label of x, and y is in percent."""
    figure, panel = new_figure(figsize=(7, 4))
    for name, points in lines:
        panel.plot(*zip(*points, strict=True), marker="o", label=name)
    if logarithmic:
        panel.set_xscale("log")
        # The default labels of such an axis are formulas, which `new_figure` switches off.
        panel.xaxis.set_major_formatter("{x:.3g}")
        panel.set_xticks(sorted({x for _, points in lines for x, _ in points}))
        panel.minorticks_off()
    panel.set_xlabel(axis)
    panel.set_ylabel("percent")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
    return to_png(figure)
