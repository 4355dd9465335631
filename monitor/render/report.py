"""Reports as documents: what Markdown and the page hold, in one order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from monitor.render import html, markdown
from monitor.render.document import Column, Element, Heading, Note, Notes, Table, numbers, plain, texts
from monitor.render.pairs import cards, matrix, procedures, sizes, verdicts
from monitor.render.ranking import ranking as make_ranking
from monitor.render.signs import UNICODE, Glyphs, pair_signs, relation, result_sign
from monitor.view.build import ReportView
from monitor.view.pairs.evidence_path import chart_data
from monitor.view.pairs.second_opinions import benchmark_detail
from monitor.view.ranking.standings import tie_bands, tied_with
from monitor.view.values import ChartData, TieBands
from monitor.words import header
from monitor.words import numbers as form
from monitor.words.columns import PROCEDURES
from monitor.words.counts import counted
from monitor.words.flags import named_flags
from monitor.words.header import NO_PAIR, PLANNED, TWO_WORDS
from monitor.words.kinds import suite, words_of
from monitor.words.labels import pair_lines
from monitor.words.reading import first
from schemas.results.battles import JudgeReport
from schemas.results.detail import BenchmarkDetail
from schemas.results.labels import LabelsReport
from schemas.results.report import BenchmarkReport, GoalReport, ModelReport, PairReport


@dataclass(frozen=True)
class ReportDocument:
    """The report of one benchmark with the data of its charts."""

    report: BenchmarkReport
    charts: ChartData
    ties: TieBands
    tied: Sequence[Sequence[int]]  # positions of the models that each model is not decided against
    low_coverage: float  # share of the items below which a model is marked
    detail: BenchmarkDetail | None = None
    several: bool = False  # whether other benchmarks are reported too, each with an alpha of its own

    @property
    def neighbours(self) -> list[PairReport]:
        """Adjacent pairs, by rank."""
        return [pair for pair in self.report.pairs if pair.adjacent]

    @property
    def others(self) -> list[PairReport]:
        """The other pairs of the report, superseded ones last."""
        return [pair for pair in self.report.pairs if not pair.adjacent]

    def is_low(self, model: ModelReport) -> bool:
        """Return whether a model has scores on too few of the items."""
        return model.coverage < self.low_coverage

    def ranking(self, *, drawn: bool = False) -> Table:
        """Build the ranking with its ties."""
        return make_ranking(
            self.report,
            self.low_coverage,
            ties=self.ties,
            tied=self.tied,
            skipped=self.charts.skipped,
            marked=False,
            drawn=drawn,
        )


def document_of(
    view: ReportView, low_coverage: float, *, detail: bool = False, several: bool = False
) -> ReportDocument:
    """Return the document of a report, with the second opinions if `detail`; `several`: other benchmarks are reported too."""
    table = view.table
    return ReportDocument(
        named_flags(view.report),
        chart_data(table),
        tie_bands(table, low_coverage),
        tied_with(table),
        low_coverage,
        benchmark_detail(table) if detail else None,
        several,
    )


def elements(document: ReportDocument, *, drawn: bool) -> Iterator[Element]:
    """Yield the parts of a benchmark's report; a page has them `drawn`, with the figures."""
    b = document.report
    yield Heading(b.benchmark, 2)
    yield from _warnings(first(b))
    yield result(b) or plain(NO_PAIR)
    if b.labels is not None:
        yield Heading("What people prefer")
        yield labels_notes(b.labels)
    if b.goal is not None:
        yield Heading("Run for the goal")
        yield goal_runs(b.goal)
        if b.goal.committed is not None:
            yield plain(b.goal.committed.text)
    yield Heading("Ranking")
    yield plain(_reading(document))
    ranking = document.ranking(drawn=drawn)
    # The table of neighbours has the signs of each step.
    yield ranking.of(key for key in ranking.columns if key not in {"settled", "decided", "resolved"})
    if judges := words_of(b).judges:
        yield Heading("Judges")
        yield _judges(judges)
    low = [model for model in b.models if document.is_low(model)]
    yield from _warnings(header.notes(b, low, document.low_coverage))
    yield Notes([Note(value, name) for name, value in facts(document)], "facts")
    neighbours = document.neighbours
    if not neighbours:
        return
    reach = max((abs(x) for p in neighbours for x in (p.gap_low, p.gap_high) if x is not None), default=1.0) or 1.0
    yield from _verdicts(document, neighbours, "Neighbouring ranks", reach if drawn else None)
    if document.others:
        yield from _verdicts(document, document.others, "Other pairs", reach if drawn else None)
    if drawn:
        yield Heading("Items that a gap of this size needs")
        yield sizes(neighbours, document.charts.pairs)
        yield Heading("Which model is better, pair by pair")
        yield matrix(b, document.charts)
    yield Heading("Procedures side by side")
    yield procedures(b)
    yield Heading("Pair by pair")
    if drawn:
        yield plain(
            "Each chart shows the evidence ln e by shared items, and the thresholds for the pair on its own (pair) and in its family "
            f"(family). {header.PATH_ORDER}"
        )
    details = None if document.detail is None else document.detail.pairs
    yield cards(b, neighbours, document.charts, details, drawn=drawn)


def result(b: BenchmarkReport, glyphs: Glyphs = UNICODE) -> Notes | None:
    """Return the lines of the result, the first ones with their sign; None where no models share an item."""
    lines = [Note(line.text, "", *result_sign(word, line, glyphs)) for word, line in header.result(b)]
    return Notes(lines, "result") if lines else None


def labels_notes(report: LabelsReport) -> Notes:
    """Return what the labels show of each pair, and which of them do not count."""
    rows = [Note(" ".join(pair_lines(pair)), f"{pair.model_a} against {pair.model_b}") for pair in report.pairs]
    return Notes([*rows, *(Note(text) for text in report.notes), Note(report.assumption)], "facts")


def _warnings(notes: Sequence[str]) -> list[Notes]:
    return [Notes([Note(each) for each in notes], "warnings")] if notes else []


def _reading(document: ReportDocument) -> str:
    """Explain what the ranking shows, and no more."""
    ties = document.ties
    threads, drawn = any(ties.lacking.values()), ties.bands is not None
    texts = [
        "Ranks: those that the family-wise verdicts leave open. Ties: the models that no verdict separates from one.",
        *words_of(document.report).reading,
    ]
    if ties.rules:
        texts.append("No tie crosses a line: every model above is decided to be better than every one below.")
    if threads:
        texts.append("A model that lacks items may be tied with those that an orange thread marks.")
    if not drawn:
        texts.append("The ties are too many to draw; their ranks are listed.")
    return " ".join(texts)


def facts(document: ReportDocument) -> list[tuple[str, str]]:
    """Return what was read, what is assumed and at which levels, as (name, value)."""
    b = document.report
    held = b.order.policy == "none" or header.is_held(b)
    why = header.registration(b)
    found = {
        "Read": header.counts(b),
        "Not counted": f"{b.duplicates:,} duplicates, {b.conflicts:,} conflicts, {b.rejected:,} rejected",
        "Skipped": f"{counted(sum(document.charts.skipped), 'item')} without a score, over all models",
        "Order": f"{b.order.policy}: {header.order_sentence(b)}",
        "Family": header.family(b) if why is None else f"{header.family(b)}. {why}",
        "Levels": header.levels(b),
        "Decided at": header.thresholds(b),
        "Error rate": None if held else header.error_rate(b, several=document.several),
        "Clusters": header.clusters(b),
        "Weights": header.weights(b),
        "Suite": " ".join(suite.members(b)) or None,
        "Epochs": header.epochs(b),
        "Titles": header.titles(b),
        "Aliases": header.aliases(b),
    }
    return [(name, value) for name, value in found.items() if value is not None]


def goal_runs(goal: GoalReport, limit: int | None = None) -> Table:
    """Build the table of what each model ran for a goal."""
    heads, rows = header.goal_table(goal)
    cells = list(zip(*rows[:limit], strict=True)) or [()] * len(heads)
    kinds = ["name", *["number"] * (len(heads) - 2), "text"]
    columns = {
        head: Column(head, texts(column), kind)  # type: ignore[arg-type]
        for head, column, kind in zip(heads, cells, kinds, strict=True)
    }
    return Table(
        columns, "Scores and skips that each model ran, and the share of a full run that was not needed so far."
    )


def _judges(judges: Sequence[JudgeReport]) -> Table:
    agree = [form.MISSING if j.agrees is None else f"{j.agrees:.0%} of {j.shared:,}" for j in judges]
    best = [form.MISSING if j.ranking is None else ", ".join(j.ranking[:5]) for j in judges]
    columns = {
        "judge": Column("judge", texts(j.judge for j in judges), "name"),
        "votes": numbers("votes", (f"{j.votes:,}" for j in judges)),
        "agrees": numbers("agrees with others", agree),
        "ranking": Column("its first five", texts(best)),
    }
    return Table(columns)


def _verdicts(
    document: ReportDocument, pairs: Sequence[PairReport], heading: str, reach: float | None
) -> Iterator[Element]:
    yield Heading(heading)
    yield Notes([Note(words, sign=sign, tone=tone) for sign, tone, words in pair_signs(pairs, UNICODE)], "signs")
    yield verdicts(document.report, pairs, reach=reach)
    if reach is None:
        shown = [p for p in pairs if p.adjacent or p.status == "superseded"]
        yield Notes([Note(p.reason, f"{p.model_a} {relation(p)} {p.model_b}") for p in shown], "reasons")


def legend() -> Notes:
    """Explain the words and the procedures of every report."""
    names = "; ".join(f"{each.short}: {each.name}" for each in PROCEDURES.values() if each.short != each.name)
    return plain(
        TWO_WORDS,
        f"{names}. {PLANNED} The headline is the anytime family: its error rate is over all pairs of a benchmark together.",
    )


def render_markdown(documents: Sequence[ReportDocument]) -> str:
    """Write every benchmark under its own heading."""
    if not documents:
        return f"{header.NO_RESULTS}\n"
    parts = [part for document in documents for part in elements(document, drawn=False)]
    return f"{markdown.write(parts)}\n---\n\n{markdown.write([legend()])}"


def render_html(documents: Sequence[ReportDocument]) -> str:
    """Write every benchmark as a section of one page."""
    names = ", ".join(document.report.benchmark for document in documents[:3]) + (", ..." if len(documents) > 3 else "")
    links = "".join(f'<li><a href="#b{k}">{html.text(d.report.benchmark)}</a></li>' for k, d in enumerate(documents))
    nav = f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>' if len(documents) > 1 else ""
    body = "".join(
        f'<section class="benchmark" id="b{k}" aria-labelledby="h{k}">{html.write(elements(document, drawn=True), f"h{k}")}</section>'
        for k, document in enumerate(documents)
    )
    return html.page(
        f"Which ranks are real: {names or 'no results'}",
        f"<header><h1>rankwatch: which ranks are real</h1>{nav}</header><main>{body or f'<p>{header.NO_RESULTS}</p>'}</main>"
        f"<footer>{html.write([legend()])}<p>{header.PATH_ORDER}</p></footer>",
    )
