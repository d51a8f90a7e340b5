"""The curves that runs log for TensorBoard."""

from pathlib import Path

Curves = dict[str, tuple[list[int], list[float]]]  # metric -> (steps, values)


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
