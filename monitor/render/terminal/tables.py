"""Tables that fit: columns measured on what they hold, the least important left out first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console, Group
from rich.text import Text

from monitor.render import numbers as form
from monitor.render.numbers import ASCII, DECIDED, HELD, PROCEDURES, UNDECIDED, UNICODE, Glyphs
from monitor.report.sentences import counted
from schemas.report import RESOLUTION_PROCEDURES, BenchmarkReport, ModelReport, PairReport

_GAP: Final = 2  # cells between two columns
_NAME_ROOM: Final = 35  # cells that a pair's two names may shrink to before a column is left out for them
_REASON_ROOM: Final = 50
_WHOLE: Final = 10_000  # cells: more than any name has
_RESOLUTIONS: Final = tuple(key for key in PROCEDURES if key in RESOLUTION_PROCEDURES)
_NUMBERS: Final = {key: str(number) for number, key in enumerate(PROCEDURES, 1)}

_FULL: Final = (
    "names",
    "n",
    "bc",
    "gap",
    "interval",
    "log_e",
    "required_n",
    "q",
    "decided",
    "resolved",
    "extra",
    "status",
)
_SHORT: Final = (
    "names",
    "n",
    "bc",
    "gap",
    "interval",
    "log_e",
    "required_n",
    "q",
    "decided_short",
    "resolved_short",
    "extra",
    "status",
)


def _without(*keys: str) -> tuple[str, ...]:
    return tuple(key for key in _SHORT if key not in keys)


_LAYOUTS: Final = (
    _FULL,
    _SHORT,
    _without("required_n"),
    _without("required_n", "bc"),
    _without("required_n", "bc", "n"),
    _without("required_n", "bc", "n", "interval"),
    ("names", "gap", "log_e", "q", "decided_short", "extra", "status"),
    ("names", "gap", "log_e", "q", "decided_short", "extra"),
    ("names", "gap", "log_e", "q", "headline", "extra"),
    ("names", "gap", "log_e", "headline", "extra"),
    ("names", "gap", "headline", "extra"),
    ("names", "gap", "headline"),
    ("names", "headline"),
)


class Extra(NamedTuple):
    """A further column of the pair table: its title, and a text for each pair in name order."""

    title: str
    cells: Mapping[tuple[str, str], Text]


@dataclass(frozen=True)
class Column:
    """A header, which may have several lines, and one text a row."""

    title: str
    cells: Sequence[Text]
    right: bool = False
    style: str = ""

    @property
    def width(self) -> int:
        """Cells that the column needs."""
        lines = [cell_len(line) for line in self.title.split("\n")]
        return max([*lines, *(cell.cell_len for cell in self.cells)])


def glyphs_for(console: Console) -> Glyphs:
    """Choose signs that the terminal's encoding can show."""
    return ASCII if console.options.ascii_only else UNICODE


def shorten(name: str, room: int, ellipsis: str = "…") -> str:
    """Cut a name in its middle, where names of models differ least, to at most `room` cells."""
    name = form.safe(name)
    if cell_len(name) <= room:
        return name
    head = (room - cell_len(ellipsis) + 1) // 2
    tail = room - cell_len(ellipsis) - head
    if tail <= 0:
        return "".join(chop_cells(name, max(room, 1))[:1])
    return chop_cells(name, head)[0] + ellipsis + chop_cells(name[::-1], tail)[0][::-1]


def table(columns: Sequence[Column], *, ascii_only: bool = False) -> Group:
    """Lay columns out, each exactly as wide as it needs, with one rule under the titles.

    Every width is known, so the lines are put together here: rich's own table measures each cell several times over, too slow for
    a screen that is drawn four times a second.
    """
    widths = [column.width for column in columns]
    titles = [column.title.split("\n") for column in columns]
    depth = max(len(title) for title in titles)
    lines = []
    for level in range(depth):
        parts = [title[level - depth + len(title)] if level >= depth - len(title) else "" for title in titles]
        lines.append(
            _line(columns, widths, [Text(part, column.style) for part, column in zip(parts, columns, strict=True)])
        )
    rule = ("-" if ascii_only else "─") * (sum(widths) + _GAP * (len(widths) - 1))
    lines.append(Text(rule, UNDECIDED, no_wrap=True, overflow="crop"))
    lines.extend(_line(columns, widths, row) for row in zip(*(column.cells for column in columns), strict=True))
    return Group(*lines)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Text]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for column, width, cell in zip(columns, widths, cells, strict=True):
        if line:
            line.append(" " * _GAP)
        space = " " * (width - cell.cell_len)
        if column.right:
            line.append(space).append_text(cell)
        else:
            line.append_text(cell).append(space)
    line.rstrip()
    return line


def width_of(columns: Mapping[str, Column], keys: Sequence[str], but: str = "") -> int:
    """Return the cells that a table of these columns takes, with the gaps between them and without the column `but`."""
    return sum(columns[key].width for key in keys if key != but) + _GAP * (len(keys) - 1)


def first_that_fits(
    columns: Mapping[str, Column],
    layouts: Sequence[tuple[str, ...]],
    width: int,
    at_most: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Choose the first layout that fits, or the last; a column of `at_most` may be shortened to so many cells."""
    for layout in layouts:
        spare = sum(max(0, columns[key].width - most) for key, most in (at_most or {}).items() if key in layout)
        if width_of(columns, layout) - spare <= width:
            return layout
    return layouts[-1]


def models_table(
    models: Sequence[ModelReport], width: int, *, ascii_only: bool = False, low_coverage: float = 0.0
) -> Group:
    """Build the ranking: rank, the ranks that cannot be told from it, tie group, and the mean with its interval.

    A model with scores on less than `low_coverage` of the items is marked beside its name, which every layout shows.
    """
    ranks = [f"{m.rank_low}-{m.rank_high}" if m.rank_low != m.rank_high else str(m.rank_low) for m in models]
    means = [
        f"[{form.percent(m.mean_low)}, {form.percent(m.mean_high)}]" if m.mean_low is not None else form.MISSING
        for m in models
    ]
    columns = {
        "rank": _plain("rank", [str(m.rank) for m in models]),
        "ranks": _plain("ranks", ranks),
        "tie": _plain("tie", [str(m.tie_group) for m in models]),
        "model": Column("model", [_model_name(m, _WHOLE, low_coverage, ascii_only=ascii_only) for m in models]),
        "items": _plain("items", [f"{m.items:,}" for m in models]),
        "coverage": _plain("coverage", [f"{m.coverage:.1%}" for m in models]),
        "mean": _plain("mean %", [form.percent(m.mean) for m in models]),
        "interval": _plain("interval", means),
    }
    layouts = (
        tuple(columns),
        *(tuple(k for k in columns if k not in drop) for drop in ({"coverage"}, {"coverage", "items"})),
    )
    narrow = (("rank", "ranks", "tie", "model", "mean"), ("rank", "model", "mean"), ("rank", "model"))
    keys = first_that_fits(columns, (*layouts, *narrow), width, {"model": 16})
    room = max(4, width - width_of(columns, keys, but="model"))
    names = [_model_name(m, room, low_coverage, ascii_only=ascii_only) for m in models]
    return table([Column("model", names) if key == "model" else columns[key] for key in keys], ascii_only=ascii_only)


def _model_name(model: ModelReport, room: int, low_coverage: float, *, ascii_only: bool) -> Text:
    mark = f" ({model.coverage:.0%})" if model.coverage < low_coverage else ""
    return Text(shorten(model.model, room - len(mark), _ellipsis(ascii_only=ascii_only))).append(mark, HELD)


def pairs_table(
    benchmark: BenchmarkReport, pairs: Sequence[PairReport], console: Console, width: int, extra: Extra | None = None
) -> tuple[Group, bool]:
    """Build the table of pairs.

    Returns
    -------
    table : Group
        Its lines.
    reasons_shown : bool
        Whether there was room for the reason of each pair; where there was not, it has to stand below.
    """
    ascii_only = console.options.ascii_only
    columns = _pair_columns(benchmark, pairs, glyphs_for(console))
    natural = max([4, *(cell_len(form.safe(p.model_a)) + cell_len(form.safe(p.model_b)) + 3 for p in pairs)])
    columns["names"] = Column("pair", [Text(" " * min(natural, _NAME_ROOM))])
    if extra:
        columns["extra"] = Column(
            extra.title, [extra.cells.get(form.in_name_order(p), Text(form.MISSING)) for p in pairs]
        )
    layouts = [tuple(key for key in layout if key in columns) for layout in _LAYOUTS]
    keys = first_that_fits(columns, layouts, width)
    left = width - width_of(columns, keys, but="names")
    columns["names"] = Column("pair", [_names(p, max(9, min(left, natural)), ascii_only=ascii_only) for p in pairs])
    longest = max([0, *(cell_len(form.safe(p.reason)) for p in pairs)])
    room = width - width_of(columns, keys) - _GAP
    reasons_shown = bool(pairs) and room >= max(_REASON_ROOM, longest)
    shown = [columns[key] for key in keys]
    if reasons_shown:
        shown.append(Column("reason", [Text(form.safe(p.reason)) for p in pairs]))
    return table(shown, ascii_only=ascii_only), reasons_shown


def _pair_columns(benchmark: BenchmarkReport, pairs: Sequence[PairReport], glyphs: Glyphs) -> dict[str, Column]:
    alone, family = form.log_thresholds(benchmark)
    log_e_title = f"ln e\n>={family if family is not None else alone:.2f}"
    return {
        "n": _plain("n", [f"{p.n:,}" for p in pairs]),
        "bc": _plain(
            "b/c", [f"{p.b:,}/{p.c:,}" if p.b is not None and p.c is not None else form.MISSING for p in pairs]
        ),
        "gap": _plain("gap\npp", [form.points(p.gap) for p in pairs]),
        "interval": _plain("interval\nat alpha", [form.interval(p.gap_low, p.gap_high) for p in pairs]),
        "log_e": _plain(log_e_title, [form.decimal(p.log_e) for p in pairs]),
        "required_n": _plain("N*\nfixed n", [form.items(p.required_n) for p in pairs]),
        "q": _plain("q\nfix", [form.ratio(p.resolution_ratio) for p in pairs]),
        "decided": Column(f"decided\n{_shorts(PROCEDURES)}", [_decided(p, glyphs, 4) for p in pairs]),
        "decided_short": Column(f"decided\n{_numbers(PROCEDURES)}", [_decided(p, glyphs, 2) for p in pairs]),
        "headline": Column("decided\nFAM", [Text(*form.decision_glyph(p, "anytime_family", glyphs)) for p in pairs]),
        "resolved": Column(f"resolved\n{_shorts(_RESOLUTIONS)}", [_resolved(p, glyphs, 4) for p in pairs]),
        "resolved_short": Column(f"resolved\n{_numbers(_RESOLUTIONS)}", [_resolved(p, glyphs, 2) for p in pairs]),
        "status": Column("status", [_status(p, glyphs) for p in pairs]),
    }


def summary_table(benchmark: BenchmarkReport, width: int, *, ascii_only: bool = False) -> Group:
    """Build the two rows of counts: how many pairs each procedure leaves undecided, and how many unresolved."""
    summary = benchmark.summary
    labels = [Text("undecided (evidence)"), Text("unresolved (q < 1)")]
    columns = [Column(f"of {counted(summary.pairs, 'pair')}", labels)]
    shorts = {key: short for key, (short, _) in PROCEDURES.items()}
    shorts |= {key: short for key, short in form.SUMMARY_ONLY.items() if key in summary.undecided}
    for key, short in shorts.items():
        resolvable = key in _RESOLUTIONS or key in summary.unresolved
        cells = [summary.undecided.get(key, "n/a"), summary.unresolved.get(key, "n/a" if resolvable else "")]
        style = "bold" if key == "anytime_family" else ""
        columns.append(Column(short, [Text(str(cell)) for cell in cells], right=True, style=style))
    while len(columns) > 2 and sum(c.width + _GAP for c in columns) - _GAP > width:
        columns.pop()
    return table(columns, ascii_only=ascii_only)


def legend(glyphs: Glyphs) -> Text:
    """Explain the glyph columns in one paragraph."""
    numbered = ", ".join(f"{_NUMBERS[key]} {short} {name}" for key, (short, name) in PROCEDURES.items())
    text = Text(
        "decided = evidence which model is better; resolved = enough items for a gap of this size (q >= 1). ",
        style=UNDECIDED,
    )
    text.append(glyphs.decided, DECIDED).append(" yes, for the first-named  ")
    text.append(glyphs.reversed, HELD).append(" yes, for the second  ")
    text.append(glyphs.undecided).append(" no  ").append(glyphs.missing).append(" not computed, or not in the family. ")
    return text.append(f"{numbered}; fix, Bon, Hol, BH and clu are valid at a planned n only.")


def _shorts(keys: Iterable[str]) -> str:
    return " ".join(f"{PROCEDURES[key][0]:<3}" for key in keys).rstrip()


def _numbers(keys: Iterable[str]) -> str:
    return " ".join(_NUMBERS[key] for key in keys)


def _plain(title: str, cells: Iterable[str]) -> Column:
    return Column(title, [Text(cell) for cell in cells], right=True)


def _decided(pair: PairReport, glyphs: Glyphs, step: int) -> Text:
    return _row((form.decision_glyph(pair, key, glyphs) for key in PROCEDURES), step)


def _resolved(pair: PairReport, glyphs: Glyphs, step: int) -> Text:
    return _row((form.resolution_glyph(pair, key, glyphs) for key in _RESOLUTIONS), step)


def _row(signs: Iterable[tuple[str, str]], step: int) -> Text:
    text = Text()
    for sign, colour in signs:
        text.append(sign, colour).append(" " * (step - 1))
    text.rstrip()
    return text


def _status(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, word, colour = form.status_glyph(pair, glyphs)
    return Text(f"{glyph} {word}", style=colour)


def _names(pair: PairReport, room: int, *, ascii_only: bool) -> Text:
    """Both names within `room` cells: a short one leaves its share to the other."""
    a, b = form.safe(pair.model_a), form.safe(pair.model_b)
    share = room - 3
    wide_a, wide_b = cell_len(a), cell_len(b)
    if wide_a + wide_b > share:
        room_a = min(wide_a, max(share // 2, share - wide_b))
        ellipsis = _ellipsis(ascii_only=ascii_only)
        a, b = shorten(a, room_a, ellipsis), shorten(b, share - room_a, ellipsis)
    return Text(a).append(f" {form.relation(pair)} ", "bold").append(b)


def _ellipsis(*, ascii_only: bool) -> str:
    return ".." if ascii_only else "…"
