"""Replay a gate on past runs: the full run, the exact gate and evidence along committed orders, and equal pairs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from monitor.view.board import Floats
from monitor.view.gates.along_order import evidence_along_order, first_claim
from monitor.view.gates.margin import Margin
from schemas.results.gate import GateVerdict
from schemas.results.gate_replay import Costs, Replay, ReplayedRun, Verdicts
from stats.evidence.margin import excess_p, graded_excess_log_e
from stats.fixed_n.mcnemar import exact_p
from stats.gates.curtail import items_until_certain, old_right_first
from stats.order import committed_order

ORDERS: Final = 20

Scores = Mapping[str, float]  # the mean score of each case


class PastRun(NamedTuple):
    """A run of the archive: its name, and the scores of each model."""

    name: str
    scores: Mapping[str, Scores]


class _Rule(NamedTuple):
    """The verdict of a full run: exact tests where all scores are 0 or 1, else the bets."""

    margin: float
    alpha: float

    def verdict(self, candidate: Floats, baseline: Floats) -> GateVerdict:
        if all(((x == 0) | (x == 1)).all() for x in (candidate, baseline)):
            b, c = int((candidate > baseline).sum()), int((candidate < baseline).sum())
            return _tested(baseline.size, b, c, self.margin, self.alpha)
        return self.bet(candidate, baseline)

    def bet(self, candidate: Floats, baseline: Floats) -> GateVerdict:
        d, need = candidate - baseline, -np.log(self.alpha)
        if float(graded_excess_log_e(d, -self.margin)) >= need:
            return "pass"
        return "fail" if float(graded_excess_log_e(-d, 0.0)) - np.log(2) >= need else "undecided"


@lru_cache(maxsize=100_000)
def _tested(items: int, b: int, c: int, margin: float, alpha: float) -> GateVerdict:
    if float(excess_p(items, b, c, -margin)) <= alpha:
        return "pass"
    return "fail" if c > b and float(exact_p(b, c)) <= alpha else "undecided"


def replay(
    benchmark: str,
    baseline: str,
    candidates: Sequence[str],
    runs: Sequence[PastRun],
    margin: float,
    alpha: float,
    prices: Mapping[str, float] | None = None,
) -> Replay:
    """Replay a gate on each run that has the baseline and a candidate; missing items of a candidate are lost."""
    rule = _Rule(margin, alpha)
    replayed = [
        _replayed(run.name, candidate, *_aligned(run.scores[candidate], run.scores[baseline]), rule)
        for run in runs
        if baseline in run.scores
        for candidate in run.scores
        if candidate != baseline and (not candidates or candidate in candidates)
        if run.scores[candidate].keys() & run.scores[baseline].keys()
    ]
    olds = [run.scores[baseline] for run in runs if baseline in run.scores]
    equal = [(new, old) for old, new in pairwise(olds) if new != old]
    vectors = [_aligned(new, old) for new, old in equal]
    return Replay(
        benchmark=benchmark,
        baseline=baseline,
        margin=margin,
        alpha=alpha,
        orders=ORDERS,
        runs=tuple(replayed),
        equal_pairs=len(vectors),
        equal=_counted(rule.verdict(x, y) for x, y in vectors),
        equal_red=sum(bool(x.mean() < y.mean() - margin - 1e-12) for x, y in vectors),
        costs=None if prices is None else _costs(replayed, prices),
    )


def _costs(runs: Sequence[ReplayedRun], prices: Mapping[str, float]) -> Costs:
    of = [prices[run.candidate] for run in runs]
    items = [[run.items, run.exact_items, run.statistical_items] for run in runs]
    return Costs(*(float(each) for each in np.array(of) @ np.array(items).reshape(-1, 3)))


def _aligned(candidate: Scores, baseline: Scores) -> tuple[Floats, Floats]:
    items = sorted(baseline)
    return np.array([candidate.get(item, 0.0) for item in items]), np.array([baseline[item] for item in items])


def _replayed(name: str, candidate: str, new: Floats, old: Floats, rule: _Rule) -> ReplayedRun:
    # One rule for all of a run: whether scores are means is known once it is over.
    whole = all(((x == 0) | (x == 1)).all() for x in (new, old))
    verdict = rule.verdict if whole else rule.bet
    full, ids = verdict(new, old), [str(k) for k in range(old.size)]
    agrees, certain_at, verdicts, used = 0, [], [], []
    for seed in range(ORDERS):
        order = committed_order(str(seed), ids)
        first = order[old_right_first(old[order])]
        items, found = items_until_certain(new[first], old[first], verdict)
        agrees += found == full
        certain_at.append(items)
        claim = first_claim(*evidence_along_order(new[order], old[order], Margin(rule.margin)), rule.alpha)
        verdicts.append("undecided" if claim is None else claim[0])
        used.append(old.size if claim is None else claim[1])
    return ReplayedRun(
        run=name,
        candidate=candidate,
        items=old.size,
        gap=float(new.mean() - old.mean()),
        full=full,
        exact_agrees=agrees,
        exact_items=float(np.mean(certain_at)),
        statistical=_counted(verdicts),
        statistical_items=float(np.mean(used)),
    )


def _counted(verdicts: Iterable[str]) -> Verdicts:
    found = [*verdicts]
    return Verdicts(found.count("pass"), found.count("fail"), found.count("undecided"))
