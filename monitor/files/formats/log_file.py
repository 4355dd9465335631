"""One file of results, with everything that its reader needs to know."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from monitor.files.formats.choices import Choices
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Refusal
from schemas.records.reading import Reading
from schemas.records.text import Found, shorten

_LISTED_FILES: Final = 20
_RESULTS: Final = "results"  # the benchmark of files of several folders

_SUFFIXES: Final = re.compile(r"(\.(csv|tsv|xlsx|txt|jsonl?|ndjson|ya?ml|parquet|gz))+$", re.IGNORECASE)

_PLAIN: Final = re.compile(
    r"(?:(?:eval|evaluation|all)[_-]?)?(?:results?|reports?|scores?|samples|outputs?|runs?|eval|evaluation)",
    re.IGNORECASE,
)
_OF_RESULTS: Final = re.compile(r"^(?:eval[_-])?results?[_-]|[_-](?:eval[_-])?results?$", re.IGNORECASE)


def table_name(path: Path) -> str:
    """Return the name of a file without the extensions of the formats that are read: any other dot is part of the name.

    >>> table_name(Path("gpt-4.1_eval_results.json")), table_name(Path("runs/llama-3.1-8b.csv.gz"))
    ('gpt-4.1_eval_results', 'llama-3.1-8b')
    """
    return _SUFFIXES.sub("", path.name)


def model_of(path: Path) -> str:
    """Return the model of a file: its name without words such as `results`, else the nearest folder with another name.

    >>> model_of(Path("m1/results/results.json")), model_of(Path("eval/eval_results_gpt5.json"))
    ('m1', 'gpt5')
    """
    for name in (table_name(path), *(folder.name for folder in path.parents)):
        named = _SUFFIXES.sub("", _OF_RESULTS.sub("", name))
        if named and not _PLAIN.fullmatch(named):
            return named
    return path.parent.name


class Title(NamedTuple):
    """The benchmark and model that the path of a table names, where no column does."""

    benchmark: str
    model: str | None  # None for a file on its own: there is nothing to compare it with


def titles(files: Sequence[Path], *, models: bool = True) -> dict[Path, Title]:
    """Return what the paths of named files give: the file is the model, and its folder the benchmark.

    >>> titles([Path("/eval/old.csv"), Path("/eval/new.csv")])[Path("/eval/old.csv")]
    Title(benchmark='eval', model='old')
    >>> titles([Path("/a/scores.csv"), Path("/b/scores.csv")])[Path("/b/scores.csv")]
    Title(benchmark='results', model='b')
    >>> titles([Path("/eval/mmlu.csv")])[Path("/eval/mmlu.csv")]
    Title(benchmark='mmlu', model=None)
    """
    if len(files) == 1:
        return {files[0]: Title(table_name(files[0]), None)}
    folders = {file.parent.name for file in files}
    benchmark = (len({file.parent for file in files}) == 1 and folders.pop()) or _RESULTS
    for name in (table_name, lambda file: file.parent.name) if models else ():
        named = list(map(name, files))
        if len(set(named)) == len(files):
            return {file: Title(benchmark, model) for file, model in zip(files, named, strict=True)}
    return {file: Title(benchmark, None) for file in files}


class Table(Protocol):
    """The columns that were picked of a table."""

    @property
    def description(self) -> str:
        """What was picked."""

    @property
    def choices_used(self) -> tuple[str, ...]:
        """The choices on the command line that the table uses."""


class Notices:
    """Passes on notes about the files, each once, to a callable that takes a sentence."""

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self._report = report
        self._seen: set[str] = set()
        self._files: dict[str, set[Path]] = {}

    def __call__(self, text: str) -> None:
        """Pass on a note."""
        self._once(text, text)

    def file(self, path: Path, text: str) -> None:
        """Pass on a note about a file; of many files with the same note only the first are listed."""
        files = self._files.setdefault(text, set())
        if path in files or len(files) > _LISTED_FILES:
            return
        files.add(path)
        more = len(files) > _LISTED_FILES
        self(f"{show(path)}: {text}" + ("; more files with this note are not listed" if more else ""))

    def kind(self, path: Path, text: str) -> None:
        """Pass on a note about the files of a kind, with the first of them."""
        self._once(text, f"{show(path)}: {text}")

    def choice(self, benchmark: str, text: str) -> None:
        """Pass on what was chosen for a benchmark, unless the same was chosen for another one."""
        self._once(text, f"{shorten(benchmark)}: {text}")

    def _once(self, key: str, text: str) -> None:
        if self._report is not None and key not in self._seen:
            self._seen.add(key)
            self._report(text)


class RunRegistry:
    """Checks that the logs of several runs can be compared: task versions, models, and the text of items."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._versions: dict[str, tuple[object, Path]] = {}
        self._models: dict[tuple[str, str], tuple[str, Path]] = {}
        self._items: dict[tuple[str, str], tuple[bytes, Path]] = {}
        self._differing: set[Path] = set()
        self.chosen: dict[str, dict[str, str]] = {}
        """What the scores of each benchmark are by its earlier files: metric, filter, scorer or judge."""
        self.noted: set[tuple[object, ...]] = set()
        """What was noted of a benchmark, in any file of it: not again for each set of other metrics."""
        self._subsets: dict[str, list[tuple[frozenset[str], Path]]] = {}
        self._differing_items: dict[str, str] = {}
        self._failed: dict[Path, Counter[tuple[str, str]]] = {}
        self._notes: dict[str, list[str]] = {}
        self._news = Found()

    def note(self, benchmark: str, text: str) -> None:
        """Pass on a note about a benchmark, which its report shows too."""
        notes = self._notes.setdefault(benchmark, [])
        if text not in notes:
            notes.append(text)
            self._news.notes.setdefault(benchmark, []).append(text)
        self._notices.choice(benchmark, text)

    def choose(self, benchmark: str, kind: str, name: str) -> None:
        """Keep which metric, filter, scorer or judge a file is read by; refuse one that an earlier file does not have."""
        known = self.chosen.setdefault(benchmark, {}).setdefault(kind, name)
        if known != name:
            what = kind.partition(":")[0]
            choose = "" if what == "judge" else f"choose {shorten(known)} for this file too with --{what}, or "
            reason = (
                f"an earlier file of {shorten(benchmark)} has the {what} {shorten(known)}, and scores of two are not compared: {choose}"
                f"read the files of each {what} alone, with --benchmark NAME to keep both"
            )
            raise Refusal(what, shorten(name), reason, benchmark)
        self._news.chosen.setdefault(benchmark, {})[kind] = name

    def set_failed(self, path: Path, failed: "Counter[tuple[str, str]]") -> None:
        """Record how many results of a file failed in the run and are skipped, by benchmark and reason."""
        self._failed[path] = failed

    def describe(self, benchmark: str, reading: Reading) -> None:
        """Add what is known of the files of a benchmark to its reading."""
        reading.differing = self._differing_items.get(benchmark, "")
        reading.notes = [*self._notes.get(benchmark, ())]
        failed = Counter[str]()
        for counts in self._failed.values():
            failed.update({reason: count for (name, reason), count in counts.items() if name == benchmark})
        reading.failed = dict(failed.most_common())

    def take_news(self, path: Path) -> Found | None:
        """Return what is new since the last call, and how many results of a file failed; None if there is nothing."""
        news, self._news = self._news, Found()
        for (name, reason), count in self._failed.pop(path, Counter[tuple[str, str]]()).items():
            news.failed.setdefault(name, {})[reason] = count
        return None if news == Found() else news

    def add_run(
        self, path: Path, task: str, model: str, version: object, run: str, benchmark: str | None = None
    ) -> None:
        """Add a run.

        `version` is that of the task, None if the log has none, and `run` the same for the logs of one run and of its retries. The report
        of `benchmark`, by default `task`, has what is noted. Raise `Refusal` if an earlier run has another version: equal ids need not
        mean equal items.
        """
        first, where = self._versions.setdefault(task, (version, path))
        if version is not None and first is None:
            self._versions[task] = (version, path)
        elif version not in (None, first):
            wrong = f"version {shorten(version)} of {shorten(task)}"
            raise Refusal(
                "version",
                wrong,
                f"{wrong} cannot be compared with version {shorten(first)} in {show(where)}; remove one of the files, or give this one "
                "another name with --benchmark NAME",
            )
        known, where = self._models.setdefault((task, model), (run, path))
        if known != run and where != path:
            self.note(
                benchmark or task,
                f"{show(where)} and {show(path)} both hold scores of {shorten(model)}; for the items in both the first "
                "score counts; name one of the files with NAME=PATH (the field model of an upload) to compare them",
            )

    def add_item(self, path: Path, task: str, item: str, text: bytes, benchmark: str | None = None) -> None:
        """Add an item; note if its id has another text in an earlier log.

        `benchmark` is the one in which the two would be one item, if any: no verdict is then given on it.
        """
        known, where = self._items.setdefault((task, item), (text, path))
        if known != text and path not in self._differing:
            self._differing.add(path)
            self._differ(
                task,
                benchmark,
                f"item {shorten(item)} in {show(path)} differs from the one in {show(where)} (others may differ too); "
                "check that both runs use the same data",
            )

    def add_subset(self, path: Path, task: str, items: frozenset[str], benchmark: str) -> None:
        """Add the items that a run chose of its data; note if an earlier run chose others, and neither has all of the other's."""
        subsets = self._subsets.setdefault(benchmark, [])
        for known, where in subsets:
            if path != where and not (known <= items or items <= known):
                self._differ(
                    task,
                    benchmark,
                    f"the logs have different items: {show(where)} {len(known):,} and {show(path)} {len(items):,}, {len(known & items):,} "
                    "of them in both; run both models on the same items (the same limit of the same data in the same order)",
                )
        subsets.append((items, path))

    def _differ(self, task: str, benchmark: str | None, text: str) -> None:
        if benchmark is None:
            self.note(task, text)
            return
        if benchmark not in self._differing_items:
            self._differing_items[benchmark] = self._news.differing[benchmark] = text
        self._notices(f"{shorten(task)}: {text}")


@dataclass(frozen=True)
class LogFile:
    """A file of results."""

    path: Path
    model: str | None  # as named on the command line
    choices: Choices
    runs: RunRegistry
    notices: Notices
    title: Title | None = None  # what the path of a file that the command names gives

    @property
    def table_choices(self) -> Choices:
        """The choices for a table: what no column names, the path of a file that the command names does."""
        if self.title is None:
            return self.choices
        benchmark = self.choices.benchmark or self.title.benchmark
        return replace(self.choices, benchmark=benchmark, title=self.title.model)

    def note_columns(self, columns: "Table") -> None:
        """Pass on which columns of a table were picked, and what names the benchmark."""
        named, rest = self.table_choices.benchmark, ""
        if named and self.choices.benchmark is None and "benchmark" in columns.choices_used:
            rest = f"; benchmark = {shorten(named)}, since no column names it (--benchmark NAME changes it)"
        self.notices(f"{columns.description}{rest}")
        self.note_unused("a table", *columns.choices_used)

    def note(self, text: str) -> None:
        """Pass on a note about the file."""
        self.notices.file(self.path, text)

    def note_unused(self, holds: str, *used: str) -> None:
        """Pass on which flags the file does not use, since it holds events, a table or a log of another harness."""
        flags = self.choices.unused(*used)
        if flags:
            verb = "is" if len(flags) == 1 else "are"
            column = " with the benchmark in a column" if flags == ["--benchmark"] and holds != "events" else ""
            self.notices.kind(
                self.path, f"{', '.join(flags)} {verb} not used for files that hold {holds}{column}, as this one does"
            )

    @property
    def declares_items(self) -> bool:
        """Whether the item count of the log is declared: not for a log that is part of a benchmark of another name."""
        return self.choices.benchmark is None
