"""The report of a benchmark, built from its state."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np

from monitor.view.alike import alike_names
from monitor.view.battles import battles_report
from monitor.view.board import BoardView
from monitor.view.items.conflict_rows import counts_by_model
from monitor.view.kinds.kind import repeats_of
from monitor.view.pairs.clusters import (
    cluster_columns,
    clusters_report,
    count_undecided,
    count_unresolved,
    required_n_by_procedure,
)
from monitor.view.pairs.intervals import family_assumption, family_report, pairs_outside
from monitor.view.pairs.rows import pair_rows, report_assumptions, superseded_rows
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import goal_report
from monitor.view.ranking.standings import model_reports, shared_means
from monitor.view.ranking.suite import suite_board
from monitor.view.reasons import of_order, partial, unit_items
from monitor.view.result import result_report
from monitor.words.assumptions import clause, clauses, place
from monitor.words.kinds import WORDS
from monitor.words.order import REFUSED_REMEDY, because
from schemas.records.names import natural
from schemas.records.reading import Refused
from schemas.records.scores import ZERO
from schemas.records.suites import Suite
from schemas.results.assumptions import Assumption, Seed, facts
from schemas.results.report import (
    BenchmarkReport,
    BoardReport,
    OrderReport,
    PairReport,
    RefusedDeclaration,
    RefusedFile,
    Report,
    Summary,
)
from stats.numerics.pairs import pair_count

Which = Literal["adjacent", "all"]

MAX_REPORT_PAIRS: Final = 100_000  # most pairs of a report in memory: a row takes some 10 kB while it is made

BLANK: Final = "blank"  # why a result has no score, unless the files name another reason

_ROWS_AT_ONCE: Final = 2_000


@dataclass(frozen=True)
class ReportView:
    """A report and the table it was made from, for the formats that show more than the report holds."""

    report: BenchmarkReport
    table: PairTable
    parts: Callable[[], Iterator[list[PairReport]]]


def no_parts() -> Iterator[list[PairReport]]:
    """Yield nothing: a report in memory has its rows, and does not keep alive what they were made from."""
    return iter(())


def count_pairs(benchmarks: Iterable[BoardView]) -> int:
    """Return how many pairs a report of some benchmarks lists, if it lists all."""
    return sum(pair_count(len(benchmark.latest_epoch)) for benchmark in benchmarks)


def build_report(
    boards: Mapping[str, BoardView],
    *,
    pairs: Which = "adjacent",
    assert_complete: bool = False,
    suites: Sequence[Suite] = (),
    model: str | None = None,
) -> Report:
    """Report every benchmark, by name."""
    views = report_views(boards, pairs=pairs, assert_complete=assert_complete, suites=suites, model=model)
    return Report(benchmarks=[view.report for view in views])


def report_views(
    boards: Mapping[str, BoardView],
    *,
    pairs: Which,
    assert_complete: bool,
    suites: Sequence[Suite] = (),
    model: str | None = None,
    with_rows: bool = True,
) -> Iterator[ReportView]:
    """Report every suite, then every benchmark by name, with its table; see `build_report` and `table_view`."""
    for suite in suites:
        union = suite_board(suite, boards, assert_complete=assert_complete)
        table = PairTable.of(union, assert_complete=assert_complete)
        yield table_view(table, pairs, with_rows=with_rows)
    hidden = {suite.name for suite in suites}
    for name, benchmark in sorted(boards.items(), key=lambda item: natural(item[0])):
        if name in hidden:
            continue
        table = PairTable.of(benchmark, assert_complete=assert_complete)
        yield table_view(table, pairs, model, with_rows=with_rows)


def benchmark_report(
    benchmark: BoardView, *, pairs: Which = "adjacent", assert_complete: bool = False
) -> BenchmarkReport:
    """Report one benchmark; see `build_report`."""
    return report_view(benchmark, pairs=pairs, assert_complete=assert_complete).report


def report_view(benchmark: BoardView, *, pairs: Which = "adjacent", assert_complete: bool = False) -> ReportView:
    """Report one benchmark, with its table; see `build_report`."""
    return table_view(PairTable.of(benchmark, assert_complete=assert_complete), pairs)


def table_view(table: PairTable, pairs: Which, model: str | None = None, *, with_rows: bool = True) -> ReportView:
    """Report the benchmark of a table."""
    benchmark = table.benchmark
    displayed = np.arange(table.pairs.size) if pairs == "all" else np.flatnonzero(table.pairs.adjacent)
    if model is not None:
        places = [k for k, contestant in enumerate(benchmark.contestants) if contestant.model == model]
        displayed = displayed[np.isin(table.pairs.a[displayed], places) | np.isin(table.pairs.b[displayed], places)]
    clusters = cluster_columns(table, displayed)
    needed = required_n_by_procedure(table, clusters, displayed)

    def parts() -> Iterator[list[PairReport]]:
        table.pairs.listed = displayed.size
        for start in range(0, displayed.size, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            yield pair_rows(table, clusters, {name: values[some] for name, values in needed.items()}, displayed[some])
        if pairs == "all" and model is None:
            yield superseded_rows(benchmark)

    duplicates, conflicts = counts_by_model(benchmark)
    shared, assumptions = shared_means(table), report_assumptions(table)
    assumption, joined = clauses(assumptions), family_assumption(table)
    reading = benchmark.reading
    skipped = skipped_by_model(table)
    report = BenchmarkReport(
        benchmark=benchmark.name,
        alike=alike_names(benchmark),
        differing=reading.differing or None,
        off_scale=reading.off_scale or None,
        refused=_refused(reading.refused),
        refused_elsewhere=_refused(reading.elsewhere),
        skipped=_reasons(sum(skipped.values()), reading.failed),
        skipped_by_model=skipped,
        unread_items=benchmark.unread,
        refused_declarations=[
            RefusedDeclaration(where=place(Seed(each.place, each.file)), field=each.field, reason=each.reason)
            for each in reading.declarations
        ],
        reading=reading.notes,
        items=benchmark.items,
        unit_items=unit_items(benchmark),
        declared_items=benchmark.spec.items if benchmark.committed is None else benchmark.committed.size,
        **cast("Mapping[str, Any]", benchmark.counters),
        conflicts_by_model=conflicts,
        duplicates_by_model=duplicates,
        epochs=sorted({contestant.epoch for contestant in benchmark.contestants}),
        unranked=_unranked(benchmark),
        incomplete=benchmark.incomplete or None,
        partial=because(partial(benchmark)),
        board=board_report(benchmark),
        order=order_report(
            benchmark, asserted=assumptions if table.asserted else None, rests_on_ends=table.rests_on_ends
        ),
        alpha=benchmark.spec.alpha,
        looks="one" if table.one_look else "several",
        power=benchmark.spec.power,
        mixture=table.kind.mixture,
        look=table.kind.look or None,
        family=family_report(table),
        family_outside=pairs_outside(table),
        family_assumption=None if joined is None else clause(joined),
        assumption=assumption,
        assumptions=facts([*assumptions, *([] if joined is None else [joined])]),
        heads=WORDS[table.kind.unit].heads,
        models=model_reports(table, shared),
        shared_items=None if shared is None else shared.items,
        clusters=clusters_report(table, displayed),
        weights=table.kind.weights(table.ranking),
        suite=benchmark.suite_report(table),
        result=result_report(table),
        goal=goal_report(table),
        battles=battles_report(table),
        summary=Summary(
            pairs=displayed.size,
            undecided=count_undecided(table, clusters, displayed),
            unresolved=count_unresolved(table, needed, displayed),
        ),
        pairs=[row for part in parts() for row in part] if with_rows else [],
    )
    return ReportView(report, table, no_parts if with_rows else parts)


def skipped_by_model(table: PairTable) -> dict[str, int]:
    """Count the items without a score of each ranked model that has some, most first."""
    benchmark = table.benchmark
    counts = Counter(
        {benchmark.contestants[k].model: count for k in table.ranking.tolist() if (count := int(benchmark.skipped[k]))}
    )
    return dict(counts.most_common())


def _reasons(skipped: int, failed: Mapping[str, int]) -> dict[str, int]:
    """Return the items without a score by reason: those of runs that failed as the files name it, and blank ones."""
    known = {reason: count for reason, count in failed.items() if skipped}
    blank = skipped - sum(known.values())
    if blank < 0:  # some were scored in another file
        return {"failed": skipped}
    return {**({BLANK: blank} if blank else {}), **known}


def _refused(files: Iterable[Refused]) -> list[RefusedFile]:
    return [RefusedFile(path=each.path, reason=each.reason, remedy=REFUSED_REMEDY) for each in files]


def board_report(benchmark: BoardView) -> BoardReport | None:
    """Report what an operator has done with the board; None while it is as it began."""
    entry = benchmark.board
    if entry is None or entry.state == "deleted":
        return None
    return BoardReport(
        state=entry.state, since=entry.since, generation=entry.generation, title=entry.title or None, note=entry.note
    )


def _unranked(benchmark: BoardView) -> int:
    """Count the scores on items that only an earlier epoch of a model has."""
    codes, count = benchmark.described().item_codes(), 0
    for model, contestants in benchmark.epochs.items():
        if len(contestants) > 1:
            newest = benchmark.newest(model)
            had = (codes[:, contestants] >= ZERO).any(axis=1)
            count += int(np.count_nonzero(had & (codes[:, newest] < ZERO)))
    return count


def order_report(
    benchmark: BoardView, *, asserted: list[Assumption] | None = None, rests_on_ends: bool = False
) -> OrderReport:
    """Report the order policy, what keeps it from giving verdicts, and what is assumed besides it; `asserted` as in `of_order`."""
    repeats = repeats_of(benchmark) if asserted else None
    reasons = of_order(benchmark, repeats, asserted=asserted, rests_on_ends=rests_on_ends)
    return OrderReport(
        policy="completion" if asserted else benchmark.spec.order.policy,
        suspect=benchmark.finding is not None,
        reason=because(reasons),
        facts=reasons,
    )
