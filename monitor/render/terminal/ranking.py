"""The ranking as a table with its ties: what a report and the live screen show first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from rich.console import Console
from rich.text import Text

from monitor.render.document import Column as Declared
from monitor.render.document import Table
from monitor.render.ranking import ranking, steps_of
from monitor.render.signs import DECIDED, HELD, UNDECIDED, step
from monitor.render.terminal.layout import Column, glyphs_for
from monitor.render.terminal.tables import lines
from monitor.view.values import TieBands
from monitor.words import numbers as form
from monitor.words.columns import HEADS, NEEDS, STEPS, sized
from schemas.results.report import BenchmarkReport

_KEYS: Final[tuple[str, ...]] = (*("ties", "ranks", "places", "model", "score", "interval", "won", "decided", "step"),)
_OMIT: Final = {  # what is omitted first where the width is short, without and with ratings
    False: ("interval", "places", "step"),
    True: ("won", "places", "interval", "step"),
}

_DRAWN: Final = Declared("", [])

_NARROW: Final = 100  # columns below which the table has less space between its columns
_WIDE: Final = 120  # columns from which scores are drawn, with their intervals


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
    full: str
    empty: str


_UNICODE: Final = _Marks("╻", "┃", "╹", "▪", "┊", "▸", "◦", "─", "─", "●", "█", "·")
_ASCII: Final = _Marks(",", "|", "'", "^", ":", ">", ".", "-", "-", "o", "#", ".")


class Ranking:
    """The models of a benchmark by rank, each with the step to the next, as a console has room and signs for them; up to `limit` models."""

    def __init__(
        self, benchmark: BenchmarkReport, console: Console, ties: TieBands | None, limit: int, low_coverage: float
    ) -> None:
        self.benchmark, self.ties, self.low_coverage = benchmark, ties, low_coverage
        self.models = benchmark.models[:limit]
        self.width, self.glyphs = console.width, glyphs_for(console)
        self.ascii = console.options.ascii_only
        self.marks = _ASCII if self.ascii else _UNICODE
        self.steps = steps_of(benchmark)

    @property
    def rules(self) -> tuple[int, ...]:
        """Positions after which no tie crosses, within the models shown."""
        return () if self.ties is None else tuple(k for k in self.ties.rules if k < len(self.models) - 1)

    def table(self, rules: Sequence[int]) -> list[Text]:
        """Build the ranking, a rule after each of these positions."""
        whole = ranking(self.benchmark, self.low_coverage, glyphs=self.glyphs, limit=len(self.models))
        made = {"ties": self._ties(), "places": self._strip(), "interval": self._plot()}
        drawn = {key: column for key, column in made.items() if column is not None}
        rated = self.benchmark.battles is not None
        if "decided" in whole.columns:  # the head of its step is enough
            whole.columns["decided"] = whole.columns["decided"]._replace(head="")
        columns = {key: whole.columns.get(key, _DRAWN) for key in _KEYS if key in whole.columns or key in drawn}
        if not rated and "interval" not in drawn:
            del columns["interval"]
        shown = Table(columns, omit=_OMIT[rated])
        gap = 1 if self.width < _NARROW else 2
        return lines(shown, self.width, ascii_only=self.ascii, ruled=False, gap=gap, drawn=drawn, rules=rules)

    def counts(self) -> list[Text]:
        """Build what the ranking has no room for: the counts of each model, and its interval."""
        whole = ranking(self.benchmark, self.low_coverage, glyphs=self.glyphs, limit=len(self.models))
        keys = [
            key for key in whole.columns if key in {"rank", "model", "score"} or key not in _KEYS or key == "interval"
        ]
        return lines(whole.of(keys), self.width, ascii_only=self.ascii)

    def _ties(self) -> Column | None:
        if self.ties is None or self.ties.bands is None:
            return None
        return Column(HEADS["ties"], [self._lanes(k) for k in range(len(self.models))])

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

    def _strip(self) -> Column | None:
        """Draw the range of ranks of each model, from rank 1 to the last."""
        total = len(self.benchmark.models)
        if total < 2:
            return None
        room = min(total, 10 if self.width < _NARROW else 20)

        def at(rank: int) -> int:
            return (rank - 1) * (room - 1) // (total - 1)

        cells = [self._range(at(m.rank_low), at(m.rank_high), at(m.rank), "bold") for m in self.models]
        last = str(total)
        return Column("1" + " " * max(1, room - 1 - len(last)) + last, cells)

    def _plot(self) -> Column | None:
        """Draw the scores with their intervals, on wide terminals."""
        known = [m for m in self.models if m.mean is not None and m.mean_low is not None and m.mean_high is not None]
        if self.width < _WIDE or not known:  # ratings are drawn nowhere
            return None
        step = 5
        least = int(100 * min(m.mean_low or 0 for m in known)) // step * step
        most = -(-ceil(100 * max(m.mean_high or 0 for m in known)) // step) * step
        room = min(40, 21 + max(0, self.width - 130))

        def at(share: float) -> int:
            return min(room - 1, max(0, round((100 * share - least) / max(most - least, 1) * (room - 1))))

        cells = [
            Text()
            if m.mean is None
            else self._range(at(m.mean_low or m.mean), at(m.mean_high or m.mean), at(m.mean), "")
            for m in self.models
        ]
        right = f"{most} %"
        return Column(f"{least}".ljust(room - len(right)) + right, cells)

    def _range(self, low: int, high: int, place: int, tone: str) -> Text:
        """Draw a range with a place in it."""
        cell = Text()
        for k in range(max(high, place) + 1):
            if k == place:
                cell.append(self.marks.place, tone)
            else:
                cell.append(self.marks.range if low <= k <= high else " ", UNDECIDED)
        return cell

    def key(self, *, with_rules: bool = True) -> list[Text]:
        """Explain the signs of the steps, the ties, and which models are shown."""
        lines = self._signs_of_steps()
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

    def _signs_of_steps(self) -> list[Text]:
        """Explain the signs of steps that are drawn, and no others."""
        if len(self.benchmark.models) <= 2:  # the line above is the whole answer
            return []
        shown = [pair for model in self.models if (pair := self.steps.get(model.model)) is not None]
        signs = {pair.step: step(pair, self.glyphs)[0] for pair in shown}
        texts = [f"{signs[kind]} {word}: {meaning}" for kind, (word, meaning) in STEPS.items() if kind in signs]
        if any(map(sized, shown)):
            texts.append(NEEDS)
        return [Text(f"{'; '.join(texts)}.", UNDECIDED)] if texts else []

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
