"""Write the scores that contradict an earlier one to a file: CSV, or JSON Lines by the file's suffix."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from monitor.render.csv import cell
from monitor.view.board import BoardView
from monitor.view.items.conflict_rows import conflict_rows
from schemas.results.report import Conflict

JSON_LINES: Final = (".jsonl", ".ndjson")
SUFFIXES: Final = (".csv", *JSON_LINES)

_COLUMNS: Final = ["benchmark", *Conflict.__struct_fields__]


def write_conflicts(benchmarks: Iterable[BoardView], path: Path) -> tuple[int, int]:
    """Write the conflicts of benchmarks, by name; return how many were written, and how many there are."""
    written = total = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        as_lines = path.suffix.lower() in JSON_LINES
        if not as_lines:
            table.writerow(_COLUMNS)
        for benchmark in sorted(benchmarks, key=lambda b: b.name):
            total += benchmark.counters["conflicts"]
            for conflict in conflict_rows(benchmark):
                row = {"benchmark": benchmark.name, **conflict.as_dict()}
                if as_lines:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                else:
                    table.writerow(map(cell, row.values()))
                written += 1
    return written, total
