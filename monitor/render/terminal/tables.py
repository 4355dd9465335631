"""The tables of a report on a terminal; where the width is short, the least important columns are omitted first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from monitor.render.signs import (
    HELD,
    PROCEDURES,
    RESOLUTIONS,
    SUMMARY_ONLY,
    UNDECIDED,
    Glyphs,
    decision_glyph,
    in_name_order,
    pair_signs,
    relation,
    resolution_glyph,
    settled_glyph,
    status_glyph,
)
from monitor.render.terminal.layout import (
    GAP,
    Column,
    ellipsis_of,
    first_that_fits,
    glyphs_for,
    shorten,
    table,
    width_of,
)
from monitor.words import header
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.header import log_e_digits, log_thresholds, tests_at_n
from schemas.results.report import BenchmarkReport, GoalReport, ModelReport, PairReport

_NAME_ROOM: Final = 35  # cells that a pair's two names may shrink to before a column is omitted for them
_REASON_ROOM: Final = 50
_WHOLE: Final = 10_000  # cells: more than any name has
_NUMBERS: Final = {key: str(number) for number, key in enumerate(PROCEDURES, 1)}

_SHORT: Final = (
    *("names", "n", "bc", "gap", "interval", "log_e", "required_n", "q"),
    *("settled", "decided_short", "resolved_short", "extra", "status"),
)
_FULL: Final = tuple(key.removesuffix("_short") for key in _SHORT)


def _without(*keys: str) -> tuple[str, ...]:
    return tuple(key for key in _SHORT if key not in keys)


_LAYOUTS: Final = (
    _FULL,
    _SHORT,
    _without("settled"),
    _without("settled", "required_n"),
    _without("settled", "required_n", "bc"),
    _without("settled", "required_n", "bc", "n"),
    _without("settled", "required_n", "bc", "n", "interval"),
    ("names", "gap", "log_e", "q", "decided_short", "extra", "status"),
    ("names", "gap", "log_e", "q", "decided_short", "extra"),
    ("names", "gap", "log_e", "q", "headline", "extra"),
    ("names", "gap", "log_e", "headline", "extra"),
    ("names", "gap", "headline", "extra"),
    ("names", "gap", "headline"),
    ("names", "headline"),
)
_WITHOUT_NUMBERS: Final = tuple(
    tuple("headline" if key == "decided_short" else key for key in layout if key != "resolved_short")
    for layout in _LAYOUTS
)


class Extra(NamedTuple):
    """A further column of the pair table: its title, and a text for each pair in name order."""

    title: str
    cells: Mapping[tuple[str, str], Text]


def models_table(
    models: Sequence[ModelReport], width: int, *, ascii_only: bool = False, low_coverage: float = 0.0
) -> Group:
    """Build the ranking: rank, the ranks that verdicts leave open, tie group, and the mean with its interval; and the extra columns.

    A model with scores on less than `low_coverage` of the items is marked next to its name, which every layout shows.
    """
    means = [
        f"[{form.percent(m.mean_low)}, {form.percent(m.mean_high)}]" if m.mean_low is not None else form.MISSING
        for m in models
    ]
    columns = {
        "rank": _plain("rank", [str(m.rank) for m in models]),
        "ranks": _plain("ranks", [form.ranks(m, "-") for m in models]),
        "tie": _plain("tie", [str(m.tie_group) for m in models]),
        "model": Column("model", [_model_name(m, _WHOLE, low_coverage, ascii_only=ascii_only) for m in models]),
        "items": _plain("items", [f"{m.items:,}" for m in models]),
        "coverage": _plain("coverage", [f"{m.coverage:.1%}" for m in models]),
        "mean": _plain("mean %", [form.percent(m.mean) for m in models]),
        "interval": _plain("interval", means),
    }
    extras = {title: _plain(title, cells) for title, cells in form.extra_columns(models).items()}
    columns |= extras
    dropped = ((), ("coverage",), ("coverage", "items"), ("coverage", "items", *extras))
    layouts = (tuple(key for key in columns if key not in drop) for drop in dropped)
    narrow = (("rank", "ranks", "tie", "model", "mean"), ("rank", "model", "mean"), ("rank", "model"))
    keys = first_that_fits(columns, (*layouts, *narrow), width, {"model": 16})
    room = max(4, width - width_of(columns, keys, but="model"))
    names = [_model_name(m, room, low_coverage, ascii_only=ascii_only) for m in models]
    return table([Column("model", names) if key == "model" else columns[key] for key in keys], ascii_only=ascii_only)


def goal_table(goal: GoalReport, limit: int, *, ascii_only: bool = False) -> Group:
    """Build the table of what each model ran for a goal, up to `limit` models."""
    titles, rows = header.goal_table(goal)
    names, *others = zip(*rows[:limit], strict=True)
    ellipsis = ellipsis_of(ascii_only=ascii_only)
    columns = [Column(titles[0], [Text(shorten(name, _NAME_ROOM, ellipsis)) for name in names])]
    columns += [
        Column(title, [Text(cell) for cell in cells], right=title != titles[-1])
        for title, cells in zip(titles[1:], others, strict=True)
    ]
    return table(columns, ascii_only=ascii_only)


def _model_name(model: ModelReport, room: int, low_coverage: float, *, ascii_only: bool) -> Text:
    mark = f" ({model.coverage:.0%})" if model.coverage < low_coverage else ""
    return Text(shorten(model.shown, room - len(mark), ellipsis_of(ascii_only=ascii_only))).append(mark, HELD)


def pairs_table(
    benchmark: BenchmarkReport,
    pairs: Sequence[PairReport],
    console: Console,
    width: int,
    extra: Extra | None = None,
    *,
    with_legend: bool = True,
) -> tuple[Group, bool]:
    """Build the table of pairs; without a legend below it, no column numbers the procedures."""
    ascii_only = console.options.ascii_only
    columns = _pair_columns(benchmark, pairs, glyphs_for(console))
    natural = max([4, *(cell_len(form.safe(p.model_a)) + cell_len(form.safe(p.model_b)) + 3 for p in pairs)])
    columns["names"] = Column("pair", [Text(" " * min(natural, _NAME_ROOM))])
    if extra:
        columns["extra"] = Column(extra.title, [extra.cells.get(in_name_order(p), Text(form.MISSING)) for p in pairs])
    layouts = [
        tuple(key for key in layout if key in columns) for layout in (_LAYOUTS if with_legend else _WITHOUT_NUMBERS)
    ]
    keys = first_that_fits(columns, layouts, width)
    left = width - width_of(columns, keys, but="names")
    columns["names"] = Column("pair", [_names(p, max(9, min(left, natural)), ascii_only=ascii_only) for p in pairs])
    longest = max([0, *(cell_len(form.safe(p.reason)) for p in pairs)])
    room = width - width_of(columns, keys) - GAP
    with_reasons = bool(pairs) and room >= max(_REASON_ROOM, longest)
    table_columns = [columns[key] for key in keys]
    if with_reasons:
        table_columns.append(Column("reason", [Text(form.safe(p.reason)) for p in pairs]))
    return table(table_columns, ascii_only=ascii_only), with_reasons


def _pair_columns(benchmark: BenchmarkReport, pairs: Sequence[PairReport], glyphs: Glyphs) -> dict[str, Column]:
    pair, family = log_thresholds(benchmark)
    digits = 2 if tests_at_n(benchmark) else log_e_digits(benchmark)
    limit = "" if tests_at_n(benchmark) else f"\n>={form.decimal(pair if family is None else family, digits)}"
    return {
        "n": _plain("n", [f"{p.n:,}" for p in pairs]),
        "bc": _plain("b/c", [form.discordant(p) for p in pairs]),
        "gap": _plain("gap\npp", [form.points(p.gap) for p in pairs]),
        "interval": _plain("interval\nat alpha", [form.interval(p.gap_low, p.gap_high) for p in pairs]),
        "log_e": _plain(f"ln e{limit}", [form.decimal(p.log_e, digits) for p in pairs]),
        "required_n": _plain("N*\nfixed n", [form.items(p.required_n) for p in pairs]),
        "q": _plain("q\nfix", [form.ratio(p.resolution_ratio) for p in pairs]),
        "settled": Column("set\ntled", [Text(*settled_glyph(p, glyphs)) for p in pairs]),
        "decided": Column(f"decided\n{_shorts(PROCEDURES)}", [_decided(p, glyphs, 4) for p in pairs]),
        "decided_short": Column(f"decided\n{_numbers(PROCEDURES)}", [_decided(p, glyphs, 2) for p in pairs]),
        "headline": Column("decided\nFAM", [Text(*decision_glyph(p, "anytime_family", glyphs)) for p in pairs]),
        "resolved": Column(f"resolved\n{_shorts(RESOLUTIONS)}", [_resolved(p, glyphs, 4) for p in pairs]),
        "resolved_short": Column(f"resolved\n{_numbers(RESOLUTIONS)}", [_resolved(p, glyphs, 2) for p in pairs]),
        "status": Column("status", [_status(p, glyphs) for p in pairs]),
    }


def summary_table(benchmark: BenchmarkReport, width: int, *, ascii_only: bool = False) -> Group:
    """Build the counts of pairs that each procedure leaves undecided and unresolved."""
    summary = benchmark.summary
    labels = [Text("undecided (evidence)"), Text("unresolved (q < 1)")]
    columns = [Column(f"of {counted(summary.pairs, 'pair')}", labels)]
    shorts = {key: short for key, (short, _) in PROCEDURES.items()}
    shorts |= {key: short for key, short in SUMMARY_ONLY.items() if key in summary.undecided}
    for key, short in shorts.items():
        resolvable = key in RESOLUTIONS or key in summary.unresolved
        cells = [summary.undecided.get(key, "n/a"), summary.unresolved.get(key, "n/a" if resolvable else "")]
        style = "bold" if key == "anytime_family" else ""
        columns.append(Column(short, [Text(str(cell)) for cell in cells], right=True, style=style))
    while len(columns) > 2 and sum(c.width + GAP for c in columns) - GAP > width:
        columns.pop()
    return table(columns, ascii_only=ascii_only)


def legend(pairs: Iterable[PairReport], glyphs: Glyphs) -> Text:
    """Return the paragraph that explains the glyph columns of a table of pairs: the signs that it shows."""
    numbered = ", ".join(f"{_NUMBERS[key]} {short} {name}" for key, (short, name) in PROCEDURES.items())
    text = Text(
        "settled: it is known who leads on these items; decided: there is evidence which model is better on items of this "
        f"kind and mix; resolved: a planned test of so many items detects a gap of this size (q >= 1; {form.Q_IS_NO_EVIDENCE}). ",
        style=UNDECIDED,
    )
    signs = pair_signs(pairs, glyphs)
    for sign, colour, words in signs:
        text.append(sign, colour).append(f" {words}{'.' if words == signs[-1][2] else '  '}")
    text.append("\n")
    return text.append(f"Procedures: {numbered}; fix, Bon, Hol, BH and clu are valid at a planned n only.")


def _shorts(keys: Iterable[str]) -> str:
    return " ".join(f"{PROCEDURES[key][0]:<3}" for key in keys).rstrip()


def _numbers(keys: Iterable[str]) -> str:
    return " ".join(_NUMBERS[key] for key in keys)


def _plain(title: str, cells: Iterable[str]) -> Column:
    return Column(title, [Text(cell) for cell in cells], right=True)


def _decided(pair: PairReport, glyphs: Glyphs, step: int) -> Text:
    return _row((decision_glyph(pair, key, glyphs) for key in PROCEDURES), step)


def _resolved(pair: PairReport, glyphs: Glyphs, step: int) -> Text:
    return _row((resolution_glyph(pair, key, glyphs) for key in RESOLUTIONS), step)


def _row(signs: Iterable[tuple[str, str]], step: int) -> Text:
    text = Text()
    for sign, colour in signs:
        text.append(sign, colour).append(" " * (step - 1))
    text.rstrip()
    return text


def _status(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, word, colour = status_glyph(pair, glyphs)
    return Text(f"{glyph} {word}", style=colour)


def _names(pair: PairReport, room: int, *, ascii_only: bool) -> Text:
    """Return both names within `room` cells; a short one leaves its share to the other."""
    a, b = form.safe(pair.model_a), form.safe(pair.model_b)
    share = room - 3
    wide_a, wide_b = cell_len(a), cell_len(b)
    if wide_a + wide_b > share:
        room_a = min(wide_a, max(share // 2, share - wide_b))
        ellipsis = ellipsis_of(ascii_only=ascii_only)
        a, b = shorten(a, room_a, ellipsis), shorten(b, share - room_a, ellipsis)
    return Text(a).append(f" {relation(pair)} ", "bold").append(b)
