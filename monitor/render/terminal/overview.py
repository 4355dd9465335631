"""The answer on one screen: the result, the ranking with its ties, what would separate them, and what to check before quoting it."""

from collections.abc import Sequence
from math import isfinite, log
from typing import Final

from rich.console import Console
from rich.text import Text

from monitor.render.document import Cell, Table, texts
from monitor.render.document import Column as Declared
from monitor.render.signs import HELD, UNDECIDED
from monitor.render.terminal.layout import wrap
from monitor.render.terminal.ranking import Ranking
from monitor.render.terminal.tables import lines as table_lines
from monitor.render.terminal.two_models import compared, two_models
from monitor.view.values import TieBands
from monitor.words import header as facts
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.kinds import suite
from schemas.results.report import BenchmarkReport, PairReport

_ONE_SCREEN: Final = 10  # models that fit one screen; more take two
_SEPARATED: Final = 8  # ties listed with what would separate them
_LINES: Final = 24  # lines of the smallest terminal, and of one screen of a file
_PROMPTS: Final = 2  # lines for the command above, and for the prompt below

_ENDLESS: Final = 10**6
_BAR: Final = 10


def overview(
    benchmark: BenchmarkReport,
    console: Console,
    ties: TieBands | None,
    *,
    head: Sequence[Text],
    limit: int,
    low_coverage: float,
    several: bool = False,
    last: bool = True,
    whole: bool = False,
) -> list[Text]:
    """Build the lines of a benchmark below its `head`: up to ten models fit one screen of a terminal, and thirty fit two."""
    # `last`: no benchmark follows, and the flags that show more are named. `whole`: nothing is omitted.
    screen = _Screen(benchmark, console, ties, limit, low_coverage)
    models, two = len(screen.models), compared(benchmark)

    def wrapped(lines: Sequence[Text], indent: int = 0) -> list[Text]:
        return [part for line in lines for part in wrap(line, console, indent)]

    assumptions = screen.assumptions(several=several)
    if two is not None:
        parts = [wrapped(part, 2) for part in (head, *two_models(benchmark, two, console, low_coverage))]
        parts += [
            [*wrapped(assumptions), *wrapped(screen.checks(), 2)],
            wrapped([screen.next(two.plan)] if last else [], 2),
        ]
        return [line for part in parts if part for line in [*part, Text()]][:-1]
    top, key, checks = wrapped(head, 2), wrapped([*screen.key(), *assumptions]), wrapped(screen.checks(), 2)
    following = wrapped([screen.next()]) if last else []
    height = max(_LINES, console.height) if console.is_terminal else _LINES
    screens = 1 if models <= _ONE_SCREEN and console.is_terminal else 2
    room = _ENDLESS if whole else screens * height - _PROMPTS
    spare = room - sum(map(len, (top, key, checks, following))) - models - 1
    if spare < 0:
        checks = wrapped(screen.checks(with_harmless=False), 2)
    rules = screen.rules if len(screen.rules) <= spare else ()
    if not rules:
        key = wrapped([*screen.key(with_rules=False), *assumptions])
    spare -= len(rules)
    separated = screen.separated(spare - 2) if models > _ONE_SCREEN else []
    spare -= len(separated)
    blanks = [Text()] * min(5, max(0, spare))
    lines = top
    for part in (screen.table(rules), key, separated, checks, following):
        lines += [*(blanks and part and [blanks.pop()]), *part]
    return lines


class _Screen(Ranking):
    """The parts of the overview of one benchmark."""

    def separated(self, room: int) -> list[Text]:
        """List the ties between neighbours that need the fewest items, in at most `room` lines."""
        ranks = {model.model: model.rank for model in self.models}
        ties = [
            pair
            for pair in self.steps.values()
            if {pair.model_a, pair.model_b} <= ranks.keys()
            and pair.status in {"collecting", "exhausted"}
            and pair.needs_items is not None
        ]
        ties.sort(key=lambda pair: pair.needs_items or 0)
        shown = ties[: min(_SEPARATED, max(0, room - 2))]
        if len(shown) < min(3, len(ties)) or not ties:
            return []
        gaps = texts(form.points(p.gap).replace("-", "−") for p in shown)
        columns = {
            "ranks": Declared("", texts(f" {ranks[p.model_a]} v {ranks[p.model_b]}" for p in shown), "number"),
            "pair": Declared("", [Cell(p.model_a, second=p.model_b, relation="~") for p in shown], "name"),
            "gap": Declared("", gaps, "number"),
            "bar": Declared("", [Cell(self._bar(p), UNDECIDED) for p in shown]),
            "step": Declared("", texts(form.needs(p.needs_items or 0) for p in shown), "number"),
        }
        title = Text("What would separate the ties", "bold").append(
            "  (bar: share of the evidence that decides)", "not bold"
        )
        title.truncate(self.width)
        lines = [title, *table_lines(Table(columns, omit=("bar",)), self.width, ascii_only=self.ascii, ruled=False)]
        if len(ties) > len(shown):
            least = form.estimate(ties[len(shown)].needs_items or 0)
            lines.append(
                Text(f" {counted(len(ties) - len(shown), 'further tie')}: {least} or more items each.", UNDECIDED)
            )
        return lines

    def _bar(self, pair: PairReport) -> str:
        """Draw the evidence as a share of what decides the pair family-wise."""
        p, threshold = pair.p_anytime, pair.family_threshold
        if p is None or threshold is None or not 0 < threshold < 1:
            return ""
        share = 1.0 if p <= 0 else max(0.0, min(1.0, log(p) / log(threshold)))
        full = min(_BAR - 1, int(_BAR * share)) if isfinite(share) else 0
        return self.marks.full * full + self.marks.empty * (_BAR - full)

    def checks(self, *, with_harmless: bool = True) -> list[Text]:
        """List what to check before the ranking is quoted, and on request what changes no verdict."""
        low = sum(m.coverage < self.low_coverage for m in self.models)
        marked = self.ties.lacking if self.ties is not None and self.ties.bands is not None else {}
        found = facts.short_checks(self.benchmark)
        order = facts.harmless_order(self.benchmark) if with_harmless else None
        found += [] if order is None else [order]
        if low > len(marked):
            found.insert(0, facts.low_coverage(low, self.low_coverage))
        return [Text("! ", HELD).append(form.safe(text), "default") for text in found]

    def assumptions(self, *, several: bool) -> list[Text]:
        """Return what the verdicts assume, once, and their error rate."""
        b = self.benchmark
        text, weights = "" if b.result is None else facts.assumed(b, several=several), facts.weights(b)
        lines = [] if weights is None else [Text(form.safe(f"Scores are weighted: {weights}."), UNDECIDED)]
        lines += [Text(form.safe(each), UNDECIDED) for each in suite.members(self.benchmark)]
        return [*lines, *([Text(form.safe(text), UNDECIDED)] if text else [])]

    def next(self, plan: str | None = None) -> Text:
        """Return which flags show more, or where nothing is compared, how to compare; `plan`: the command that plans a test."""
        more = "rankwatch report PATH --verbose (reasons), --pairs all, --format html"
        if plan is not None:
            more = f"{plan} (a new test), --verbose"
        if not self.benchmark.pairs and len(self.benchmark.models) == 1:
            more = "add the results of another model, rankwatch report PATH PATH"
        return Text("Next: ", "bold").append(more, "not bold")
