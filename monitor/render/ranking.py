"""The ranking, declared once: a row a model with its step to the next, for every surface."""

from collections.abc import Sequence

from monitor.render.charts import mean_bar, tie_lanes
from monitor.render.document import Cell, Column, Kind, Table, texts
from monitor.render.signs import HELD, UNDECIDED, UNICODE, Glyphs
from monitor.render.signs import step as step_sign
from monitor.view.values import TieBands
from monitor.words import battles
from monitor.words import numbers as form
from monitor.words.columns import ranks, repeats, step
from monitor.words.kinds import words_of
from schemas.results.battles import RatingReport
from schemas.results.report import BenchmarkReport, ModelReport, PairReport


def ranking(
    b: BenchmarkReport,
    low_coverage: float,
    *,
    ties: TieBands | None = None,
    tied: Sequence[Sequence[int]] | None = None,
    skipped: Sequence[int] | None = None,
    glyphs: Glyphs = UNICODE,
    limit: int | None = None,
    marked: bool = True,
    drawn: bool = False,
) -> Table:
    """Build the ranking of the first models; names are `marked` by a low coverage, and a page has ties and intervals `drawn`."""
    models = b.models[:limit]
    head = words_of(b).heads
    columns: dict[str, Column] = {}

    def put(key: str, cells: Sequence[Cell], kind: Kind = "number") -> None:
        columns[key] = Column(head[key], cells, kind)

    if tied is not None:
        put("ties", _ties(tied[: len(models)], ties, drawn=drawn), "drawing" if drawn else "text")
    put("rank", texts(str(m.rank) for m in models))
    put("ranks", [Cell(ranks(m), "bold") for m in models])
    put("model", [_name(m, low_coverage if marked else 0.0) for m in models], "name")
    rated = None if b.battles is None else {each.model: each for each in b.battles.ratings}
    put("score", texts(form.percent(m.mean) if rated is None else battles.rating(rated[m.model]) for m in models))
    put("interval", _intervals(models, rated, drawn=drawn), "text" if drawn else "number")
    steps = steps_of(b)
    if steps:
        below = [steps.get(m.model) for m in models]
        signs = [Cell("") if p is None else Cell(*step_sign(p, glyphs)) for p in below]
        columns["decided"] = Column(head["decided"], signs, "sign")
        put("step", _steps(below), "text")
    if rated is None:
        put("items", texts(f"{m.items:,}" for m in models))
        if skipped is not None and any(skipped):
            put("skipped", texts(f"{count:,}" for count in skipped[: len(models)]))
        put("coverage", [Cell(f"{m.coverage:.1%}", HELD if m.coverage < low_coverage else "") for m in models])
    else:
        put("won", texts(form.percent(m.mean) for m in models))
        put("items", texts(f"{rated[m.model].prompts:,}" for m in models))
        put("island", texts(str(rated[m.model].island) for m in models))
    for key, cells in _extras(b.models).items():
        put(key, texts(cells[: len(models)]))
    rules = () if ties is None else ties.rules
    return Table(columns, rules=frozenset(k for k in rules if k < len(models) - 1))


def steps_of(b: BenchmarkReport) -> dict[str, PairReport]:
    """Return the step from each model to the next one, by its model."""
    names = {model.model for model in b.models}
    current = [pair for pair in b.pairs if pair.adjacent and pair.status != "superseded"]
    return {pair.model_a: pair for pair in current if {pair.model_a, pair.model_b} <= names}


def _name(m: ModelReport, low_coverage: float) -> Cell:
    return Cell(m.shown, more=f" {m.coverage:.0%}" if m.coverage < low_coverage else "", more_tone=HELD)


def _ties(tied: Sequence[Sequence[int]], ties: TieBands | None, *, drawn: bool) -> list[Cell]:
    """List the ranks that each model is tied with, or draw the bands with these for those who do not see them."""
    lists = [form.rank_list([k + 1 for k in others]) for others in tied]
    if not drawn or ties is None or ties.bands is None:
        return texts(lists)
    return [Cell("", words=f"tied with ranks: {each}", svg=tie_lanes(ties, k)) for k, each in enumerate(lists)]


def _intervals(models: Sequence[ModelReport], rated: dict[str, RatingReport] | None, *, drawn: bool) -> list[Cell]:
    if rated is None:
        ranges = [form.percent_range(m.mean_low, m.mean_high) for m in models]
        values = [(m.mean_low, m.mean_high, m.mean) for m in models]
    else:
        of = [rated[m.model] for m in models]
        ranges = [battles.rating_range(each) for each in of]
        values = [(each.rating_low, each.rating_high, each.rating) for each in of]
    if not drawn:
        return [Cell(each, UNDECIDED) for each in ranges]
    least = min((low for low, _, _ in values if low is not None), default=0.0)
    most = max((high for _, high, _ in values if high is not None), default=1.0)
    bars = [mean_bar(*each, least=least, most=most) for each in values]
    return [Cell(each, UNDECIDED, svg=bar) for each, bar in zip(ranges, bars, strict=True)]


def _steps(below: Sequence[PairReport | None]) -> list[Cell]:
    """Write the gap of each step, and its verdict or what it needs; gaps are as wide as the widest."""
    gaps = ["" if p is None or p.gap is None else form.points(p.gap).replace("-", "−") for p in below]
    width = max(map(len, gaps), default=0)
    cells = []
    for pair, gap in zip(below, gaps, strict=True):
        if pair is None:
            cells.append(Cell(""))
            continue
        _, tone = step_sign(pair, UNICODE)
        turned = pair.gap is not None and pair.gap < 0
        cells.append(Cell(gap.rjust(width), HELD if turned else "", f" {step(pair)}", more_tone=tone))
    return cells


def _extras(models: Sequence[ModelReport]) -> dict[str, list[str]]:
    """Return the columns that only some rankings need: unweighted and shared results, repeats, which runs have ended."""
    columns = {}
    if any(m.unweighted_rank is not None for m in models):
        columns["unweighted"] = [form.percent(m.unweighted_mean) for m in models]
        columns["unweighted_rank"] = [str(m.unweighted_rank) for m in models]
    if any(m.shared_mean is not None for m in models):
        columns["shared"] = [form.percent(m.shared_mean) for m in models]
        columns["shared_rank"] = [form.MISSING if m.shared_rank is None else str(m.shared_rank) for m in models]
    if any(m.repeats is not None and m.repeats.max > 1 for m in models):
        columns["repeats"] = [repeats(m.repeats) for m in models]
    if len({m.run_ended for m in models}) > 1:
        columns["run"] = ["ended" if m.run_ended else "open" for m in models]
    return columns
