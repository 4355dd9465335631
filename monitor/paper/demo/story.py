"""The end of the demo: one stream looked at in three ways, then published and computed numbers."""

from collections.abc import Callable, Sequence
from math import log
from statistics import median
from typing import Final

from rich.console import Console, Group
from rich.text import Text

from monitor.paper.demo import top_ten
from monitor.paper.demo.naive import LOOK_EVERY, NaivePeeking
from monitor.render.document import Cell
from monitor.render.pairs import Extra
from monitor.render.signs import HELD, UNDECIDED, Glyphs, decision_glyph, in_name_order, resolution_glyph
from monitor.render.terminal.layout import Column, first_that_fits, glyphs_for, shorten, table
from monitor.render.terminal.report import result
from monitor.render.terminal.tables import text_of
from monitor.words.numbers import decimal, items, points, ratio
from schemas.results.report import BenchmarkReport, PairReport, Report
from stats.evidence.eprocess import anytime_required_n
from stats.fixed_n.resolution import required_n

AVERAGE_FALSE_ALARMS: Final = 2.9
"""Mean number of nine equal pairs that peeking calls, over 300 seeds (standard error .1)."""

FIFTH_DECIDED: Final = 0.41
"""Share of 400 seeds in which bets alone decide 5 v 6 in the family of all 45 pairs during the replay (standard error .025)."""

FIFTH_DECIDED_OF_NINE: Final = 0.82  # the same in a family of the nine pairs alone (standard error .019)

_Sign = Callable[[PairReport, str, Glyphs], tuple[str, str]]

_NAME: Final = 12
_WHOLE_STORY: Final = 60  # lines of a terminal from which the whole end is shown
_FIFTH_AND_SIXTH: Final = 4
_PROCEDURES: Final = {
    "fixed_n": "fixed n",
    "bonferroni": "Bonferroni / Holm",
    "anytime": "anytime-valid",
    "clustered": "clustered",
}


def naive_column(naive: NaivePeeking) -> Extra:
    """Build a column for the pair table: the present verdict of naive peeking and how often it changed."""
    cells = {}
    for (a, b), leader, verdict, flips in zip(naive.pairs, naive.leaders(), naive.verdicts, naive.flips, strict=True):
        text, tone = (shorten(leader, _NAME, ".."), HELD) if verdict else (leader, UNDECIDED)
        cells[min(a, b), max(a, b)] = Cell(text, tone, f", {flips}")
    return Extra("naive peeking\nverdict, flips", cells)


def render_story(report: Report, naive: NaivePeeking, console: Console, null: bool) -> None:  # noqa: FBT001 - the demo's one switch
    """Print the end of the demo."""
    benchmark, pairs = _find(report, naive)
    if null:
        parts = _null_story(benchmark, pairs, naive, console)
    elif is_short(console):
        parts = _short_story(benchmark, pairs, naive, console)
    else:
        parts = _paper_story(benchmark, pairs, naive, console)
    for part in parts:
        console.print(part, highlight=False)


def is_short(console: Console) -> bool:
    """Return whether the whole end of the demo would scroll off a terminal."""
    return console.is_terminal and console.height < _WHOLE_STORY


def _short_story(
    benchmark: BenchmarkReport, pairs: Sequence[PairReport], naive: NaivePeeking, console: Console
) -> list[Text | Group]:
    """Fit the result, the three ways and the paper's counts on one screen of 24 lines."""
    headline, ways, saved = _three_ways(benchmark, pairs, naive, console, ruled=False)
    computed = {key: _unresolved(benchmark, pairs, key) for key in _PROCEDURES}
    counts = ", ".join(
        f"{name} {top_ten.UNRESOLVED[key]}"
        for key, name in _PROCEDURES.items()
        if computed[key] == top_ten.UNRESOLVED[key]
    )
    paper = Text(f"Unresolved of nine pairs, in the paper and as computed: {counts}.")
    return [headline, *result(benchmark, glyphs_for(console)), ways, saved, paper, _next()]


def _next() -> Text:
    return Text("Next: ", "bold").append(
        "rankwatch reproduce; demo --null, --keep; report PATH of your own", "not bold"
    )


def _find(report: Report, naive: NaivePeeking) -> tuple[BenchmarkReport, list[PairReport]]:
    names = [(min(pair), max(pair)) for pair in naive.pairs]
    for benchmark in report.benchmarks:
        pairs = {in_name_order(pair): pair for pair in benchmark.pairs}
        if pairs.keys() >= set(names):
            return benchmark, [pairs[key] for key in names]
    raise ValueError(f"the report has no benchmark with all {len(names)} pairs of the demo; build it with all pairs")


def _paper_story(
    benchmark: BenchmarkReport, pairs: Sequence[PairReport], naive: NaivePeeking, console: Console
) -> list[Text | Group]:
    return [
        Text(),
        *_three_ways(benchmark, pairs, naive, console),
        Text(),
        Text("Unresolved pairs of nine (q = N/N* below 1), by procedure", style="bold"),
        _verdict_table(benchmark, pairs, console),
        Text(),
        Text("The nine pairs, as printed and as computed", style="bold"),
        _pair_table(pairs, naive, console),
        Text(),
        five_against_six(benchmark, pairs),
        Text(
            "Without the look at the last item the order matters: in 400 random orders bets decide 5 v 6 in "
            f"{FIFTH_DECIDED:.0%} within the family of 45, and in {FIFTH_DECIDED_OF_NINE:.0%} within a family of the nine pairs.",
            style=UNDECIDED,
        ),
        Text(
            "Only these nine pairs are the paper's; it prints no e-values. Its N* fit N = 12,031, rounded up.",
            style=UNDECIDED,
        ),
        _looks(naive),
        Text(),
        _next(),
    ]


def _three_ways(
    benchmark: BenchmarkReport,
    pairs: Sequence[PairReport],
    naive: NaivePeeking,
    console: Console,
    *,
    ruled: bool = True,
) -> list[Text | Group]:
    """Put peeking, the committed order and one look at the end side by side."""
    glyphs = glyphs_for(console)
    watched = [pair.decided_at_n for pair in benchmark.pairs if pair.decided.anytime_family and pair.decided_at_n]
    at_end = sum(pair.decided.holm is not None for pair in benchmark.pairs)
    total, changes = len(benchmark.pairs), int(naive.flips.sum())
    columns = {
        "rank": Column("ranks", [Text(row.name) for row in top_ten.PAIRS], right=True),
        "names": _verdicts(pairs, naive),
        "gap": Column(
            "points", [Text(points(_gap(pair, a))) for pair, (a, _) in zip(pairs, naive.pairs, strict=True)], right=True
        ),
        "naive": Column("p < .05\nchanges", [_changes(flips) for flips in naive.flips.tolist()]),
        "committed": Column(
            "committed\nat item",
            [
                Text(f"{pair.decided_at_n:,}" if pair.decided.anytime_family and pair.decided_at_n else "tie")
                for pair in pairs
            ],
            right=True,
        ),
        "full": Column("one look\n(Holm)", [Text(*decision_glyph(pair, "holm", glyphs)) for pair in pairs]),
    }
    full = tuple(columns)
    layouts = [full, full[1:], ("rank", "gap", "naive", "committed", "full"), ("rank", "naive", "committed")]
    shown = first_that_fits(columns, layouts, console.width)
    headline = Text("One stream, three ways: ", style="bold")
    headline.append(
        f"p < .05 at every look changes its verdict {changes} times on nine pairs; none of rankwatch's {len(watched)} decisions changes.",
        "not bold",
    )
    saved = Text(
        f"Along the committed order {len(watched)} of {total} pairs are decided, half of them within {int(median(watched)):,} of the "
        f"{benchmark.items:,} items. One look after all items decides {at_end}."
        if watched
        else f"Along the committed order none of {total} pairs is decided; one look after all items decides {at_end}."
    )
    return [headline, table([columns[key] for key in shown], ascii_only=console.options.ascii_only, ruled=ruled), saved]


def _verdicts(pairs: Sequence[PairReport], naive: NaivePeeking) -> Column:
    """Name the pairs with the verdict of the committed order between them."""
    signs = [
        "~" if pair.decided.anytime_family is None else ">" if _leader(pair) == a else "<"
        for pair, (a, _) in zip(pairs, naive.pairs, strict=True)
    ]
    return Column("pair", [Text(f"{a} {sign} {b}") for sign, (a, b) in zip(signs, naive.pairs, strict=True)])


def _leader(pair: PairReport) -> str:
    return pair.model_a if pair.decided.anytime_family == "a" else pair.model_b


def _gap(pair: PairReport, first: str) -> float | None:
    return pair.gap if pair.gap is None or pair.model_a == first else -pair.gap


def _changes(flips: int) -> Text:
    """Show a number of changes; each one after the first took an earlier verdict back."""
    return Text(f"{flips:2d} ").append("|", UNDECIDED).append("|" * (flips - 1), HELD) if flips else Text(" 0")


def _verdict_table(benchmark: BenchmarkReport, pairs: Sequence[PairReport], console: Console) -> Group:
    total = len(pairs)
    computed, remarks = [], []
    for procedure in _PROCEDURES:
        unresolved = _unresolved(benchmark, pairs, procedure)
        if unresolved is None:
            computed.append("n/a")
            remarks.append("the paper prints no counts by category" if procedure == "clustered" else "not computed")
            continue
        computed.append(f"{unresolved}/{total}")
        remarks.append("same" if unresolved == top_ten.UNRESOLVED[procedure] else "differs")
    return table(
        [
            Column("procedure", [Text(name) for name in _PROCEDURES.values()]),
            Column("paper", [Text(f"{top_ten.UNRESOLVED[key]}/{total}") for key in _PROCEDURES], right=True),
            Column("computed", [Text(count) for count in computed], right=True),
            Column("", [Text(remark, UNDECIDED) for remark in remarks]),
        ],
        ascii_only=console.options.ascii_only,
    )


def _unresolved(benchmark: BenchmarkReport, pairs: Sequence[PairReport], procedure: str) -> int | None:
    """Count the pairs that a procedure leaves unresolved; None where it is not computed."""
    values = [
        _resolved_of_nine(benchmark, pair) if procedure == "bonferroni" else getattr(pair.resolved, procedure)
        for pair in pairs
    ]
    return None if None in values else values.count(False)


def _resolved_of_nine(benchmark: BenchmarkReport, pair: PairReport) -> bool | None:
    """Return whether a pair is resolved at alpha / 9; the report divides alpha by all 45 pairs, and the paper by its nine."""
    if pair.b is None or pair.c is None:
        return None
    alpha = benchmark.alpha / len(top_ten.PAIRS)
    return bool(pair.n >= required_n(pair.n, pair.b, pair.c, alpha, benchmark.power))


def _pair_table(pairs: Sequence[PairReport], naive: NaivePeeking, console: Console) -> Group:
    glyphs = glyphs_for(console)
    printed = top_ten.PAIRS
    columns = {
        "rank": Column("ranks", [Text(row.name) for row in printed], right=True),
        "names": _names(naive),
        "bc": Column("b/c", [Text(f"{row.b:,}/{row.c:,}") for row in printed], right=True),
        "n_paper": Column(
            "N*\npaper", [Text(items(float(row.required_n.replace(",", "")))) for row in printed], right=True
        ),
        "n": Column("N*\ncomputed", [Text(items(pair.required_n)) for pair in pairs], right=True),
        "p_paper": Column("p exact\npaper", [Text(row.p_exact) for row in printed], right=True),
        "p": Column("p exact\ncomputed", [Text(_p(pair.p_exact)) for pair in pairs], right=True),
        "q": Column("q,\nfix. n", [Text(ratio(pair.resolution_ratio)) for pair in pairs], right=True),
        "log_e": Column("ln e", [Text(decimal(pair.log_e)) for pair in pairs], right=True),
        "resolved": Column(
            "resolved\nfix. any", [_two(pair, glyphs, resolution_glyph, "fixed_n", "anytime") for pair in pairs]
        ),
        "decided": _decided(pairs, glyphs),
        "naive": _naive(naive),
    }
    full = tuple(columns)
    layouts = [
        tuple(key for key in full if key not in drop)
        for drop in ((), ("bc",), ("bc", "names"), ("bc", "names", "p_paper", "p"))
    ]
    shown = first_that_fits(columns, [*layouts, ("rank", "n_paper", "n", "log_e", "decided")], console.width)
    return table([columns[key] for key in shown], ascii_only=console.options.ascii_only)


def five_against_six(benchmark: BenchmarkReport, pairs: Sequence[PairReport]) -> Text:
    """Explain why the paper's count and the verdict on ranks 5 and 6 do not contradict each other."""
    pair = pairs[_FIFTH_AND_SIXTH]
    if pair.b is None or pair.c is None or pair.log_e is None:
        return Text("5 v 6: not computed")
    size = benchmark.family.size or len(top_ten.PAIRS)
    alpha = benchmark.alpha * (1 - (benchmark.look or 0))  # what bets have of it
    needed = float(anytime_required_n(pair.n, pair.b, pair.c, alpha, benchmark.power, benchmark.mixture))
    own = f"on its own (ln e {pair.log_e:.2f}, threshold ln {1 / alpha:g} = {-log(alpha):.2f})"
    until = pair.decided_at_n or pair.n
    earlier = sum(other.decided_at_n is not None and other.decided_at_n < until for other in benchmark.pairs)
    rest = size - earlier
    family = f"in the family of {size}: with {earlier} pairs decided its threshold is ln {rest / alpha:g} = {log(rest / alpha):.2f}"
    if pair.decided.anytime is None:
        evidence = f"decided neither {own} nor {family}"
    elif pair.decided.anytime_family is None:
        evidence = f"decided {own}, but not {family}"
    else:
        at_end = f"in the family of {size}, by bets or by the exact test of all items"
        evidence = f"decided {own}, and at item {pair.decided_at_n:,} also {at_end if benchmark.look else family}"
    fixed, anytime = pair.resolution_ratio, pair.n / needed
    return Text("Why 5 v 6 differs: ", style="bold").append(
        f"the pair is {evidence}. It is {_resolved(fixed)} at fixed n (q {ratio(fixed)}) and {_resolved(anytime)} anytime "
        f"(q {ratio(anytime)}). The paper's 5/9 counts pairs that are unresolved anytime; it does not count undecided pairs.",
        "not bold",
    )


def _null_story(
    benchmark: BenchmarkReport, pairs: Sequence[PairReport], naive: NaivePeeking, console: Console
) -> list[Text | Group]:
    glyphs, total = glyphs_for(console), len(pairs)
    family = sum(pair.decided.anytime_family is not None for pair in pairs)
    alone = sum(pair.decided.anytime is not None for pair in pairs)
    called = int(naive.called.sum())
    ever = Column("called\never", [Text("yes", HELD) if yes else Text("no", UNDECIDED) for yes in naive.called])
    text = Text(f"{_alarms(called)} by naive peeking on {total} pairs of equal models, ", style="bold")
    text.append(f"{_alarms(family)} by the anytime family").append(
        f" ({alone} by the anytime tests of single pairs).", "not bold"
    )
    return [
        Text(),
        Text("Equal models: every verdict is a false alarm", style="bold"),
        table([_names(naive), _decided(pairs, glyphs), ever, _naive(naive)], ascii_only=console.options.ascii_only),
        Text(),
        text,
        Text(
            f"This is one replay. Over many seeds peeking calls {AVERAGE_FALSE_ALARMS} of the nine pairs on average; "
            f"the anytime family calls any pair in at most {benchmark.alpha:.0%} of the replays.",
            style=UNDECIDED,
        ),
        _looks(naive),
        Text(),
        _next(),
    ]


def _alarms(count: int) -> str:
    return f"{count or 'no'} false alarm{'' if count == 1 else 's'}"


def _looks(naive: NaivePeeking) -> Text:
    rule = f"takes exact McNemar p < .05 as a verdict at each of {naive.looks:,} looks, one every {LOOK_EVERY} items"
    return Text(f"Naive peeking {rule}.", style=UNDECIDED)


def _names(naive: NaivePeeking) -> Column:
    return Column("pair", [Text(f"{a} : {b}") for a, b in naive.pairs])


def _decided(pairs: Sequence[PairReport], glyphs: Glyphs) -> Column:
    cells = [_two(pair, glyphs, decision_glyph, "anytime_family", "anytime") for pair in pairs]
    return Column("decided\nfam. pair", cells)


def _naive(naive: NaivePeeking) -> Column:
    column = naive_column(naive)
    return Column(column.head, [text_of(column.cells[min(pair), max(pair)]) for pair in naive.pairs])


def _two(pair: PairReport, glyphs: Glyphs, sign: _Sign, first: str, second: str) -> Text:
    return Text().append(*sign(pair, first, glyphs)).append("    ").append(*sign(pair, second, glyphs))


def _resolved(q: float | None) -> str:
    return "resolved" if q is not None and q >= 1 else "not resolved"


def _p(p: float | None) -> str:
    if p is None:
        return "n/a"
    if p < 1e-15:
        return "<1e-15"
    if p >= 0.01:
        return f"{p:.3f}"
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
