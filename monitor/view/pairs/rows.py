"""The rows of a report: each pair with its columns, status and reason."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView, Floats, Sides, json_numbers
from monitor.view.kinds.kind import has_repeats, is_resolved, resolution_ratio
from monitor.view.pairs.clusters import (
    NEIGHBOURS,
    ClusterColumns,
    cluster_resolution_ratio,
    decisions,
    required_n_by_procedure,
)
from monitor.view.pairs.intervals import (
    decision_probability,
    equivalent,
    evidence_columns,
    family_assumption,
    needs_items,
    outside_reasons,
    unlisted,
)
from monitor.view.pairs.table import PairTable
from monitor.view.reasons import PairState, of_pair
from monitor.words.kinds import WORDS
from monitor.words.pairs import Pair, reason
from schemas.results.assumptions import Assumption, flagged, late, late_of, order, sampled
from schemas.results.assumptions import Fact as AssumptionFact
from schemas.results.assumptions import facts as assumed_facts
from schemas.results.changes import PROCEDURES
from schemas.results.reasons import Fact, Outcome, Side
from schemas.results.report import RESOLUTION_PROCEDURES, ClusterReport, PairReport, Status
from stats.evidence.settled import TIE
from stats.numerics.pairs import Index, pair_members

STATUSES: Final[tuple[Status, ...]] = (  # statuses by code, in order of precedence: a pair has the first that applies
    "superseded",
    "invalidated",
    "decided",
    "equivalent",
    "held",
    "exhausted",
    "collecting",
)

_SIDES: Final[dict[int, Side]] = {1: "a", -1: "b"}
_OUTCOMES: Final[dict[int, Outcome | None]] = {0: None, 1: "a", -1: "b", TIE: "tie"}


def status_codes(table: PairTable, at: Index) -> NDArray[np.int8]:
    """Return the status of some pairs, as an index into `STATUSES`."""
    decided = table.anytime_decisions["anytime_family"][at] != 0
    applies: dict[Status, NDArray[np.bool_] | bool] = {
        "superseded": table.superseded is not None,
        "invalidated": decided & (not table.in_force),
        "decided": decided,
        "equivalent": equivalent(table, at),
        "held": bool(table.held),
        "exhausted": table.pairs.complete[at] | table.pairs.ended[at],
        "collecting": True,
    }
    codes = np.empty(at.shape, np.int8)
    for code in reversed(range(len(STATUSES))):
        some = applies[STATUSES[code]]
        if some is True:
            codes.fill(code)
        elif some is not False:
            codes[some] = code
    return codes


def pair_rows(
    table: PairTable, clusters: ClusterColumns | None, needed: Mapping[str, Floats], at: Index
) -> list[PairReport]:
    """Report some pairs, in the order given; statistics that only rows need are computed for these pairs only."""
    # `needed` is what `required_n_by_procedure` returns of these pairs.
    numbers = _scores(table, at) | evidence_columns(table, at)
    numbers |= {
        "required_n": needed["fixed_n"],
        "resolution_ratio": resolution_ratio(table.pairs.n[at], needed["fixed_n"]),
        "mde": table.kind.mde(at),
        "p_clustered": clusters.p[at] if clusters is not None else np.full(at.size, np.nan),
        "family_threshold": _level(table.log_family_threshold(at), table.pairs.n[at]),
        "needs_items": needs_items(table, at),
        "p_anytime": np.where(table.pairs.n[at] > 0, table.p_anytime(at) if table.kind.bets else np.nan, np.nan),
        "settled_log_e": table.settled_log_e[at],
    }
    columns: dict[str, list[Any]] = {name: json_numbers(values) for name, values in numbers.items()}
    columns["n"] = table.pairs.n[at].tolist()
    columns["b"], columns["c"] = table.kind.counts(at)
    names = [c.model for c in table.benchmark.contestants]
    epochs = [c.epoch for c in table.benchmark.contestants]
    for side, ends in (("a", table.pairs.a[at].tolist()), ("b", table.pairs.b[at].tolist())):
        columns[f"model_{side}"] = [names[k] for k in ends]
        columns[f"epoch_{side}"] = [epochs[k] for k in ends]
    columns["status"] = [STATUSES[code] for code in status_codes(table, at).tolist()]
    chances = json_numbers(decision_probability(table, at))
    columns["decision_probability"] = [
        chance if status == "collecting" else None for chance, status in zip(chances, columns["status"], strict=True)
    ]
    columns["facts"], columns["decided_at_n"] = _facts(table, at, columns)
    pairs = zip(columns["model_a"], columns["model_b"], columns["facts"], strict=True)
    words = WORDS[table.kind.unit]
    columns["reason"] = [reason(facts, Pair(a, b, words)) for a, b, facts in pairs]
    for name in ("items_to_decision", "needs_items"):
        columns[name] = [
            None if status == "decided" else items
            for status, items in zip(columns["status"], columns[name], strict=True)
        ]
    columns["adjacent"] = table.pairs.adjacent[at].tolist()
    columns["settled"] = [_OUTCOMES[side] for side in table.settled[at].tolist()]
    columns["cluster"] = _cluster_rows(table, clusters, at)
    columns["decided"] = _rows(
        {name: side_names(sides, at) for name, sides in decisions(table, clusters).items() if name != NEIGHBOURS}
    )
    columns["resolved"] = _rows(
        {
            name: _resolved(table.pairs.n[at], needed[name]) if name in needed else [None] * at.size
            for name in RESOLUTION_PROCEDURES
        }
    )
    return msgspec.convert(_rows(columns), list[PairReport])


def superseded_rows(benchmark: BoardView) -> list[PairReport]:
    """Report the pairs of older epochs that were decided: a verdict is kept when models are scored again."""
    decided = np.logical_or.reduce([benchmark.latched[name] != 0 for name in PROCEDURES])
    pairs = np.flatnonzero(decided)
    pairs = pairs[benchmark.comparable(pairs)]
    i, j = pair_members(pairs)
    current = benchmark.current()
    old = ~(current[i] & current[j]) if pairs.size else np.zeros(0, bool)
    if not old.any():
        return []
    place = {benchmark.contestants[k].model: rank for rank, k in enumerate(PairTable(benchmark).ranking.tolist())}
    ranks = np.array([place[c.model] for c in benchmark.contestants], np.int64)
    i, j = i[old], j[old]
    first = ranks[i] < ranks[j]
    table = PairTable(benchmark, superseded=(np.where(first, i, j), np.where(first, j, i)))
    at = np.arange(table.pairs.size)
    return pair_rows(table, None, required_n_by_procedure(table, None, at), at)


def report_assumptions(table: PairTable) -> list[Assumption]:
    """Return what the verdicts of a report assume, without what family-wise ones assume of the models that join."""
    rescored = any(table.benchmark.contestants[k].epoch for k in table.ranking.tolist())
    return assumed_of(table, rescored=rescored, ignored=bool(table.pairs.ignored.any()), worse=_worse(table))


def _worse(table: PairTable) -> set[str]:
    """Return the models that are decided to be worse than another."""
    sides = table.anytime_decisions["anytime"]
    if sides is None or table.benchmark.reading.at_best is None:
        return set()
    worse = np.concatenate([table.pairs.b[sides > 0], table.pairs.a[sides < 0]])
    return {table.benchmark.contestants[k].model for k in worse.tolist()}


def assumed_of(table: PairTable, *, rescored: bool, ignored: bool, worse: Collection[str] = ()) -> list[Assumption]:
    """Return what verdicts of a table assume, for pairs where a model has a newer epoch, or misses items that are ignored."""
    # `worse` are the models that the verdicts call worse.
    benchmark = table.benchmark
    at_best = benchmark.reading.at_best
    against = at_best is not None and benchmark.counters["conflicts"] > 0 and any(each != at_best for each in worse)
    policy = table.kind.policy
    first = order(
        policy,
        None if benchmark.spec.items else table.assumed_items,
        rejected=benchmark.unread,
        listed=benchmark.spec.item_ids is not None,
        units=benchmark.spec.units is not None,
        seed=benchmark.seed,
    )
    if first is None:
        return []
    holds = flagged(
        labelled=benchmark.suite is None and benchmark.spec.weights is not None,
        begun_again=benchmark.begun_again,
        repeated=has_repeats(benchmark),
        rescored=rescored or (benchmark.united is not None and benchmark.united.rescored),
        score_choice=benchmark.has_choice or against,
        ignored=ignored,
        distinct=benchmark.suite is not None,
        composed=benchmark.suite is not None,
    )
    united = benchmark.united is not None and benchmark.united.unit_items is not None
    items = sampled(policy, units=united or benchmark.spec.units is not None)
    return [first, *items, *late(benchmark.spec.declared_late), *holds]


def side_names(sides: Sides | None, at: Index) -> list[Side | None]:
    """Return the better side of some pairs as "a" or "b"; None for an undecided pair, or where nothing was computed."""
    return [None] * at.size if sides is None else [_SIDES.get(side) for side in sides[at].tolist()]


def _level(log_threshold: Floats, n: Index) -> Floats:
    """Return alpha_j of pairs that share items and have a place in their family; nan of others."""
    return np.where(np.isfinite(log_threshold) & (n > 0), np.exp(-log_threshold), np.nan)


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return each row of the columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _scores(table: PairTable, at: Index) -> dict[str, Floats]:
    """Return means, moments and fixed-n tests of some pairs; nan where nothing is shared, or tests need 0/1 scores."""
    means, (gap, sd) = table.kind.means(at), (moment[at] for moment in table.kind.moments)
    columns = {"p_a": means[0], "p_b": means[1], "gap": gap, "sd": sd} | table.kind.tests(at, means)
    return {name: np.where(table.pairs.n[at] > 0, values, np.nan) for name, values in columns.items()}


def _cluster_rows(table: PairTable, clusters: ClusterColumns | None, at: Index) -> list[ClusterReport | None]:
    if clusters is None:
        return [None] * at.size
    required_n = np.where(clusters.required_n[at] == 0, np.nan, clusters.required_n[at])
    ratio = cluster_resolution_ratio(table.pairs.n[at], clusters.icc[at], required_n)
    columns: dict[str, list[Any]] = {
        "clusters": clusters.clusters[at].tolist(),
        "icc": json_numbers(clusters.icc[at]),
        "design_effect": json_numbers(clusters.design_effect[at]),
        "required_n": json_numbers(required_n),
        "resolution_ratio": json_numbers(ratio),
        "effective_clusters": json_numbers(clusters.effective[at]),
        "unlabelled": clusters.unlabelled[at].tolist(),
    }
    known = np.isfinite(clusters.icc[at]).tolist()
    rows = zip(*columns.values(), strict=True)
    return [
        ClusterReport(**dict(zip(columns, row, strict=True))) if yes else None
        for yes, row in zip(known, rows, strict=True)
    ]


def _facts(table: PairTable, at: Index, columns: dict[str, list[Any]]) -> tuple[list[list[Fact]], list[int | None]]:
    """Return why each pair has its status, and the shared items at which it was decided family-wise."""
    benchmark = table.benchmark
    policy = table.policy
    sides = {name: side_names(table.anytime_decisions[name], at) for name in PROCEDURES}
    missing, left = (
        [None] * at.size if counts is None else counts[at].tolist()
        for counts in (table.pairs.counted_missing, table.pairs.left)
    )
    ended, ignored = table.pairs.ended[at].tolist(), table.pairs.ignored[at].tolist()
    if_ignored = side_names(table.decided_if_ignored(at), np.arange(at.size))
    joined, outside = [each for each in [family_assumption(table)] if each], unlisted(benchmark)
    has_place = table.has_place(at) | (table.pairs.n[at] == 0)
    # In complete files a pair is decided on all its items, not at a latch.
    latches = not table.kind.decides_at_end
    held, waits = table.held, benchmark.spec.repeats == "all"
    names_count = benchmark.reading.at_best is not None  # whether it matters which model a verdict calls worse

    @cache
    def of_claim(rescored: bool, ignored: bool, worse: tuple[str, ...], claim: str) -> list[AssumptionFact]:  # noqa: FBT001 - a key
        made = assumed_of(table, rescored=rescored, ignored=ignored, worse=worse)
        return assumed_facts(late_of([*made, *(joined if claim != "anytime" else ())], claim))

    reasons, decided_at = [], []
    for r, (q, pair) in enumerate(zip(at.tolist(), table.pairs.pair[at].tolist(), strict=True)):
        side = sides["anytime_family"][r]
        epochs = columns["epoch_a"][r], columns["epoch_b"][r]
        family_wise, equal = side is not None, columns["status"][r] == "equivalent"
        better, names = side or sides["anytime"][r], (columns["model_a"][r], columns["model_b"][r])
        # Models that are equivalent are neither of them better.
        worse = names if equal else {"a": names[1:], "b": names[:1], None: ()}[better]
        claim = "equivalent" if equal else "anytime_family" if family_wise else "anytime"
        latched = _latched_at(benchmark, pair, "decided") if latches and side is not None else None
        decided_at.append(None if side is None else latched or columns["n"][r])
        state = PairState(
            status=columns["status"][r],
            n=columns["n"][r],
            wins=columns["b"][r],
            losses=columns["c"][r],
            gap=columns["gap"][r],
            low=columns["gap_family_low"][r],
            high=columns["gap_family_high"][r],
            items_to_decision=columns["items_to_decision"][r],
            needs_items=columns["needs_items"][r],
            decision_probability=columns["decision_probability"][r],
            side=side,
            pair_side=sides["anytime"][r],
            missing=missing[r],
            left=left[r],
            ignored=ignored[r],
            unmet=table.kind.unmet(ended=ended[r], waits=waits and not ended[r]),
            side_if_ignored=if_ignored[r],
            turned_at=_latched_at(benchmark, pair, "reversed") if latches else None,
            outside_family=[] if has_place[r] else outside_reasons(table, q, outside),
            held=held,
            policy=policy,
            has_end=table.kind.has_end,
            alpha=benchmark.spec.alpha,
            assumptions=of_claim(max(epochs) > 0, ignored[r] > 0, tuple(worse) if names_count else (), claim),
            epochs=epochs,
        )
        reasons.append(of_pair(state))
    return reasons, decided_at


def _resolved(n: Index, n_star: Floats) -> list[bool | None]:
    """Return whether each pair is resolved; None where N* is unknown."""
    known = ~np.isnan(n_star)
    return [yes if known else None for yes, known in zip(is_resolved(n, n_star).tolist(), known.tolist(), strict=True)]


def _latched_at(benchmark: BoardView, pair: int, kind: str) -> int | None:
    """Return the shared items at the family-wise change of a kind, or None if there was none."""
    return benchmark.changes.shared_items(benchmark.change_field(pair, "anytime_family", kind))
