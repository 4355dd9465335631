"""Simulate the sequential gate through its own code, and keep pass rates, false passes and items for the documentation.

    nice -n 19 python -m tests.calibration.gate [--runs 2000] [--only one|several]

Items are independent; each candidate differs from the baseline on a share of them, with a mean gap of its own. Each run commits to an order
of its own and evaluates block after block, as `gate --run` does with a command; several candidates have one baseline and one order.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.service.gates.evaluation import Plan, default_block, evaluate, evaluate_all
from monitor.view.gates.along_order import (
    Question,
    compare_along_order,
    evidence_along_order,
    first_claim,
    least_p,
    questions_of,
)
from monitor.view.gates.gate import gate_report
from monitor.view.gates.margin import Margin
from schemas.results.gate import GateComparison, GateReport

KEPT = Path(__file__).with_name("gate.json")
ITEMS = 1319
MARGIN = 0.03
ALPHA = 0.05
WINDOW = 200
IDS = [f"item-{k}" for k in range(ITEMS)]
PLACE = {item: k for k, item in enumerate(IDS)}
RIGHT = 0.6
"""The share of items that the baseline has right."""


@dataclass(frozen=True)
class Case:
    """Candidates, and how they are evaluated.

    Attributes
    ----------
    discordance : float
        Share of the items on which a candidate differs from the baseline.
    gaps : sequence of float
        Mean gap of each candidate, in the order in which they are evaluated.
    cheapest : bool
        Whether the candidates have prices, in this order: the ones after the first that passes are not evaluated.
    budget : int, optional
        Most items of all candidates.
    """

    discordance: float
    gaps: Sequence[float] = (0.0,)
    cheapest: bool = False
    budget: int | None = None

    @property
    def candidates(self) -> list[str]:
        """The names of the candidates."""
        return [f"candidate-{k}" for k in range(len(self.gaps))]


ONE = {
    f"{share:.0%} discordant, {name}": Case(share, (gap,))
    for share in (0.04, 0.13)
    for name, gap in (("equal models", 0.0), ("worse by exactly the margin", -MARGIN))
}
SEVERAL = {
    "4% discordant, all equal": Case(0.04, (0, 0, 0)),
    "all worse by exactly the margin": Case(0.04, (-MARGIN,) * 3),
    "the last one worse by exactly the margin, the others equal": Case(0.04, (0, 0, -MARGIN)),
    "the last one worse by exactly the margin, the others better by a point": Case(0.04, (0.01, 0.01, -MARGIN)),
    "two worse by exactly the margin, the first one equal": Case(0.04, (0, -MARGIN, -MARGIN)),
    "all worse by exactly the margin, a budget of 600 items": Case(0.04, (-MARGIN,) * 3, budget=600),
    "all worse by exactly the margin, the cheapest wanted": Case(0.04, (-MARGIN,) * 3, cheapest=True),
    "the cheapest one worse by exactly the margin, the others equal": Case(0.04, (-MARGIN, 0, 0), cheapest=True),
    "13% discordant, all equal": Case(0.13, (0, 0, 0)),
    "13% discordant, all worse by exactly the margin": Case(0.13, (-MARGIN,) * 3),
}
"""Three candidates of one gate."""


def draw(case: Case, run: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of the baseline and, by candidate, of the others, in the order of `IDS`."""
    rng = np.random.default_rng([run, round(1e4 * case.discordance), *(round(1e4 * (1 + gap)) for gap in case.gaps)])
    baseline = rng.random(ITEMS) < RIGHT
    gaps = np.array(case.gaps)[:, None]
    won, lost = (case.discordance + gaps) / 2 / (1 - RIGHT), (case.discordance - gaps) / 2 / RIGHT
    other = rng.random((len(case.gaps), ITEMS)) < np.where(baseline, lost, won)
    return baseline * 1.0, (baseline ^ other) * 1.0


def plan_of(case: Case, run: int) -> Plan:
    """Return what a run commits to."""
    questions = questions_of("made", case.candidates, "baseline", Margin(MARGIN), ALPHA)
    return Plan.of(questions, IDS, f"run {run}")


def simulate(case: Case, run: int) -> GateReport:
    """Return what `measure` counts of a gate's answer: each candidate's first decision found at once, without bounds and reasons."""
    baseline, candidates = draw(case, run)
    plan = plan_of(case, run)
    order = np.array([PLACE[item] for item in plan.items])
    block = default_block(ITEMS)

    def evaluate_one(question: Question, left: int | None) -> GateComparison:
        x, y = candidates[case.candidates.index(question.candidate)][order], baseline[order]
        most = min(ITEMS, ITEMS if left is None else left)
        path, against = np.zeros(0), np.zeros(0)
        decision = None
        while path.size < most and decision is None:
            stop = min(path.size + WINDOW, most)
            more = evidence_along_order(x[:stop], y[:stop], question.margin, path.size)
            path, against = np.append(path, more[0]), np.append(against, more[1])
            decision = first_claim(path, against, question.alpha)
        verdict, at = decision or ("undecided", most)
        return compare_along_order(x[:0], y[:0], ITEMS, question).replace(
            verdict=verdict,
            n=min(-(-at // block) * block, most),
            p_not_worse=least_p(path[:at]),
            p_worse=least_p(against[:at]),
        )

    return _report(case, evaluate_all(plan, evaluate_one, case.budget, until_pass=case.cheapest))


def by_blocks(case: Case, run: int) -> GateReport:
    """Return the same from the loop of `gate --run`, block after block."""
    baseline, candidates = draw(case, run)
    plan = plan_of(case, run)
    known = dict(zip(IDS, baseline.tolist(), strict=True))

    def evaluate_one(question: Question, left: int | None) -> GateComparison:
        mine = candidates[case.candidates.index(question.candidate)]
        scores = dict(zip(IDS, mine.tolist(), strict=True))
        return evaluate(plan, question, known, [], lambda _, ids: {item: scores[item] for item in ids}, left)

    return _report(case, evaluate_all(plan, evaluate_one, case.budget, until_pass=case.cheapest))


def _report(case: Case, comparisons: Sequence[GateComparison]) -> GateReport:
    prices = {name: float(k) for k, name in enumerate(case.candidates)} if case.cheapest else None
    return gate_report(comparisons, Margin(MARGIN), prices=prices, alpha=ALPHA)


def measure(case: Case, runs: int) -> dict[str, Any]:
    """Simulate runs; count the verdicts of the gate, those of its candidates, and the items of all of them."""
    reports = [simulate(case, run) for run in range(runs)]
    items = np.array([sum(each.n for each in report.comparisons) for report in reports])
    verdicts = [report.verdict for report in reports]
    passed = np.array([[each.verdict == "pass" for each in report.candidates] for report in reports])
    failed = np.array([[each.verdict == "fail" for each in report.candidates] for report in reports])
    beyond = np.array(case.gaps) <= -MARGIN
    return {
        "runs": runs,
        **{verdict: verdicts.count(verdict) for verdict in ("pass", "fail", "undecided")},
        "false_pass": int(passed[:, beyond].any(axis=1).sum()),
        "false_fail": int(failed[:, np.array(case.gaps) >= 0].any(axis=1).sum()),
        "others": int((~beyond).sum()),
        "others_passed": int(passed[:, ~beyond].sum()),
        "median": float(np.median(items)),
        "quartiles": np.quantile(items, [0.25, 0.75]).tolist(),
    }


def main() -> int:
    """Run every case, and keep what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.gate", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="runs of each case (2,000)")
    parser.add_argument("--only", choices=["one", "several"], help="one candidate, or several (both)")
    arguments = parser.parse_args()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for group, cases in (("one", ONE), ("several", SEVERAL)):
        if arguments.only in {None, group}:
            with ProcessPoolExecutor(2) as pool:
                kept[group] = dict(
                    zip(cases, pool.map(partial(measure, runs=arguments.runs), cases.values()), strict=True)
                )
            print(json.dumps(kept[group], indent=1), flush=True)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
