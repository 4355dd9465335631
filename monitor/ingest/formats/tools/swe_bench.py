"""SWE-bench: the report of a run (``MODEL.RUN.json``), and the results list of SWE-bench Pro (``eval_results.json``)."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.formats.choices import FAILED_SKIP
from monitor.ingest.formats.documents import read_document, read_unique
from monitor.ingest.formats.log_file import LogFile
from monitor.ingest.formats.results import Entry, Result, Run, Tool
from schemas.records.decode import Fault
from schemas.records.text import shorten

_REPOSITORY: Final = re.compile(r"(?:instance_)?(.+?__.+?)-[0-9a-f]+.*")
_PRO: Final = "instance_"


class Report(msgspec.Struct):
    """The report of a run; the lists are of instance ids."""

    resolved_ids: list[str]
    unresolved_ids: list[str] = []
    empty_patch_ids: list[str] = []
    error_ids: list[str] = []
    infra_failure_ids: list[str] = []
    ambiguous_failure_ids: list[str] = []
    incomplete_ids: list[str] = []
    total_instances: int | None = None


def read_report(log: LogFile) -> Iterator[Entry]:
    """Return the results of a run: resolved counts as 1, unresolved and an empty patch as 0, an error as a failure."""
    report = read_document(log.path, Report, REPORT.name)
    model = log.path.name.removesuffix(".gz").removesuffix(".json").rpartition(".")[0] or log.path.stem
    benchmark = "swe-bench"
    log.note(f"the model is called {shorten(model)}, like the file up to its run")
    if report.empty_patch_ids:
        log.note(f"{len(report.empty_patch_ids):,} empty patches count as 0: they were submitted, and resolve nothing")
    if report.incomplete_ids:
        log.note(f"{len(report.incomplete_ids):,} instances were not submitted; they are missing, and not counted as 0")
    items = report.total_instances
    yield Run(benchmark, model, items if items is not None and items > 0 else None)
    scored = [(report.resolved_ids, True), (report.unresolved_ids, False), (report.empty_patch_ids, False)]
    failed = [
        (report.error_ids, "error"),
        (report.infra_failure_ids, "infra_failure"),
        (report.ambiguous_failure_ids, "ambiguous_failure"),
    ]
    done: set[str] = set()
    number = 0
    for ids, resolved in scored:
        for item in ids:
            number += 1
            done.add(item)
            yield Result(benchmark, model, item, {"resolved": resolved}, tags=_tags(item), number=number)
    for ids, failure in failed:
        for item in ids:
            if item not in done:
                number += 1
                done.add(item)
                yield Result(benchmark, model, item, tags=_tags(item), failure=failure, number=number)


def read_list(log: LogFile) -> Iterator[Entry]:
    """Return the results of a list of instances, each true or false; an instance that is absent has no score."""
    results = read_unique(log.path)
    model = log.path.parent.name
    pro = next(iter(results), "").startswith(_PRO)
    if not pro and log.choices.benchmark is None:
        reason = "the file does not name the benchmark of its ids; add --benchmark NAME"
        raise Refusal("benchmark", "nothing", reason)
    benchmark = "swe-bench-pro" if pro else log.choices.benchmark or ""
    if log.model is None:
        log.note(f"the model is called {shorten(model)}, like the folder")
    for number, (item, resolved) in enumerate(results.items(), 1):
        if isinstance(resolved, bool):
            yield Result(benchmark, model, item, {"resolved": resolved}, tags=_tags(item), number=number)
        else:
            yield Fault("resolved", shorten(resolved), f"{shorten(item)} is neither true nor false; use one of these")


def _tags(item: str) -> dict[str, str]:
    match = _REPOSITORY.fullmatch(item)
    return {"repository": match[1]} if match else {}


REPORT: Final = Tool("a report of SWE-bench", read_report, failed=FAILED_SKIP, cluster="repository")
TOOL: Final = Tool("results of SWE-bench Pro", read_list, cluster="repository")
