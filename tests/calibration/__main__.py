"""Run the calibration, and keep its error rates for the documentation.

Each board has random numbers of its own. What an earlier call has kept is not run again.
"""

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from tests.calibration import close_pair
from tests.calibration.cases import CASES, Case, Found, errors_by_family

RATES = Path(__file__).with_name("rates.json")
"""The streams of each case, and those with a false claim in each family."""

BLOCK = 100
"""Streams after which the rates are written."""


def main() -> None:
    """Run what is missing of each case whose name contains all words, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration", description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000, help="streams of each case (2,000)")
    parser.add_argument(
        "--close-pair", type=int, default=0, metavar="ORDERS", help="also measure ranks 5 and 6 of MMLU-Pro"
    )
    parser.add_argument("words", nargs="*", help="only cases whose name contains all of these")
    arguments = parser.parse_args()
    kept = json.loads(RATES.read_text(encoding="utf-8")) if RATES.exists() else {}
    with ProcessPoolExecutor() as processors:
        for name, case in CASES.items():
            if all(word in name for word in arguments.words):
                row = kept.setdefault(name, {"boards": 0, "streams": 0, "errors": {}, "unnamed": 0})
                while row["streams"] < arguments.streams:
                    _add_block(case, row, processors)
                    _write(kept)
                print(f"{name}: {row['errors']} of {row['streams']:,}", flush=True)
    _write(kept)
    if arguments.close_pair:
        measured = close_pair.measure(arguments.close_pair)
        RATES.with_name("close_pair.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def _add_block(case: Case, row: dict[str, Any], processors: Executor) -> None:
    """Fold boards on all processors until there are streams for a block; every board of a case gives equally many."""
    found: Found = []
    boards = 1
    while len(found) < BLOCK:
        for board in processors.map(_board, repeat(case.name), range(row["boards"], row["boards"] + boards)):
            found += board
        row["boards"] += boards
        boards = -(-(BLOCK - len(found)) * row["boards"] // (row["streams"] + len(found)))
    row["streams"] += len(found)
    row["errors"] = dict(sorted((Counter(row["errors"]) + Counter(errors_by_family(found))).items()))
    row["unnamed"] += sum(not case.names(claim) for stream in found for claim in stream)


def _board(name: str, number: int) -> Found:
    """Fold a board of a case: the case itself holds functions, which do not pass from process to process."""
    return CASES[name].board(number)


def _write(kept: dict[str, dict[str, Any]]) -> None:
    """Write the rates in the order of the cases; those of a case that is gone are dropped."""
    rows = {
        name: {**kept[name], "table": case.table, "row": case.row, "column": case.column, "breaks": case.breaks}
        for name, case in CASES.items()
        if name in kept
    }
    RATES.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
