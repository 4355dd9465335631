"""Measure, print tables, and keep them as JSON: ``python -m benchmarks [NAME ...]``."""

import argparse
import json
import logging
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog

from benchmarks import DATA
from benchmarks.harness import Options, Table, environment, load
from benchmarks.tables import markdown, write_page

NAMES = (
    "peers",
    "counting",
    "ingest",
    "packs",
    "boards",
    "start_up",
    "formats",
    "fold",
    "verdicts",
    "battles",
    "evaluation",
    "latency",
    "reading",
    "calls",
    "limit",
    "connected",
    "recovery",
    "cold_start",
    "store",
    "sizes",
    "memory",
    "scale",
    "race",
    "admission",
    "controller",
    "suites",
    "drift",
    "checks",
)
"""The benchmarks: each is a module with a function `measure`, whose docstring describes it."""

RESULTS = Path(__file__).with_name("results")


def options_from(arguments: argparse.Namespace) -> Options:
    """Return the options; `RANKWATCH_DATA` is the folder of real events where no file is named."""
    events = arguments.events
    if events is None and (folder := DATA):
        events = Path(folder) / "mmlu_pro" / "events.jsonl.gz"
    return Options(events, arguments.runs, arguments.quick, arguments.peers, arguments.before)


def run(name: str, options: Options) -> None:
    """Run one benchmark; print and keep its tables one by one."""
    module = import_module(f"benchmarks.{name}")
    result: dict[str, Any] = {
        "benchmark": name,
        "what": (module.__doc__ or "").strip(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load_before": load(),
        "runs": options.runs,
        "quick": options.quick,
        "environment": environment(),
        "tables": [],
    }
    print(f"\n== {name} (load {result['load_before']})", flush=True)
    for table in module.measure(options):
        result["tables"].append(as_json(table))
        print("\n" + markdown(result["tables"][-1]), flush=True)
        result["load_after"] = load()
        if not options.quick:
            keep(name, result)


def keep(name: str, result: dict[str, Any]) -> None:
    """Write a result."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def as_json(table: Table) -> dict[str, Any]:
    """Return a table in the form that is kept."""
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "notes": table.notes,
        "load": load(),
    }


def main() -> None:
    """Read the command line, measure, and write the page when all figures are of full size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "--events", type=Path, help="real events (JSON lines, perhaps gzipped); default: generated events"
    )
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each measurement (default: 5)")
    parser.add_argument("--quick", action="store_true", help="use small sizes to try the benchmarks; keep nothing")
    parser.add_argument("--peers", type=Path, help="Python of an environment with the packages to compare with")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version, which `verdicts` runs in turn")
    parser.add_argument(
        "--page",
        action="store_true",
        help="write docs/explanation/benchmarks.md from the kept results; measure nothing",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: choose of {', '.join(NAMES)}")
    if not arguments.page:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
        options = options_from(arguments)
        for name in arguments.names or NAMES:
            run(name, options)
    if not arguments.quick:
        write_page(RESULTS, NAMES)


if __name__ == "__main__":
    sys.exit(main())
