"""What holds of every stored benchmark: who changes an archive can compute its digests too, but its arrays then contradict each other."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.records import LatchRecords, latch_of
from monitor.engine.state.battles import JUDGE, NO_JUDGE, ORDER, OUTCOME, PAIR, PROMPT, REPEAT, cast_keys, unit_keys
from monitor.engine.state.benchmark import COUNTERS
from monitor.engine.state.stored import StoredBenchmark
from schemas.records.declaration import Spec
from schemas.records.names import name_fault, names_hold
from schemas.records.scores import ABSENT, SCORE_UNIT
from schemas.results.changes import CLAIMS, KINDS
from stats.evidence.eprocess import log_e_value
from stats.evidence.settled import TIE
from stats.numerics.pairs import pair_members

_SLACK = 1e-6  # of logarithms: other processors round differently

Checks = Iterator[tuple[str, object]]  # what is wrong where the second is false; a check may rest on those before it


def contradiction(stored: StoredBenchmark) -> str | None:
    """Return the first field that contradicts the others, and how; None if none does."""
    parts = (checks(stored) for checks in (_names, _scores, _counts, _votes, _latches))
    return next((text for part in parts for text, holds in part if not holds), None)


def _present(stored: StoredBenchmark) -> NDArray[np.int64]:
    return np.array([np.count_nonzero(column != ABSENT) for column in stored.columns], np.int64)


def _named(names: Collection[object]) -> bool:
    listed = [name for name in names if type(name) is str]
    return len(listed) == len(names) and (names_hold(listed) or not any(map(name_fault, listed)))


def _is_declaration(spec: str) -> bool:
    with suppress(ValueError):
        return bool(Spec.model_validate_json(spec))
    return False


def _names(stored: StoredBenchmark) -> Checks:
    yield "spec: no declaration", stored.spec is None or _is_declaration(stored.spec)
    for kind, entries, number in (("rows", stored.rows, "repeat"), ("models", stored.contestants, "epoch")):
        yield f"{kind}: an entry has no name", _named([each[0] for each in entries])
        yield f"{kind}: an entry has no {number}", all(type(each[1]) is int for each in entries)
        yield f"{kind}: an entry comes twice", len({each[:2] for each in entries}) == len(entries)
    yield "models: an epoch is negative", all(each.epoch >= 0 for each in stored.contestants)
    yield "rows: a cluster is no name", _named(list({row.cluster for row in stored.rows} - {None}))


def _scores(stored: StoredBenchmark) -> Checks:
    values, models = stored.values, len(stored.contestants)
    yield "values: a score is not between 0 and 1", all(0 <= each <= SCORE_UNIT for each in values)
    yield "values: a score comes twice", len(set(values)) == len(values)
    yield "scores: not a column a model", len(stored.columns) == models
    yield "scores: more than rows", all(column.size <= len(stored.rows) for column in stored.columns)
    yield "scores: one that values lacks", all(column.max(initial=0) < len(values) + 2 for column in stored.columns)
    pairs = models * (models - 1) // 2
    yield "family: a pair that is not there", np.all(stored.registered < pairs)
    yield "family: a pair comes twice", np.unique(stored.registered).size == stored.registered.size
    yield "peaks: not one number a pair", stored.peaks.size <= pairs and not np.isnan(stored.peaks).any()
    yield "ended: a model that is not there", all(type(k) is int and 0 <= k < models for k in stored.ended)
    seen, last, same, _ = stored.arrival.T
    yield "arrival: not counts of items", seen.size <= models and np.all((same >= 0) & (same <= seen) & (last >= 0))
    yield "arrival: more items than scores", len(stored.votes) or np.all(seen <= _present(stored)[: seen.size])


def _counts(stored: StoredBenchmark) -> Checks:
    counts, models = Counter(stored.counters), len(stored.contestants)
    yield "counters: others than a benchmark has", counts.keys() <= {*COUNTERS}
    yield "counters: not counts", all(type(count) is int and count >= 0 for count in counts.values())
    repeated = [counts["duplicates"], counts["conflicts"]]
    counted, kept = counts["events"] - sum(repeated) - counts["filled"], int(_present(stored).sum()) + len(stored.votes)
    inherits = any(each.epoch for each in stored.contestants)  # a newer epoch may have scores of its base
    fits = counted == kept or (inherits and counted < kept) or stored.run_lines
    yield f"counters: {counted:,} events count, and there are {kept:,} scores", fits
    yield "again: not counts", len(stored.again) <= models and np.all(stored.again >= 0)
    yield "again: more than the counters", np.all(stored.again.sum(axis=0) <= repeated)
    row, model = stored.listed.T[:2]
    yield "conflicts: more than the counters", row.size <= counts["conflicts"]
    yield "conflicts: a row or model that is not there", np.all((row < len(stored.rows)) & (model < models))


def _votes(stored: StoredBenchmark) -> Checks:
    votes, pairs = stored.votes, len(stored.contestants) * (len(stored.contestants) - 1) // 2
    least = {PROMPT: 0, PAIR: 0, JUDGE: NO_JUDGE, OUTCOME: -1, ORDER: -1, REPEAT: 0}
    most = {PROMPT: len(stored.rows), PAIR: pairs, JUDGE: len(stored.judges), OUTCOME: 2, ORDER: 2, REPEAT: 1 << 31}
    for column, name in enumerate(("prompt", "pair", "judge", "outcome", "order", "repeat")):
        given = votes[:, column].astype(np.int64)
        yield f"votes: no such {name}", np.all((given >= least[column]) & (given < most[column]))
    keys = unit_keys(votes), cast_keys(votes)
    order = np.lexsort(keys)
    yield "votes: one comes twice", not np.logical_and(*(np.diff(key[order]) == 0 for key in keys)).any()


def _latches(stored: StoredBenchmark) -> Checks:
    """Check the evidence of each decision at its event: counts of items only grow, and it has met a threshold."""
    present, votes = _present(stored), len(stored.votes)
    for latches in stored.changes.columns:
        assert isinstance(latches, LatchRecords)
        records, terms = latches.records, latches.terms
        yield "terms: one that is not there", np.all(records["terms"] < len(terms))
        if not records.size:
            continue
        pair, claim, kind = latch_of(records["sequence"])
        yield "latches: a pair that is not there", np.all(pair < present.size * (present.size - 1) // 2)
        alpha, graded, mixture, policy = (
            np.array([getattr(each, name) for each in terms])[records["terms"]]
            for name in ("alpha", "graded", "mixture", "policy")
        )
        yield "terms: an alpha that is no error rate", np.all((alpha > 0) & (alpha < 1 / 2))
        n, b, lead, evidence = (records[name] for name in ("n", "b", "lead", "evidence"))
        i, j = pair_members(pair.astype(np.int64))
        shared = votes or np.minimum(present[i], present[j])
        yield "latches: more shared items than scores", np.all((n >= 1) & (n <= shared))
        wins, rest = np.where(graded, 0, b), np.where(graded, 0, b - lead)
        yield "latches: wins and losses that are no counts", np.all((wins >= 0) & (rest >= 0) & (wins + rest <= n))
        yield "latches: a lead beyond the items", np.all(np.abs(lead) <= n * np.where(graded, SCORE_UNIT, 1))
        yield "latches: a negative number of missing items", np.all(records["missing"] >= 0)
        sure = (claim == CLAIMS.index("settled")) & ~np.isfinite(evidence)
        yield (
            "latches: a side that is none",
            np.all(np.isin(records["side"], (1, -1)) | (sure & (records["side"] == TIE))),
        )
        made = np.isin(kind, (KINDS.index("decided"), KINDS.index("settled"))) & ~sure
        threshold = np.where(made, records["threshold"], 0.0)
        yield "latches: a threshold below alpha", np.all(~made | (threshold >= -np.log(alpha) - _SLACK))
        own = made & (claim == CLAIMS.index("anytime"))
        yield "latches: a threshold that is not alpha", np.all(~own | (threshold <= -np.log(alpha) + _SLACK))
        yield "latches: evidence below its threshold", np.all(~made | (evidence >= threshold - _SLACK))
        bets = own & ~graded & (policy == "trusted")
        for name in np.unique(mixture[bets]).tolist():
            some = bets & (mixture == name)
            expected = log_e_value(b[some], (b - lead)[some], name)
            yield "latches: evidence that its counts do not give", np.all(np.abs(evidence[some] - expected) < _SLACK)
