"""Simulate the sequential gate through its own code, and keep pass rates, false passes and items for the documentation.

    nice -n 19 python -m tests.calibration.gate [--runs 2000]

Items are independent; the candidate differs from the baseline on a share of them, with a mean gap of 0 or of exactly the margin. Each run
commits to an order of its own and evaluates block after block, as `gate --run` does with a command.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.app.gated_evaluation import Plan, default_block, evaluate
from monitor.report.gates.along_order import Question, first_decision
from monitor.report.gates.margin import Margin
from stats.order import committed_order

KEPT = Path(__file__).with_name("gate.json")
ITEMS = 1319
MARGIN = 0.03
WINDOW = 200
QUESTION = Question("made", "candidate", "baseline", Margin(MARGIN))
IDS = [f"item-{k}" for k in range(ITEMS)]
CASES = {
    f"{share:.0%} discordant, {name}": (share, gap)
    for share in (0.04, 0.13)
    for name, gap in (("equal models", 0.0), ("worse by exactly the margin", -MARGIN))
}


def draw(discordance: float, gap: float, run: int) -> NDArray[np.int64]:
    """Return the differences of the items of a run, in the order of `IDS`."""
    rng = np.random.default_rng([run, round(1e4 * discordance), round(-1e4 * gap)])
    return rng.choice([1, -1, 0], ITEMS, p=[(discordance + gap) / 2, (discordance - gap) / 2, 1 - discordance])


def simulate(discordance: float, gap: float, run: int) -> tuple[str, int]:
    """Return the verdict of a run, and the items that were evaluated: the decision of the gate, rounded up to its blocks."""
    d = draw(discordance, gap, run)[committed_order(f"run {run}", IDS)]
    for stop in (*range(WINDOW, ITEMS, WINDOW), ITEMS):
        decision = first_decision(
            (d[:stop] >= 0) * 1.0, (d[:stop] <= 0) * 1.0, QUESTION, stop - (stop % WINDOW or WINDOW)
        )
        if decision is not None:
            block = default_block(ITEMS)
            return decision[0], min(-(-decision[1] // block) * block, ITEMS)
    return "undecided", ITEMS


def by_blocks(discordance: float, gap: float, run: int) -> tuple[str, int]:
    """Return the same from the loop of `gate --run`, block after block."""
    d = draw(discordance, gap, run)
    candidate = dict(zip(IDS, (d >= 0).astype(float).tolist(), strict=True))
    baseline = dict(zip(IDS, (d <= 0).astype(float).tolist(), strict=True))
    plan = Plan.of([QUESTION], IDS, f"run {run}")
    answer = evaluate(plan, QUESTION, baseline, [], lambda _, ids: {item: candidate[item] for item in ids})
    return answer.verdict, answer.n


def measure(discordance: float, gap: float, runs: int) -> dict[str, Any]:
    """Simulate runs, and count their verdicts and items."""
    found = [simulate(discordance, gap, run) for run in range(runs)]
    verdicts = [verdict for verdict, _ in found]
    items = np.array([n for _, n in found])
    return {
        "runs": runs,
        "pass": verdicts.count("pass"),
        "fail": verdicts.count("fail"),
        "undecided": verdicts.count("undecided"),
        "median": float(np.median(items)),
        "quartiles": np.quantile(items, [0.25, 0.75]).tolist(),
    }


def main() -> int:
    """Run every case, and keep what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.gate", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="runs of each case (2,000)")
    arguments = parser.parse_args()
    kept = {}
    for name, (discordance, gap) in CASES.items():
        kept[name] = measure(discordance, gap, arguments.runs)
        print(name, kept[name], flush=True)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
