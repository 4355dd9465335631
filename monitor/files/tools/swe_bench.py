"""SWE-bench: the report of a run (``MODEL.RUN.json``), and the results list of SWE-bench Pro (``eval_results.json``)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from monitor.files.formats.choices import FAILED_SKIP, Derived
from monitor.files.formats.documents import read_document, read_unique, read_verdicts
from monitor.files.formats.log_file import LogFile, model_of
from monitor.files.formats.results import Entry, Result, ResultColumns, Run, Tool
from monitor.files.streams.regular import Refusal
from schemas.records.text import Fault, shorten

_REPOSITORY: Final = re.compile(r"^(?:instance_)?(.+?__.+?)-[0-9a-f].*$", re.MULTILINE)
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
    scored_ids = [item for ids, _ in scored for item in ids]
    verdicts = [resolved for ids, resolved in scored for _ in ids]
    yield _by_column(benchmark, model, scored_ids, verdicts)
    done, number = set(scored_ids), len(scored_ids)
    for ids, failure in failed:
        for item in ids:
            if item not in done:
                number += 1
                done.add(item)
                (repository,) = _repositories([item])
                yield Result(benchmark, model, item, tags={"repository": repository}, failure=failure, number=number)


class Instance(msgspec.Struct):
    """What is read of an instance."""

    resolved: bool


def read_instances(log: LogFile) -> Iterator[Entry]:
    """Return the results of a report of instances: of one each in the logs of a run, in a folder of the model, or of all."""
    found = read_document(log.path, dict[str, Instance], INSTANCES.name)
    read_unique(log.path)  # refuses an instance that comes twice
    folder = log.path.parent
    model = folder.parent.name if folder.name in found else folder.name
    if log.model is None:
        log.notices.kind(log.path, "the model is called like the folder of its instances")
    yield Run("swe-bench", model, name="instance")
    yield _by_column("swe-bench", model, list(found), [each.resolved for each in found.values()])


class First(msgspec.Struct):
    """The report of a run of the first versions: lists of instance ids."""

    resolved: list[str]
    generated: list[str]
    no_generation: list[str] = []


def read_first(log: LogFile) -> Iterator[Entry]:
    """Return the results of a run: resolved counts as 1, any other that was generated, or has no patch, as 0."""
    report = read_document(log.path, First, FIRST.name)
    model = _model(log)
    items = list(dict.fromkeys([*report.resolved, *report.generated, *report.no_generation]))
    resolved = set(report.resolved)
    yield Run("swe-bench", model)
    yield _by_column("swe-bench", model, items, [item in resolved for item in items])


def read_list(log: LogFile) -> Iterator[Entry]:
    """Return the results of a list of instances, each true or false; an instance that is absent has no score."""
    results, others = read_verdicts(log.path)
    model = _model(log)
    pro = next(iter(results or others), "").startswith(_PRO)
    if not pro and log.choices.benchmark is None:
        reason = "the file does not name the benchmark of its ids; add --benchmark NAME"
        raise Refusal("benchmark", "nothing", reason)
    benchmark = "swe-bench-pro" if pro else log.choices.benchmark or ""
    for item, found in others.items():
        yield Fault("resolved", shorten(found), f"{shorten(item)} is neither true nor false; use one of these")
    yield _by_column(benchmark, model, list(results), list(results.values()))


def _model(log: LogFile) -> str:
    model = model_of(log.path)
    if log.model is None:
        log.note(f"the model is called {shorten(model)}, like the file or its folder")
    return model


def _by_column(benchmark: str, model: str, items: Sequence[str], resolved: Sequence[bool]) -> ResultColumns:
    return ResultColumns(benchmark, model, items, {"resolved": resolved}, {"repository": Derived(items, _repositories)})


def _repositories(items: Sequence[str]) -> list[str | None]:
    """Return the repository in each id, where there is one."""
    text = "\n".join(items)
    found: list[str | None] = _REPOSITORY.findall(text)
    if len(found) == len(items) == text.count("\n") + 1:
        return found
    return [match and match[1] for match in map(_REPOSITORY.fullmatch, items)]


REPORT: Final = Tool("a report of SWE-bench", read_report, failed=FAILED_SKIP, cluster="repository")
TOOL: Final = Tool("results of SWE-bench Pro", read_list, cluster="repository")
INSTANCES: Final = Tool("a report of SWE-bench", read_instances, cluster="repository")
FIRST: Final = Tool("a report of SWE-bench", read_first, cluster="repository")
