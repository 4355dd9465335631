"""The ranking as a table with its ties: what a report and the live screen show first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from monitor.render.signs import DECIDED, HELD, UNDECIDED, decision_glyph, settled_glyph
from monitor.render.terminal.layout import ellipsis_of, glyphs_for, shorten
from monitor.view.ranking.tie_bands import TieBands
from monitor.words import battles
from monitor.words import numbers as form
from schemas.results.report import BenchmarkReport, ModelReport, PairReport

_NAME_ROOM: Final = 16

_NARROW: Final = 100
"""Columns below which the table has less space between its columns."""

_WIDE: Final = 120
"""Columns from which scores are drawn, with their intervals."""


@dataclass(frozen=True)
class _Marks:
    """The signs that draw ties and ranges, one cell each."""

    begin: str
    within: str
    end: str
    alone: str
    passed: str
    lacking: str
    with_lacking: str
    rule: str
    range: str
    place: str
    minus: str
    dash: str
    full: str
    empty: str


_UNICODE: Final = _Marks("╻", "┃", "╹", "○", "┊", "▸", "◦", "─", "─", "●", "−", "–", "█", "·")
_ASCII: Final = _Marks(",", "|", "'", "o", ":", ">", ".", "-", "-", "o", "-", "-", "#", ".")


class Ranking:
    """The models of a benchmark by rank, each with the step to the next."""

    def __init__(
        self, benchmark: BenchmarkReport, console: Console, ties: TieBands | None, limit: int, low_coverage: float
    ) -> None:
        self.benchmark, self.ties, self.low_coverage = benchmark, ties, low_coverage
        self.models = benchmark.models[:limit]
        self.width, self.glyphs = console.width, glyphs_for(console)
        self.ascii = console.options.ascii_only
        self.marks = _ASCII if self.ascii else _UNICODE
        names = {model.model for model in benchmark.models}
        current = [p for p in benchmark.pairs if p.adjacent and p.status != "superseded"]
        self.steps = {p.model_a: p for p in current if {p.model_a, p.model_b} <= names}

    @property
    def rules(self) -> tuple[int, ...]:
        """Positions after which no tie crosses, within the models shown."""
        return () if self.ties is None else tuple(k for k in self.ties.rules if k < len(self.models) - 1)

    def table(self, rules: Sequence[int]) -> list[Text]:
        """Build the ranking, a rule after each of these positions."""
        columns = self._columns()
        widths = {
            key: max([cell_len(title), *(cell.cell_len for cell in cells)])
            for key, (title, cells, _) in columns.items()
        }
        gap = 1 if self.width < _NARROW else 2
        fixed = sum(widths.values()) - widths["model"] + gap * (len(columns) - 1)
        for key in ("plot", "strip", "won", "signs", "more", "range"):
            if key in columns and fixed + min(widths["model"], 28 if key == "plot" else _NAME_ROOM) > self.width:
                fixed -= widths.pop(key) + gap
                del columns[key]
        room = min(widths["model"], max(4, self.width - fixed))
        columns["model"] = ("model", [self._name(model, room) for model in self.models], False)
        widths["model"] = room
        lines = []
        for k in range(-1, len(self.models)):
            line = Text(no_wrap=True, overflow="crop")
            for place, (key, (title, cells, right)) in enumerate(columns.items()):
                cell = Text(title, UNDECIDED) if k < 0 else cells[k]
                space = " " * (widths[key] - cell.cell_len)
                line.append(" " * gap if place else "")
                line.append_text(Text(space).append_text(cell) if right else cell.copy().append(space))
            line.rstrip()
            line.truncate(self.width)
            lines.append(line)
            if k in rules:
                lines.append(
                    Text(self.marks.rule * min(self.width, sum(widths.values()) + gap * (len(columns) - 1)), DECIDED)
                )
        return lines

    def _columns(self) -> dict[str, tuple[str, list[Text], bool]]:
        models = self.models
        columns: dict[str, tuple[str, list[Text], bool]] = {}
        if self.ties is not None and self.ties.bands is not None:
            columns["ties"] = ("ties", [self._lanes(k) for k in range(len(models))], False)
        columns["ranks"] = ("ranks", [Text(form.ranks(m, self.marks.dash), "bold") for m in models], True)
        if len(self.benchmark.models) > 1:
            columns["strip"] = self._strip()
        columns["model"] = ("model", [self._name(m, 10**4) for m in models], False)
        if self.benchmark.battles is None:
            columns["score"] = ("score", [Text(form.percent(m.mean)) for m in models], True)
        else:
            ratings = {each.model: each for each in self.benchmark.battles.ratings}
            columns["score"] = ("rating", [Text(battles.rating(ratings[m.model])) for m in models], True)
            columns["range"] = (
                "interval",
                [Text(battles.rating_range(ratings[m.model]), UNDECIDED) for m in models],
                True,
            )
            columns["won"] = ("won %", [Text(form.percent(m.mean)) for m in models], True)
        plot = self._plot()
        if plot is not None:
            columns["plot"] = plot
        if self.steps:
            steps = [
                self.steps.get(m.model) if m is not models[-1] or len(models) < len(self.benchmark.models) else None
                for m in models
            ]
            columns["step"] = ("to next", [self._gap(pair) for pair in steps], True)
            columns["more"] = ("", [self._more(pair) for pair in steps], True)
            g = self.glyphs
            columns["signs"] = (f"{g.settled} {g.decided} {g.resolved}", [self._signs(pair) for pair in steps], False)
        return columns

    def _lanes(self, k: int) -> Text:
        """Draw the bands at one model: one cell a lane, the first one for models that lack items."""
        assert self.ties is not None
        assert self.ties.bands is not None
        marks, text = self.marks, Text()
        if self.ties.lacking:
            tied = any(k in others for others in self.ties.lacking.values())
            text.append(marks.lacking if k in self.ties.lacking else marks.with_lacking if tied else " ", HELD)
        cells = [(" ", "")] * self.ties.lanes
        for band in self.ties.bands:
            first, last = band.members[0], band.members[-1]
            if first <= k <= last:
                sign = (
                    marks.alone
                    if first == last
                    else marks.passed
                    if k not in band.members
                    else marks.begin
                    if k == first
                    else marks.end
                    if k == last
                    else marks.within
                )
                cells[band.lane] = (sign, DECIDED if first == last else "")
        for cell in cells:
            text.append(*cell)
        return text

    def _strip(self) -> tuple[str, list[Text], bool]:
        """Draw the range of ranks of each model, from rank 1 to the last."""
        total = len(self.benchmark.models)
        room = min(total, 10 if self.width < _NARROW else 20)

        def at(rank: int) -> int:
            return (rank - 1) * (room - 1) // (total - 1)

        cells = []
        for model in self.models:
            low, high, place = at(model.rank_low), at(model.rank_high), at(model.rank)
            cell = Text()
            for k in range(room):
                if k == place:
                    cell.append(self.marks.place, "bold")
                else:
                    cell.append(self.marks.range if low <= k <= high else " ", UNDECIDED)
            cell.rstrip()
            cells.append(cell)
        last = str(total)
        return "1" + " " * max(1, room - 1 - len(last)) + last, cells, False

    def _plot(self) -> tuple[str, list[Text], bool] | None:
        """Draw the scores with their intervals, on wide terminals."""
        known = [m for m in self.models if m.mean is not None and m.mean_low is not None and m.mean_high is not None]
        if self.width < _WIDE or not known:
            return None
        step = 5
        least = int(100 * min(m.mean_low or 0 for m in known)) // step * step
        most = -(-ceil(100 * max(m.mean_high or 0 for m in known)) // step) * step
        room = min(40, 21 + max(0, self.width - 130))

        def at(share: float) -> int:
            return min(room - 1, max(0, round((100 * share - least) / max(most - least, 1) * (room - 1))))

        cells = []
        for m in self.models:
            cell = Text()
            if m.mean is not None:
                low, high, place = at(m.mean_low or m.mean), at(m.mean_high or m.mean), at(m.mean)
                for k in range(high + 1):
                    sign = self.marks.place if k == place else self.marks.range if k >= low else " "
                    cell.append(sign, "" if k == place else UNDECIDED)
            cells.append(cell)
        right = f"{most} %"
        return f"{least}".ljust(room - len(right)) + right, cells, False

    def _name(self, model: ModelReport, room: int) -> Text:
        mark = f" {model.coverage:.0%}" if model.coverage < self.low_coverage else ""
        return Text(shorten(model.shown, room - len(mark), ellipsis_of(ascii_only=self.ascii))).append(mark, HELD)

    def _gap(self, pair: PairReport | None) -> Text:
        if pair is None or pair.gap is None:
            return Text()
        return Text(form.points(pair.gap).replace("-", self.marks.minus), HELD if pair.gap < 0 else _colour(pair))

    def _more(self, pair: PairReport | None) -> Text:
        """Return the verdict on a step, or how many more items it needs at the present estimate."""
        if pair is None:
            return Text()
        if pair.status == "decided":
            return Text("decided", DECIDED) if pair.decided.anytime_family == "a" else Text("decided against", HELD)
        if pair.status in {"held", "invalidated", "equivalent"}:
            return Text(pair.status, UNDECIDED if pair.status == "equivalent" else HELD)
        more = pair.items_to_decision
        if more is None or pair.n == 0 or more < 1:
            return Text("undecided", UNDECIDED)
        return Text(form.more(more), UNDECIDED)

    def _signs(self, pair: PairReport | None) -> Text:
        if pair is None:
            return Text()
        g = self.glyphs
        resolved = pair.resolved.fixed_n
        third = (
            (g.missing, UNDECIDED)
            if resolved is None
            else (g.resolved, DECIDED)
            if resolved
            else (g.unresolved, UNDECIDED)
        )
        second = decision_glyph(pair, "anytime_family", g)
        if pair.status == "held" and pair.decided.anytime_family is None:
            second = g.held, HELD
        text = Text()
        for sign in (settled_glyph(pair, g), second, third):
            text.append(*sign).append(" ")
        text.rstrip()
        return text

    def key(self, *, with_rules: bool = True) -> list[Text]:
        """Explain the ties, and which models are shown."""
        lines = []
        ties, models = self.ties, self.benchmark.models
        if ties is not None and ties.bands is None:
            lines.append(Text("Too many ties overlap to be drawn; the ranges of ranks include them.", UNDECIDED))
        elif ties is not None and len(models) > 1:
            text = "; ".join(self._signs_of_ties(ties, with_rules=with_rules))
            lines += [Text(f"{text}.", UNDECIDED)] if text else []
            lines += self._lacking(ties)
        if len(self.models) < len(models):
            lines.append(
                Text(
                    f"The first {len(self.models):,} of {len(models):,} models; ranks and verdicts are over all of them "
                    "(--top N shows more).",
                    UNDECIDED,
                )
            )
        return lines

    def _signs_of_ties(self, ties: TieBands, *, with_rules: bool) -> list[str]:
        """Explain the signs of ties that are drawn, and no others."""
        marks, last = self.marks, len(self.models) - 1
        bands = [band.members for band in ties.bands or () if band.members[0] <= last]
        texts = []
        if any(len(members) > 1 for members in bands):
            passed = any(not set(range(members[0], min(members[-1], last))) <= set(members) for members in bands)
            texts.append(
                f"{marks.within} models on one line are tied" + (f" ({marks.passed} is not)" if passed else "")
            )
        threads = [sorted((k, *others)) for k, others in ties.lacking.items() if others]
        alone = [members[0] for members in bands if len(members) == 1]
        but = f" (but see {marks.with_lacking})"
        if alone:
            also = any(k in thread for k in alone for thread in threads)
            texts.append(f"{marks.alone} is tied with none{but if also else ''}")
        if with_rules and self.rules:
            crosses = any(thread[0] <= rule < thread[-1] for rule in self.rules for thread in threads)
            texts.append(f"no tie crosses {marks.rule * 3}{but if crosses else ''}")
        return texts

    def _lacking(self, ties: TieBands) -> list[Text]:
        """Explain the signs of models that lack items, and of those that may be tied with them, as far as they are drawn."""
        marks, models, shown = self.marks, self.benchmark.models, range(len(self.models))
        if not any(k in shown for k in ties.lacking):
            return []
        named = [k for k, others in ties.lacking.items() if any(j in shown and j not in ties.lacking for j in others)]
        texts = [f"{marks.lacking} lacks items"]
        if named:
            names = [f"{form.safe(models[k].model)} ({models[k].coverage:.0%} of the items)" for k in named[:3]]
            more = f" and {len(named) - 3:,} more" if len(named) > 3 else ""
            texts.append(f"{marks.with_lacking} may be tied with {', '.join(names)}{more}")
        return [Text(f"{'; '.join(texts)}.", HELD)]


def _colour(pair: PairReport) -> str:
    return DECIDED if pair.status == "decided" else ""
