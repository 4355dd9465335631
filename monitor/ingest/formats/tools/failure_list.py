"""BFCL: a line of totals, then the items that failed. Every other item of the totals passed."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from monitor.ingest.files.event_lines import Broken, Refusal
from monitor.ingest.formats.documents import read_bytes, text_of
from monitor.ingest.formats.log_file import LogFile
from monitor.ingest.formats.results import Entry, Result, Tool
from schemas.records.text import shorten

_FILE: Final = re.compile(r"(.+?)(?:_score)?\.jsonl?(?:\.gz)?")
_NAMED: Final = re.compile(r"(.+)_(\d+)")
_MOST: Final = 1_000_000
_BENCHMARK: Final = "bfcl"


def read(log: LogFile) -> Iterator[Entry]:
    """Return a score for each item from 1 to the total: 0 if it is listed, else 1."""
    rows = list(_rows(read_bytes(log.path)))
    totals, failed = rows[0], rows[1:]
    total, correct = totals.get("total_count"), totals.get("correct_count")
    if not (isinstance(total, int) and isinstance(correct, int) and 0 <= correct <= total <= _MOST):
        reason = (
            f"the first line needs total_count and correct_count, from 0 to {_MOST:,}; use the file as BFCL writes it"
        )
        raise Refusal("total_count", shorten(total), reason)
    if len(failed) != total - correct:
        raise Broken(f"line 1 counts {total - correct:,} failures, and the file lists {len(failed):,}")
    match = _FILE.fullmatch(log.path.name)
    first = failed[0] if failed else {}
    part = text_of(first.get("test_category")) or (match[1] if match else log.path.stem)
    model = text_of(first.get("model_name")) or log.path.parent.name
    listed = {name: number for number, row in enumerate(failed, 2) if (name := text_of(row.get("id"))) is not None}
    names = _universe(list(listed), total)
    if len(listed) < len(failed) or not listed.keys() <= set(names):
        reason = (
            f"the ids of the failures are not {len(failed):,} of 1 to {total:,}, so the items that passed are not known; "
            "list all items and use --map"
        )
        raise Refusal("id", shorten(next(iter(listed.keys() - set(names)), "an id twice")), reason)
    log.note(f"{len(failed):,} items are listed as failed; the other {correct:,} of {total:,} count as passed")
    for name in names:
        yield Result(_BENCHMARK, model, name, {"valid": name not in listed}, number=listed.get(name, 1), part=part)


def _rows(data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(filter(bytes.strip, data.split(b"\n")), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Broken(f"line {number:,} is cut off or damaged") from error
        if not isinstance(row, dict):
            raise Refusal(
                "record", shorten(row), f"line {number:,} is not a JSON object; use the file as BFCL writes it"
            )
        yield row


def _universe(listed: list[str], total: int) -> list[str]:
    """Return the ids of all items: numbers from 1, or in later versions names that end with numbers from 0."""
    match = _NAMED.fullmatch(listed[0]) if listed else None
    return [f"{match[1]}_{k}" for k in range(total)] if match else [str(k) for k in range(1, total + 1)]


TOOL: Final = Tool("a score file of BFCL", read)
