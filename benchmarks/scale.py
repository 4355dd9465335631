"""Scale on paper: 10^9 events of 10,000 benchmarks, and one benchmark of 5,000 models, from the slopes that the other benchmarks measured.

Nothing runs here: every line is a product of kept results, and names them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.events import made_lines
from benchmarks.harness import Options, Table

RESULTS = Path(__file__).with_name("results")
EVENTS, BENCHMARKS, MODELS, ITEMS = 10**9, 10**4, 100, 1_000
"""10,000 benchmarks of 100 models and 1,000 items are 10^9 events."""
WIDE = 5_000
DAY = 86_400


def measure(options: Options) -> Iterator[Table]:  # noqa: ARG001 - it measures nothing
    """Multiply the kept results."""
    service = value("ingest", "K = 29", "rankwatch run, whole", "events/s")
    wide_speed = value("fold", "Fold", 2_000, "pair updates/s")
    pair, cell = value("fold", "Fold", 1_000, "B a pair"), value("fold", "Fold", 1_000, "B an (item, model)")
    memory, file = (
        value("store", "Fold and store", "mmlu_pro", f"B an event, {where}") for where in ("memory", "file")
    )
    snapshot = value("store", "Fold and store", "made: 1,000", "B a pair, snapshot")
    size = sum(map(len, made_lines(29, 100))) / 2_900
    pairs, wide = MODELS * (MODELS - 1) // 2, WIDE * (WIDE - 1) // 2
    state = BENCHMARKS * (pairs * pair + MODELS * ITEMS * cell)
    table = Table("10^9 events (10,000 benchmarks, 100 models, 1,000 items each)", ["what", "from", "value"])
    table.rows += [
        (
            "one worker, all events",
            f"10^9 / {service:,.0f} events/s (ingest, K = 29)",
            f"{EVENTS / service / 3600:.1f} h",
        ),
        ("workers, all in a day", "the same, against 86,400 s", f"{EVENTS / DAY / service:.2f}"),
        ("workers, all in an hour", "the same, against 3,600 s", f"{EVENTS / 3600 / service:.1f}"),
        ("arrays of all workers", f"{pair:g} B a pair, {cell:g} B an (item, model) (fold)", f"{state / 1e9:.1f} GB"),
        (
            "Redis, memory",
            f"{memory:g} B an event (store)",
            f"{EVENTS * memory / 1e9:.1f} GB",
        ),
        (
            "Redis, append-only file before it is rewritten",
            f"{file:g} B an event (store)",
            f"{EVENTS * file / 1e9:.1f} GB",
        ),
        (
            "Redis, snapshots of pair sums",
            f"{snapshot:g} B a pair (store)",
            f"{BENCHMARKS * pairs * snapshot / 1e9:.1f} GB",
        ),
        ("Kafka, one replica, uncompressed", f"{size:.0f} B an event", f"{EVENTS * size / 1e9:.0f} GB"),
    ]
    yield table
    one = Table("One benchmark of 5,000 models on 1,000 items: one worker has all of it", ["what", "from", "value"])
    updates = wide * ITEMS
    one.rows += [
        ("pairs", "5,000 x 4,999 / 2", f"{wide:,}"),
        (
            "arrays",
            f"{pair:g} B a pair, {cell:g} B an (item, model) (fold)",
            f"{(wide * pair + WIDE * ITEMS * cell) / 1e6:.0f} MB",
        ),
        (
            "snapshot",
            f"{snapshot:g} B a pair (store); a string of Redis holds 512 MB",
            f"{wide * snapshot / 1e6:.0f} MB",
        ),
        ("pair updates", "pairs x items", f"{updates:.2g}"),
        (
            "time to fold all",
            f"{wide_speed:,.0f} pair updates/s (fold, K = 2,000, no verdicts)",
            f"{updates / wide_speed:.0f} s",
        ),
    ]
    yield one


def value(benchmark: str, title: str, row: str | float, column: str) -> float:
    """Return a cell of a kept result: of the first table and row whose names begin so, or hold it."""
    result: dict[str, Any] = json.loads((RESULTS / f"{benchmark}.json").read_text(encoding="utf-8"))
    table = next(table for table in result["tables"] if table["title"].startswith(title))
    cells = next(cells for cells in table["rows"] if cells[0] == row or (isinstance(row, str) and row in str(cells[0])))
    return float(cells[table["columns"].index(column)])
