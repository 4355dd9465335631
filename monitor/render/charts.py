"""Charts as inline SVG; colors come from the style sheet, which has a light and a dark scheme."""

from collections.abc import Iterator
from math import isfinite, log10
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.view.values import PairChart, TieBands

_WIDTH: Final = 200
_HEIGHT: Final = 16
_THREADS: Final = 3  # models that lack items of which the ties are drawn

_DECADES: Final = 2  # N*/N from 1/100 to 100


def interval_bar(low: float | None, high: float | None, middle: float | None, reach: float, kind: str) -> str:
    """Draw an interval of a gap around 0, on a symmetric scale."""
    if low is None or high is None or middle is None:
        return ""

    def x(value: float) -> float:
        return round(_WIDTH / 2 * (1 + max(-1.0, min(1.0, value / reach))), 1)

    left, right, y = x(low), x(high), _HEIGHT / 2
    return (
        f'<svg class="bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<line class="zero" x1="{_WIDTH / 2:g}" x2="{_WIDTH / 2:g}" y1="0" y2="{_HEIGHT}"/>'
        f'<rect class="f-{kind}" x="{left}" y="{y - 2.5:g}" width="{max(right - left, 1):.1f}" height="5" rx="2.5" opacity=".45"/>'
        f'<circle class="f-{kind}" cx="{x(middle)}" cy="{y:g}" r="3.6"/></svg>'
    )


def tie_lanes(ties: TieBands, k: int) -> str:
    """Draw the part of each tie band that passes a row: a lane each from the left, dots for members, models that lack items first."""
    parts = []

    def lane(place: int, kind: str, members: tuple[int, ...], own: int | None) -> None:
        x, first, last = 8 + 12 * place, members[0], members[-1]
        if not first <= k <= last:
            return
        for inside, other, y1, y2 in ((k > first, k - 1, "0", "50%"), (k < last, k + 1, "50%", "100%")):
            if inside:
                passes = "" if k in members and other in members else " passes"
                parts.append(f'<line class="{kind}{passes}" x1="{x}" x2="{x}" y1="{y1}" y2="{y2}"/>')
        if k in members:
            shape = "own" if k == own else "dot"
            parts.append(
                f'<circle class="alone" cx="{x}" cy="50%" r="3"/>'
                if len(members) == 1
                else f'<circle class="{kind} {shape}" cx="{x}" cy="50%" r="{2.8 if shape == "dot" else 3.6}"/>'
            )

    threads = [(own, tuple(sorted((own, *tied)))) for own, tied in ties.lacking.items()]
    drawn = threads if len(threads) <= _THREADS else []
    for place, (own, members) in enumerate(drawn):
        lane(place, "thread", members, own)
    for band in ties.bands or ():
        lane(len(drawn) + band.lane, "band", band.members, None)
    width = 16 + 12 * max(len(drawn) + ties.lanes - 1, 0)
    # A cell has no height that its content could take: an empty picture gives it its width, and the bands cover it.
    return f'<svg width="{width + 8}" height="1" aria-hidden="true"></svg><svg width="{width}" aria-hidden="true">{"".join(parts)}</svg>'


def mean_bar(low: float | None, high: float | None, mean: float | None, *, least: float, most: float) -> str:
    """Draw a mean with its interval on the common scale of a ranking."""
    if low is None or high is None or mean is None:
        return ""
    span = max(most - least, 1e-9)

    def x(value: float) -> float:
        return round(4 + (_WIDTH - 8) * (value - least) / span, 1)

    y = _HEIGHT / 2
    return (
        f'<svg class="bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{y:g}" y2="{y:g}"/>'
        f'<rect class="f-yes" x="{x(low)}" y="{y - 2.5:g}" width="{max(x(high) - x(low), 1):.1f}" height="5" rx="2.5" opacity=".45"/>'
        f'<circle class="f-yes" cx="{x(mean)}" cy="{y:g}" r="2.2"/></svg>'
    )


def needed_bar(ratio: float | None, anytime: float | None) -> str:
    """Draw r = N*/N on a logarithmic scale with a line at 1: a bar at fixed n, a tick for the anytime boundary."""

    def x(value: float) -> float:
        place = log10(min(max(value, 10.0**-_DECADES), 10.0**_DECADES)) if value > 0 else -_DECADES
        return round(_WIDTH * (place + _DECADES) / (2 * _DECADES), 1)

    r = ratio if ratio is not None else float("inf")
    kind = "yes" if r <= 1 else "no"
    tick = ""
    if anytime is not None and isfinite(anytime):
        tick = f'<line class="s-ink" x1="{x(anytime)}" x2="{x(anytime)}" y1="1" y2="{_HEIGHT - 1}" stroke-width="2"/>'
    return (
        f'<svg class="bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<rect class="f-{kind}" x="0" y="4" width="{x(r)}" height="{_HEIGHT - 8}" rx="2"/>{tick}'
        f'<line class="zero" x1="{_WIDTH / 2:g}" x2="{_WIDTH / 2:g}" y1="0" y2="{_HEIGHT}"/></svg>'
    )


def path_chart(chart: PairChart, log_pair: float, kind: str, title: str) -> str:
    """Draw ln e of a pair along its items, against both thresholds."""
    width, height, left, bottom = 340, 150, 34, 18
    n, log_e = chart.curve.n, chart.curve.log_e
    limits = [limit for limit in (log_pair, chart.log_threshold) if isfinite(limit)]
    top = max(*limits, float(log_e.max())) * 1.08
    floor = min(-1.0, float(log_e.min())) * 1.08
    last = max(int(n[-1]), 1)

    def y(value: float) -> float:
        return round((height - bottom) * (top - value) / (top - floor), 1)

    xs = (left + (width - left) * n / last).round(1).tolist()
    points = " ".join(f"{x:g},{y(value):g}" for x, value in zip(xs, log_e.tolist(), strict=True))
    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img"><title>{title}</title>',
        f'<line class="axis" x1="{left}" x2="{width}" y1="{y(0)}" y2="{y(0)}"/>',
        f'<text x="{left - 5}" y="{y(0) + 4}" text-anchor="end">0</text>',
    ]
    names = {log_pair: "pair", chart.log_threshold: "family"} if isfinite(chart.log_threshold) else {log_pair: "pair"}
    placed: list[float] = []
    for limit, name in sorted(names.items(), reverse=True):
        at = y(limit)
        parts.append(f'<line class="zero" x1="{left}" x2="{width}" y1="{at}" y2="{at}"/>')
        # On a long scale the two thresholds nearly meet: a label that would cover another is omitted.
        if all(abs(at - other) >= 11 for other in [*placed, y(0)]):
            parts.append(f'<text x="{left - 5}" y="{at + 4}" text-anchor="end">{limit:.1f}</text>')
            parts.append(f'<text x="{left + 4}" y="{at - 3}">{name}</text>')
            placed.append(at)
    if y(top / 1.08) < min([*placed, y(0)]) - 11:
        parts.append(f'<text x="{left - 5}" y="{y(top / 1.08) + 4}" text-anchor="end">{top / 1.08:.0f}</text>')
    parts.append(f'<polyline class="line s-{kind}" points="{points}"/>')
    parts.append(f'<text x="{left}" y="{height - 3}">0</text>')
    parts.append(f'<text x="{width}" y="{height - 3}" text-anchor="end">{last:,} shared items</text></svg>')
    return "".join(parts)


def matrix_chart(matrix: NDArray[np.int8], title: str) -> str:
    """Draw which model of each pair is better, one cell a pair; equal cells in a row are one rectangle, so that 200 models stay small."""
    size = matrix.shape[0]
    shapes: dict[str, list[str]] = {"yes": [], "below": [], "turned": []}
    for row in range(size):
        line = matrix[row]
        edges = np.flatnonzero(np.diff(line)) + 1
        starts = [0, *edges.tolist()]
        for start, end in zip(starts, [*starts[1:], size], strict=True):
            for kind, low, high in _kinds(int(line[start]), row, start, end):
                shapes[kind].append(f"M{low} {row}h{high - low}v1h{low - high}z")
    step = next(s for s in (1, 5, 10, 25, 50, 100) if size / s <= 30 or s == 100)
    ticks = [k for k in range(size) if k == 0 or (k + 1) % step == 0]
    scale = 0.025 * (size + 2)
    labels = "".join(
        f'<text transform="translate({x:g} {y:g}) scale({scale / 14:.4f})" text-anchor="{anchor}">{k + 1}</text>'
        for k in ticks
        for x, y, anchor in ((k + 0.5, -0.3 * scale, "middle"), (-0.3 * scale, k + 0.5 + 0.3 * scale, "end"))
    )
    grid = "".join(f"M0 {k}H{size}M{k} 0V{size}" for k in range(1, size)) if size <= 60 else ""
    lines = f'<path d="{grid}" stroke="var(--ground)" stroke-width=".06" fill="none"/>' if grid else ""
    cells = "".join(f'<path class="f-{kind}" d="{"".join(parts)}"/>' for kind, parts in shapes.items() if parts)
    margin = 1.6 * scale
    return (
        f'<svg viewBox="{-margin:g} {-margin:g} {size + margin:g} {size + margin:g}" role="img"><title>{title}</title>'
        f'<rect class="f-ground" width="{size}" height="{size}"/>'
        f"{cells}{lines}{labels}</svg>"
    )


def _kinds(side: int, row: int, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Split equal cells of a row at the diagonal: a verdict against the ranking is drawn as one."""
    left, right = (start, min(end, row)), (max(start, row), end)
    for kind, (low, high) in (("below" if side < 0 else "turned", left), ("yes" if side > 0 else "turned", right)):
        if side and low < high:
            yield kind, low, high
