"""The curves that runs log for TensorBoard: reading and drawing them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.report.plots import new_figure, to_png

Curves = dict[str, tuple[list[int], list[float]]]  # metric -> (steps, values)

# The curves on training batches, and those on held-out data.
_KINDS: dict[str, dict[str, Any]] = {
    "train": {"linewidth": 0.8, "alpha": 0.6},
    "dev": {"linewidth": 2.0, "marker": "."},
}
_NAMES = {"train": "training", "dev": "held out"}


def read_curves(folder: Path) -> Curves:
    """The curves in a folder of TensorBoard's files.

    A run that was killed and resumed has logged some steps twice; the later values count.
    """
    if not folder.is_dir():
        return {}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    curves = {}
    for metric in events.Tags()["tensors"]:
        logged = sorted(events.Tensors(metric), key=lambda event: event.wall_time)
        values = {each.step: float(make_ndarray(each.tensor_proto)) for each in logged}
        steps = sorted(values)
        curves[metric] = (steps, [values[step] for step in steps])
    return curves


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
