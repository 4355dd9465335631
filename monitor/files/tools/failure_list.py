"""BFCL: a line of totals, then the items that failed. Every other item of the totals passed."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from monitor.files.formats.documents import read_bytes, text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from monitor.files.streams.regular import Broken, Refusal
from schemas.records.text import shorten

_FILE: Final = re.compile(r"(?P<version>BFCL_v\d+_)?(?P<category>.+?)(?:_score)?\.jsonl?(?:\.gz)?")
_GROUPS: Final = frozenset({"agentic", "format_sensitivity", "live", "multi_turn", "non_live"})
"""Folders of later versions between that of the model and its files."""

_NAMED: Final = re.compile(r"(.+?)_(\d+)(?:-[^/]*)?")
"""An id of a later version: the name of the category, and the number of the item; in the live categories more numbers follow."""

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
    part = text_of(first.get("test_category")) or (match["category"] if match else log.path.stem)
    folder = log.path.parent
    model = text_of(first.get("model_name")) or (folder.parent if folder.name in _GROUPS else folder).name
    ids = [text_of(row.get("id")) for row in failed]
    listed = {_item(name): number for number, name in enumerate(ids, 2) if name is not None}
    # Where nothing failed no id is listed: the name of the file gives the version, which gives the ids.
    names = _universe(list(listed) or ([f"{part}_0"] if match and match["version"] else []), total)
    if len(listed) < len(failed) or not listed.keys() <= set(names):
        reason = (
            f"the ids of the failures are not {len(failed):,} of 1 to {total:,}, so the items that passed are not known; "
            "list all items and use --map"
        )
        found = next(iter(listed.keys() - set(names)), "an id twice")
        raise Refusal("id", shorten(found), reason, log.choices.benchmark or _BENCHMARK)
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


def _item(name: str) -> str:
    """Return the id of an item without the numbers that follow its own.

    >>> _item("live_simple_26-6-0"), _item("multiple_3"), _item("7")
    ('live_simple_26', 'multiple_3', '7')
    """
    match = _NAMED.fullmatch(name)
    return f"{match[1]}_{match[2]}" if match else name


def _universe(listed: list[str], total: int) -> list[str]:
    """Return the ids of all items: numbers from 1, or in later versions names that end with numbers from 0."""
    match = _NAMED.fullmatch(listed[0]) if listed else None
    return [f"{match[1]}_{k}" for k in range(total)] if match else [str(k) for k in range(1, total + 1)]


TOOL: Final = Tool("a score file of BFCL", read)
