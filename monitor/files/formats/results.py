"""What the results of any harness have in common: a metric, its direction and scale, failures, repeats and clusters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from monitor.files.formats.choices import FAILED_SKIP
from monitor.files.formats.log_file import LogFile
from schemas.records.text import Fault


class Result(NamedTuple):
    """What a harness recorded of one item and one model."""

    benchmark: str
    model: str
    item: str
    # by the name of the metric: a number, a boolean, text that is one of these, or None for an item that was not scored
    values: Mapping[str, object] = {}
    repeat: int = 0
    tags: Mapping[str, object] = {}  # properties of the item; one of them is its cluster
    failure: str | None = None  # why there is no score, where the run failed and not the model
    number: int = 1  # the place in the file, from 1, as rejects name it
    part: str | None = (
        None  # of a benchmark with several subtasks, each with ids of its own: a cluster, and the first part of the item's name
    )
    epoch: int = 0


class ResultColumns(NamedTuple):
    """Results of one model that have the same fields, by column: faster than a `Result` each, where a file has little else."""

    benchmark: str
    model: str
    items: Sequence[str]
    values: Mapping[str, Sequence[object]]  # as in `Result`, for each item
    tags: Mapping[str, Sequence[object]] = {}  # likewise; one may be `Derived` from the items
    repeats: Sequence[int] | None = None  # 0 by default
    numbers: Sequence[int] | None = None  # the places in the file; from 1 on by default
    part: str | None = None

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Result]:
        """Return results one by one."""
        for k in range(start, len(self.items) if stop is None else min(stop, len(self.items))):
            yield Result(
                self.benchmark,
                self.model,
                self.items[k],
                {name: column[k] for name, column in self.values.items()},
                self.repeats[k] if self.repeats is not None else 0,
                {name: column[k] for name, column in self.tags.items()},
                number=self.numbers[k] if self.numbers is not None else k + 1,
                part=self.part,
            )


class Run(NamedTuple):
    """What a file records of a run: its item count, the version of its data, and a name that other files of the run share."""

    benchmark: str
    model: str
    items: int | None = None
    version: object = None
    name: str | None = None


Single = Result | Run | Fault
Entry = Single | ResultColumns


@dataclass(frozen=True)
class Tool:
    """A harness: what its files hold, and what counts in them unless an option chooses otherwise."""

    name: str  # as notes name it, with its article: "a log of promptfoo"
    # returns what a whole file holds; it raises `Broken` where the file breaks off, and `Refusal` for a file that is not read
    read: Callable[[LogFile], Iterable[Entry]] | None = None
    # returns for a file a callable that returns what each record of it holds: for files of a record a line, which grow
    lines: Callable[[LogFile], Callable[[Any], Iterable[Entry]]] | None = None
    record: type = dict  # the fields of a record that are read
    metrics: tuple[str, ...] = ()  # those that count, the first of them that a file has; else the first one by name
    scale: Mapping[str, float] = field(default_factory=dict)  # the largest value of a metric, where it is not 1
    lower: frozenset[str] = frozenset()  # lower values of these metrics are better
    failed: str = FAILED_SKIP  # whether failures are skipped or count as 0, as in the tool's own result
    cluster: str | None = None  # the tag that is the cluster, before those with usual names
    partial: bool = False  # whether one record has some of the metrics of an item, and others have the rest
