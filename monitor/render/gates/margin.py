"""The answer of a gate with a margin: as text, Markdown, JSON, a JUnit file, GitHub annotations or a figure."""

from collections.abc import Callable, Iterator, Mapping
from html import escape as escape_xml
from typing import Final

from monitor.render import html, markdown
from monitor.render.document import Column, Element, Heading, Note, Notes, Table, numbers, plain, texts
from monitor.render.gates.gate import Case, annotation, junit
from monitor.words.assumptions import clauses
from monitor.words.counts import counted
from monitor.words.gates import ON_UNDECIDED, bound, counts, decisive_gap
from monitor.words.labels import beneath
from monitor.words.numbers import apart, equals, p_value, percent, points, safe
from schemas.records.text import shorten
from schemas.results.assumptions import Assumption, assumes
from schemas.results.gate import GateComparison, GateReport

_WIDTH: Final = 41
_SIGNS: Final = {"pass": "●", "fail": "▼", "undecided": "○", "held": "!", "not_run": "○"}
_LEGEND: Final = "( the gap is above this, o gap, M margin, | no gap"
_COLORS: Final = {"pass": "#0a56ad", "fail": "#99440a", "undecided": "#5c6672", "held": "#99440a"}


def as_text(report: GateReport) -> str:
    """Write the verdict, then each comparison."""
    lines = [safe(report.headline)]
    several = len(report.candidates) > 1
    for candidate in report.candidates if several else []:
        price = "" if candidate.price is None else f", price {candidate.price:g}"
        lines.append(f"  {candidate.verdict}: {safe(candidate.model)}{price}")
    for each in report.comparisons:
        name = f"{safe(each.candidate)} on {safe(each.where)}" if several else safe(each.where)
        lines.append(f"  {name}: {safe(each.reason)}")
        lines += [f"    {line}" for line in _evidence(each, alone=len(report.comparisons) == 1)]
    reach = _reach(report)
    if reach:
        judge = ", j gap by the judge alone" if any(each.labels is not None for each in report.comparisons) else ""
        lines.append(f"  {_LEGEND}{judge}; {_WIDTH} characters are {200 * reach:.3g} points")
        lines += [
            f"    {_line(each, reach)}  {safe(each.candidate)} on {safe(each.where)}"
            for each in report.comparisons
            if each.n
        ]
    lines += [f"  {safe(text)}" for text in (report.risk, *_waits(report)) if text]
    lines.append(f"  family: {report.family}")
    lines += [f"  assumes that {safe(text)}" for text in _assumptions(report)]
    if report.evaluation:
        lines.append(f"  {safe(report.evaluation)}")
    return "\n".join(lines)


def _evidence(c: GateComparison, *, alone: bool) -> list[str]:
    if not c.n:
        return []
    counts = ""
    if c.only_candidate is not None:
        counts = f"; only the candidate right on {c.only_candidate:,}, only the baseline on {c.only_baseline:,}{_by_judge(c)}"
    lines = [
        f"{counted(c.n, 'shared item')}{counts}"
        + (f"; {c.missing:,} {'missing' if c.policy == 'completion' else 'left'}" if c.missing else "")
    ]
    if c.gap is not None:
        means = f"{percent(c.mean_candidate)} % against {percent(c.mean_baseline)} %{_by_judge(c)}"
        lines.insert(0, f"{means}: {bound(c)}")
        lines += [f"the first lost: {', '.join(map(shorten, c.first_lost))}"] * bool(c.first_lost)
    if c.verdict == "fail":
        own = "by people" if c.rule == "labels" else "the pair's own verdict"
        lines.append(_p(c.p_worse, f"of worse, {own}", c, alone=alone))
    elif c.rule != "none":
        missing = "ignored" if assumes(c, "ignored") else "at their worst"
        what = {"exact test": f"exact test, missing items {missing}", "labels": "bets on labels: 1 / the e-value"}.get(
            c.rule, "bets: 1 / the e-value"
        )
        lines.append(_p(c.p_not_worse, f"of the {what}", c, alone=alone))
    if c.labels is not None:
        lines += [safe(line) for line in beneath(c.labels)]
    if c.noise:
        lines.append(f"noise: {c.noise}")
    if c.conflicts:
        lines.append(f"! {safe(c.conflicts)}")
    return lines + [f"! {safe(note)}" for note in c.notes]


def _by_judge(c: GateComparison) -> str:
    """Return what marks a number that is the judge's alone, where labels give the verdict."""
    return "" if c.labels is None else " (judge)"


def _waits(report: GateReport) -> list[str]:
    """Return which flag an undecided gate ends by."""
    return [ON_UNDECIDED[report.on_undecided]] if report.verdict == "undecided" else []


def _p(p: float, of: str, c: GateComparison, *, alone: bool) -> str:
    """Write a p-value with the level that decides the comparison: before its family is counted, unless it is alone."""
    text, alpha = apart(p_value, p, c.alpha)
    return f"{equals('p', text)} {of}; decided {'' if alone else 'on its own '}at p <= {alpha}; order: {c.policy}"


def _assumptions(report: GateReport) -> list[str]:
    """Return what is assumed, with the benchmark where benchmarks differ."""
    where: dict[tuple[Assumption, ...], list[str]] = {}
    for each in report.comparisons:
        made = tuple(map(Assumption.of, each.assumptions))
        if made and each.where not in where.setdefault(made, []):
            where[made].append(each.where)
    texts = ((clauses(made) or "", names) for made, names in where.items())
    return [text if len(where) == 1 else f"{text} ({', '.join(names)})" for text, names in texts]


# --- figure ---------------------------------------------------------------------------------------------------------------------------


def _reach(report: GateReport) -> float:
    """Return half the width of the scale; 0 if there is nothing to draw."""
    drawn = [c for c in report.comparisons if c.gap is not None]
    ends = [abs(x) for c in drawn for x in (c.gap, decisive_gap(c), c.allowed) if x is not None]
    lows = [abs(c.gap_low) for c in drawn if c.gap_low is not None]
    # A bound far away would press everything else into one place.
    return 1.15 * max([*ends, *(min(low, 3 * max(ends)) for low in lows)]) if drawn else 0.0


def _line(c: GateComparison, reach: float) -> str:
    def place(value: float) -> int:
        return round((_WIDTH - 1) / 2 * (1 + max(-1.0, min(1.0, value / reach))))

    cells = [" "] * _WIDTH
    cells[place(0.0)] = "|"
    if c.gap is not None:
        if c.gap_low is not None:
            for k in range(place(c.gap_low), _WIDTH):
                cells[k] = "-" if cells[k] == " " else cells[k]
            cells[place(c.gap_low)] = "("
        cells[place(c.allowed)] = "M"
        cells[place(c.gap)] = "o" if c.labels is None else "j"
        if (gap := decisive_gap(c)) is not None:
            cells[place(gap)] = "o"
    return "".join(cells)


def as_svg(report: GateReport) -> str:
    """Draw each gap with its lower bound, the margin and 0."""
    reach, height, left, width = _reach(report) or 1.0, 26, 330, 420
    rows = []

    def x(value: float) -> float:
        return round(left + width / 2 * (1 + max(-1.0, min(1.0, value / reach))), 1)

    for k, c in enumerate(report.comparisons):
        y = 34 + height * k
        name = f"{c.candidate} on {c.where}"
        name = name if len(name) <= 46 else f"{name[:45]}…"
        rows.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{_xml(name)}</text>')
        rows.append(
            f'<line x1="{x(c.allowed)}" x2="{x(c.allowed)}" y1="{y - 11}" y2="{y + 11}" stroke="#57606a" stroke-dasharray="3 2"/>'
        )
        if c.gap is None:
            continue
        color = _COLORS[c.verdict]
        if c.gap_low is not None:
            rows.append(
                f'<line x1="{x(c.gap_low)}" x2="{left + width}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="4" opacity=".4"/>'
            )
            rows.append(
                f'<line x1="{x(c.gap_low)}" x2="{x(c.gap_low)}" y1="{y - 6}" y2="{y + 6}" stroke="{color}" stroke-width="2"/>'
            )
        marks = []
        if c.labels is not None:
            marks.append(
                (c.gap, f'"none" stroke="{color}" stroke-width="2"><title>{points(c.gap)} points by the judge alone')
            )
        if (gap := decisive_gap(c)) is not None:
            marks.append((gap, f'"{color}"><title>{points(gap)} points: {c.verdict}'))
        rows += [f'<circle cx="{x(at)}" cy="{y}" r="5" fill={drawn}</title></circle>' for at, drawn in marks]
    bottom = 34 + height * len(report.comparisons)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {bottom + 12}" font-family="sans-serif" font-size="12" '
        f'role="img"><title>{_xml(report.headline)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<line x1="{x(0)}" x2="{x(0)}" y1="18" y2="{bottom - 10}" stroke="#24292f"/>'
        f'<text x="{x(0)}" y="12" text-anchor="middle">no gap</text>'
        f'<text x="{x(report.comparisons[0].allowed)}" y="12" text-anchor="middle">margin</text>'
        f'{"".join(rows)}<text x="{left}" y="{bottom + 4}">{points(-reach)}</text>'
        f'<text x="{left + width}" y="{bottom + 4}" text-anchor="end">{points(reach)} points</text></svg>\n'
    )


def _xml(text: str) -> str:
    return escape_xml(safe(text))


# --- documents ------------------------------------------------------------------------------------------------------------------------


def as_markdown(report: GateReport) -> str:
    """Write the verdict, the bound next to what was allowed, and what it rests on: for a job summary or a comment."""
    return markdown.write(_document(report))


def as_html(report: GateReport) -> str:
    """Write the same as a page that loads nothing."""
    return html.page(report.headline, f"<main>{html.write(_document(report))}</main>")


def _document(report: GateReport) -> Iterator[Element]:
    rows = report.comparisons
    yield Heading(f"{_SIGNS[report.verdict]} {report.headline[:1].upper()}{report.headline[1:]}")
    yield _table(report) if report.verdict != "not_run" else _margins(report)
    if any(each.price is not None for each in report.candidates):
        priced = sorted(report.candidates, key=lambda each: (each.price is None, each.price, each.model))
        prices = ("-" if each.price is None else f"{each.price:g}" for each in priced)
        yield Notes(
            [Note(f"{c.verdict}, price {price}", c.model) for c, price in zip(priced, prices, strict=True)], "facts"
        )
    alone = len(rows) == 1
    shown = [c for c in rows if report.verdict != "not_run" or c is rows[0]]
    results = [(" ".join(filter(None, (counts(c) if c.n else None, _news(c, alone=alone)))), c) for c in shown]
    if alone:
        yield plain(*(text for text, _ in results if text))
    else:
        yield Notes([Note(text, f"{c.candidate} on {c.where}") for text, c in results if text], "facts")
    yield plain(*filter(None, (report.risk, *_waits(report))))
    notes = [Note(f"{c.noise}.", f"Noise on {c.where}") for c in rows if c.noise]
    notes += [Note(" ".join(beneath(c.labels)), f"Labels on {c.where}") for c in rows if c.labels is not None]
    notes += [Note(c.conflicts, f"On {c.where}") for c in rows if c.conflicts]
    notes += [Note(note, f"On {c.where}") for c in rows for note in c.notes]
    notes += [Note(f"{report.family}.", "Family"), *(Note(f"Assumes that {text}.") for text in _assumptions(report))]
    if report.evaluation:
        notes.append(Note(f"{report.evaluation[:1].upper()}{report.evaluation[1:]}."))
    yield Notes(notes, "facts")


def _margins(report: GateReport) -> Table:
    rows = report.comparisons[0].facts[0]["margins"]
    return Table(
        {
            "margin": Column("margin, points", texts(f"{100 * size:g}" for size, _ in rows), "number"),
            "items": numbers("items at which equal answers pass", ("-" if n is None else f"{n:,}" for _, n in rows)),
        }
    )


def _table(report: GateReport) -> Table:
    rows = report.comparisons
    failed = [c.verdict == "fail" for c in rows]
    bounded = all((c.gap_high if c.verdict == "fail" else c.gap_low) is not None for c in rows)
    several = len(report.candidates) > 1
    verdicts = texts(f"{_SIGNS[c.verdict]} {c.verdict}" for c in rows)
    columns = {
        "candidate": Column("candidate", texts(c.candidate if several else "" for c in rows)),
        "benchmark": Column("benchmark", texts(c.where for c in rows)),
        "verdict": Column("verdict", verdicts if len(rows) > 1 else texts("" for _ in rows)),
        "mean": numbers(
            "candidate" if several else rows[0].candidate, (f"{percent(c.mean_candidate)}{_by_judge(c)}" for c in rows)
        ),
        "baseline": numbers(report.baseline, (f"{percent(c.mean_baseline)}{_by_judge(c)}" for c in rows)),
        "gap": numbers("gap", (f"{points(c.gap)}{_by_judge(c)}" for c in rows)),
        "people": numbers("with labels", ("" if c.labels is None else points(decisive_gap(c)) for c in rows)),
        "low": numbers("at least", ("" if high else points(c.gap_low) for c, high in zip(rows, failed, strict=True))),
        "high": numbers("at most", (points(c.gap_high) if high else "" for c, high in zip(rows, failed, strict=True))),
        "allowed": numbers("allowed", (points(c.allowed) for c in rows)),
        "n": numbers("items", (f"{c.n:,}" for c in rows)),
        "p": numbers("p", ("" if bounded else _p_value(c) for c in rows)),
    }
    return Table({key: column for key, column in columns.items() if any(cell.text for cell in column.cells)})


def _news(c: GateComparison, *, alone: bool) -> str:
    """Return the reason of a comparison; nothing where the headline and the table show it already."""
    codes = {each["code"] for each in c.facts}
    plain_pass = codes == {"not_worse"} and not any(each["worse"] or each["decided_at"] for each in c.facts)
    return "" if alone and (plain_pass or (codes == {"worse"} and c.facts[0]["beyond"])) else c.reason


def _p_value(c: GateComparison) -> str:
    return apart(p_value, c.p_worse if c.verdict == "fail" else c.p_not_worse, c.alpha)[0]


def as_json(report: GateReport) -> str:
    """Write every field; `rankwatch schema gate` describes them."""
    return report.as_json().decode()


def as_junit(report: GateReport) -> str:
    """Write a JUnit file with one test a candidate, with its reasons; an undecided one fails unless `on_undecided` is pass."""
    size = f"{100 * report.margin:g}"
    margin = f"{size} {'%' if report.relative else 'point' if size == '1' else 'points'}"
    cases = []
    for each in report.candidates:
        mine = [c for c in report.comparisons if c.candidate == each.model]
        verdict = report.verdict if report.verdict == "not_run" else each.verdict
        failed = verdict in {"fail", "not_run"} or (verdict != "pass" and report.on_undecided != "pass")
        reasons = [c.reason if c.gap is None else f"{bound(c)}; {c.reason}" for c in mine]
        texts_of = [f"{c.where}: {reason}" for c, reason in zip(mine, reasons, strict=True)]
        lines = [verdict, *texts_of, f"family: {report.family}"]
        name = f"{each.model} not worse than {report.baseline} by more than {margin}"
        message = f"{verdict}: {reasons[0]}"
        cases.append(Case("rankwatch.gate", name, "\n".join(lines), verdict if failed else "", message))
    return junit("rankwatch gate", cases)


def as_github(report: GateReport) -> str:
    """Write one workflow command: a notice, a warning or an error."""
    level = {"pass": "notice", "undecided": "warning"}.get(report.verdict, "error")
    return annotation(level, "rankwatch gate", as_text(report))


RENDERERS: Final[Mapping[str, Callable[[GateReport], str]]] = {  # by format
    "text": as_text,
    "markdown": as_markdown,
    "html": as_html,
    "json": as_json,
    "junit": as_junit,
    "github": as_github,
    "svg": as_svg,
}
