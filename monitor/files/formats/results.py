"""What the results of any harness have in common: a metric, its direction and scale, failures, repeats and clusters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from monitor.files.formats.choices import FAILED_SKIP
from monitor.files.formats.log_file import LogFile
from schemas.records.text import Fault


class Result(NamedTuple):
    """What a harness recorded of one item and one model.

    Attributes
    ----------
    benchmark, model, item : str
    values : mapping
        By the name of the metric: a number, a boolean, text that is one of these, or None for an item that was not scored.
    repeat : int
    tags : mapping
        Properties of the item; one of them is its cluster.
    failure : str or None
        Why there is no score, where the run failed and not the model.
    number : int
        The place in the file, from 1, as rejects name it.
    part : str or None
        The subtask of a benchmark with several, each with ids of its own: a cluster, and the first part of the item's name.
    epoch : int
    """

    benchmark: str
    model: str
    item: str
    values: Mapping[str, object] = {}
    repeat: int = 0
    tags: Mapping[str, object] = {}
    failure: str | None = None
    number: int = 1
    part: str | None = None
    epoch: int = 0


class ResultColumns(NamedTuple):
    """Results of one model that have the same fields, by column: faster than a `Result` each, where a file has little else.

    Attributes
    ----------
    benchmark, model : str
    items : sequence of str
    values, tags : mapping of str to sequence
        As in `Result`, for each item; a tag may be `Derived` from the items.
    repeats : sequence of int, optional
        0 by default.
    numbers : sequence of int, optional
        The places in the file; from 1 on by default.
    part : str, optional
    """

    benchmark: str
    model: str
    items: Sequence[str]
    values: Mapping[str, Sequence[object]]
    tags: Mapping[str, Sequence[object]] = {}
    repeats: Sequence[int] | None = None
    numbers: Sequence[int] | None = None
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
    """A harness: what its files hold, and what counts in them unless an option chooses otherwise.

    Attributes
    ----------
    name : str
        As notes name it, with its article: "a log of promptfoo".
    read : callable, optional
        Returns what a whole file holds. It raises `Broken` where the file breaks off, and `Refusal` for a file that is not read.
    lines : callable, optional
        Returns for a file a callable that returns what each record of it holds: for files of a record a line, which grow.
    record : type
        The fields of a record that are read.
    metrics : tuple of str
        The metrics that count, the first of them that a file has; else the first one by name.
    scale : mapping of str to float
        The largest value of a metric, where it is not 1.
    lower : frozenset of str
        Metrics of which less is better.
    failed : str
        Whether failures are skipped or count as 0, as in the tool's own result.
    cluster : str, optional
        The tag that is the cluster, before those with usual names.
    partial : bool
        Whether one record has some of the metrics of an item, and others have the rest.
    """

    name: str
    read: Callable[[LogFile], Iterable[Entry]] | None = None
    lines: Callable[[LogFile], Callable[[Any], Iterable[Entry]]] | None = None
    record: type = dict
    metrics: tuple[str, ...] = ()
    scale: Mapping[str, float] = field(default_factory=dict)
    lower: frozenset[str] = frozenset()
    failed: str = FAILED_SKIP
    cluster: str | None = None
    partial: bool = False
