"""Small pictures of a few lines each, as SVG that needs nothing beside itself.

The width is a phone's: several stand side by side on a wide page and below each
other on a narrow one. Paper and ink are part of the picture, so it is readable on
a light page and on a dark one.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from report import Metric

WIDTH, HEIGHT = 380, 270
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 54, 40
# Apart also for who sees no colours: each has its own mark and dashes.
STYLES = (
    ("#0b6bcb", ""),
    ("#c2410c", "7 3"),
    ("#4d7c0f", "2 3"),
    ("#6b7280", "10 3 2 3"),
)
TICKS = 4


@dataclass(frozen=True)
class Line:
    """What one side has at each place of the axis; None where it has nothing."""

    label: str
    points: Sequence[Metric | None]


def number(value: float) -> str:
    """A number short enough for an axis."""
    if value and abs(value) < 0.001:
        return f"{value:.1e}"
    # Three digits of 999.5 are 1e+03.
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def brief(value: float) -> str:
    """The same in thousands and millions."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Round numbers that enclose a range."""
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        whole = [10.0**power for power in range(first, last + 1)]
        steps = whole if len(whole) > 2 else [ten * one for ten in whole for one in (1, 2, 5)]
        below = [step for step in steps if step <= low * 1.001]
        above = [step for step in steps if step >= high / 1.001 and step > below[-1]]
        return [step for step in steps if below[-1] <= step <= above[0]]
    rough = (high - min(low, 0)) / TICKS or 1
    ten = 10 ** math.floor(math.log10(rough))
    step = next(ten * one for one in (1, 2, 2.5, 5, 10) if ten * one >= rough * 0.999)
    return [step * turn for turn in range(math.ceil(high / step - 1e-9) + 1)]


def lines(
    title: str, places: Sequence[str], across: str, drawn: Sequence[Line], log: bool = False
) -> str:
    """A picture: values with their intervals above the named places of an axis, from zero up or,
    with `log`, by powers of ten."""
    ends = [end for line in drawn for at in line.points if at for end in (at.low, at.high)]
    log = log and min(ends) > 0
    scale = ticks(min(ends), max(ends), log)
    bottom, top = (math.log10(end) if log else end for end in (scale[0], scale[-1]))

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / len(places)

    def y(value: float) -> float:
        share = ((math.log10(value) if log else value) - bottom) / (top - bottom)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fff"/>',
        _text(WIDTH / 2, 18, title, "middle", 'font-weight="bold"'),
        _text(WIDTH / 2, HEIGHT - 6, across, "middle"),
    ]
    for value in scale:
        out.append(
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#d5d9de"/>'
            + _text(LEFT - 6, y(value) + 4, brief(value), "end")
        )
    for index, place in enumerate(places):
        out.append(_text(x(index), HEIGHT - BOTTOM + 15, place, "middle"))
    room = (WIDTH - 20) / len(drawn)
    for number_, line in enumerate(drawn):
        colour, dashes = STYLES[number_ % len(STYLES)]
        found = [(x(index), at) for index, at in enumerate(line.points) if at]
        path = " ".join(f"{at:.1f},{y(metric.value):.1f}" for at, metric in found)
        stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'
        out.append(f'<polyline points="{path}" fill="none" {stroke}/>')
        for at, metric in found:
            said = f"{line.label}: {number(metric.value)} {metric.unit}"
            ends_ = f"{number(metric.low)} to {number(metric.high)}"
            out.append(
                f'<path d="M{at:.1f} {y(metric.low):.1f}V{y(metric.high):.1f}" stroke="{colour}"/>'
                f'<circle cx="{at:.1f}" cy="{y(metric.value):.1f}" r="3" fill="{colour}">'
                f"<title>{html.escape(f'{said} ({ends_})')}</title></circle>"
            )
        left = 10 + room * number_
        out.append(f'<path d="M{left:.1f} 36h20" {stroke}/>')
        out.append(_text(left + 25, 40, line.label, "start", f'fill="{colour}"'))
    return "".join(out) + "</svg>\n"


def _text(x: float, y: float, text: str, anchor: str, more: str = 'fill="#1c2024"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(text)}</text>'
