"""The frame of a chart: the scale that places numbers on the paper, and the axes."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.inspecting.markup import Html, tag

# Room, in pixels, for the numbers and names of the axes.
_LEFT, _TOP, _RIGHT, _BELOW = 58, 12, 16, 48
_ABOUT_TICKS = 5


class Frame(NamedTuple):
    """A rectangle for points of two numbers.

    Attributes:
        low, high: float [2], the numbers at its corners.
        width, height: pixels inside.
    """

    low: np.ndarray
    high: np.ndarray
    width: int
    height: int

    @classmethod
    def around(cls, places: np.ndarray, width: int, height: int, square: bool = False) -> "Frame":
        """A frame for float [points, 2]; a `square` one has the same numbers on both axes."""
        low, high = places.min(axis=0), places.max(axis=0)
        if square:
            low, high = np.full(2, low.min()), np.full(2, high.max())
        room = 0.05 * np.where(high > low, high - low, 1.0)
        return cls(low - room, high + room, width, height)

    def on_paper(self, place: Sequence[float] | np.ndarray) -> tuple[float, float]:
        """Pixels from the left and from the top."""
        x, y = (np.asarray(place) - self.low) / (self.high - self.low)
        return round(_LEFT + x * self.width, 1), round(_TOP + (1 - y) * self.height, 1)

    def drawn(self, axes: tuple[str, str], inside: Sequence[str], label: str) -> Html:
        """The chart as a picture.

        Args:
            axes: what lies along the horizontal and the vertical axis.
            inside: what is drawn.
            label: what it shows, for those who do not see it.
        """
        width, height = _LEFT + self.width + _RIGHT, _TOP + self.height + _BELOW
        return tag(
            "svg",
            *self._axes(axes),
            *inside,
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_label=label,
        )

    def _axes(self, names: tuple[str, str]) -> Iterator[Html]:
        (left, base), (right, top) = self.on_paper(self.low), self.on_paper(self.high)
        for value in _ticks(self.low[0], self.high[0]):
            x, _ = self.on_paper((value, self.low[1]))
            yield line(x, base, x, top, stroke="#eee")
            yield tag("text", _written(value), x=x, y=base + 16, text_anchor="middle")
        for value in _ticks(self.low[1], self.high[1]):
            _, y = self.on_paper((self.low[0], value))
            yield line(left, y, right, y, stroke="#eee")
            yield tag("text", _written(value), x=left - 6, y=y + 4, text_anchor="end")
        yield line(left, base, right, base, stroke="#666")
        yield line(left, base, left, top, stroke="#666")
        middle = (base + top) / 2
        yield tag("text", names[0], x=(left + right) / 2, y=base + 38, text_anchor="middle")
        turned = f"rotate(-90 14 {middle})"
        yield tag("text", names[1], x=14, y=middle, text_anchor="middle", transform=turned)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Html:
    """A straight line, in pixels."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`."""
    rough = (high - low) / _ABOUT_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(each for each in (1, 2, 5, 10) if each * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _written(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")
