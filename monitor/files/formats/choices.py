"""Choices on the command line about how logs are read, the same for all commands."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, overload

from schemas.records.text import shorten


class Derived(Sequence[str | None]):
    """The clusters of items whose names hold them: part of the name each, made when somebody asks for it."""

    def __init__(self, items: Sequence[str], derive: Callable[[Sequence[str]], Sequence[str | None]]) -> None:
        self._items, self._derive = items, derive

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._derive(self._items))

    @overload
    def __getitem__(self, place: int) -> str | None: ...
    @overload
    def __getitem__(self, place: slice) -> "Derived": ...
    def __getitem__(self, place: int | slice) -> "str | Derived | None":
        if isinstance(place, slice):
            return Derived(self._items[place], self._derive)
        return self._derive([self._items[place]])[0]


FIELDS: Final = ("benchmark", "item_id", "model", "score", "cluster", "repeat", "epoch", "unit", "run", "role")
"""The fields of an event that a column can hold."""

EVERY_OTHER: Final = "*"  # `models=*`: every other column is a model, with the scores of that model in its cells

MODELS_SEPARATOR: Final = "|"  # `models=a|b`: these columns are models

FAILED_SKIP: Final = "skip"
FAILED_ZERO: Final = "zero"  # `--failed`: items whose run failed are skipped, or count as 0

SWAP_MEAN: Final = "mean"
SWAP_AGREE: Final = "agree"  # `--swap-rule`: two games count by their mean, or as a tie unless both agree

LOWER: Final = ":lower"  # the end of a metric, or column, where less is better: it counts as one minus its value

NONE: Final = "none"  # `--cluster none`: no clusters, even if the log has some

CLUSTER_FIELDS: Final = ("cluster", "category", "subject", "topic", "domain")
"""Usual names of the field that holds an item's cluster; the first of them in the item counts."""


_CHOOSERS: Final = ("metric", "filter", "scorer")


class ChoiceError(ValueError):
    """A choice that is not valid."""


class Selection:
    """A name to choose, for every benchmark or for one.

    >>> metric = Selection("--metric", ["acc", "gsm8k=exact_match"])
    >>> metric.of("gsm8k"), metric.of("mmlu")
    ('exact_match', 'acc')
    """

    def __init__(self, option: str, entries: Iterable[str] = ()) -> None:
        self._option = option
        self._names: dict[str | None, str] = {}
        self.asked: set[str] = set()  # benchmarks for which a name was looked up
        for entry in entries:
            benchmark, equals, name = entry.rpartition("=")
            if not name or (equals and not benchmark):
                raise ChoiceError(f"{option} {entry}: a name is missing; use NAME or BENCHMARK=NAME")
            key = benchmark if equals else None
            if self._names.setdefault(key, name) != name:
                which = f"{option} of {shorten(benchmark)}" if equals else option
                raise ChoiceError(
                    f"{which} is given twice, as {shorten(self._names[key])} and {shorten(name)}; give it once"
                )

    def __bool__(self) -> bool:
        """Return whether anything is chosen."""
        return bool(self._names)

    def of(self, *benchmarks: str) -> str | None:
        """Return the name chosen for the first of some benchmarks that has one (a task, then its group), or None."""
        if not self._names:
            return None
        self.asked.update(benchmarks)
        return next((self._names[name] for name in (*benchmarks, None) if name in self._names), None)

    def unmatched(self) -> dict[str, str]:
        """Return each entry of a benchmark that was never looked up, with that benchmark.

        >>> metric = Selection("--metric", ["acc", "gsm8k=exact_match"])
        >>> metric.of("mmlu"), metric.unmatched()
        ('acc', {'--metric gsm8k=exact_match': 'gsm8k'})
        """
        names = self._names.items()
        return {f"{self._option} {key}={name}": key for key, name in names if key is not None and key not in self.asked}


@dataclass(frozen=True)
class Choices:
    """Everything that can be chosen about how logs are read."""

    # metric, filter: of lm-evaluation-harness; a metric that ends with ``:lower`` counts as one minus its value
    metric: Selection = field(default_factory=lambda: Selection("--metric"))
    filter: Selection = field(default_factory=lambda: Selection("--filter"))
    # of Inspect: a scorer, or ``SCORER.KEY`` of one that gives several values
    scorer: Selection = field(default_factory=lambda: Selection("--scorer"))
    # the field of a document or of a sample's metadata that holds its cluster; `NONE` for no clusters
    cluster: str | None = None
    # the name of the benchmark: instead of the task's in a native log, and for tables without one
    benchmark: str | None = None
    # from the fields of an event to the columns of a table, or the fields of a JSON object (dotted if nested)
    columns: Mapping[str, str] = field(default_factory=dict)
    subtasks: bool = False  # whether the subtasks of a group of lm-evaluation-harness are benchmarks of their own
    # the largest score, by which every number that is a score is divided; or the smallest and the largest, as ``1:5``
    scale: Selection = field(default_factory=lambda: Selection("--scale"))
    follow_symlinks: bool = False  # whether links are followed out of a folder
    # whether items whose run failed are skipped (`FAILED_SKIP`) or count as 0 (`FAILED_ZERO`); as in the harness's own result if None
    failed: str | None = None
    map: str | None = None  # the path of a file with mappings (`mapping`), which comes before those next to the results
    split: Selection = field(default_factory=lambda: Selection("--split"))  # of HELM: the split of the data
    swap_rule: str | None = None  # of two games of one pair in both orders: `SWAP_MEAN` by default, or `SWAP_AGREE`
    lower: bool = False  # whether less is better in the column of scores, so that each counts as one minus its value
    title: str | None = None  # the model of a table that has a score and no column for models: its path

    @classmethod
    def parse(
        cls,
        *,
        metric: Iterable[str] = (),
        filter: Iterable[str] = (),  # noqa: A002 - the name of the option
        scorer: Iterable[str] = (),
        cluster: str | None = None,
        benchmark: str | None = None,
        columns: Iterable[str] = (),
        subtasks: bool = False,
        scale: Iterable[str] = (),
        follow_symlinks: bool = False,
        failed: str | None = None,
        map: str | None = None,  # noqa: A002 - the name of the option
        split: Iterable[str] = (),
        swap_rule: str | None = None,
    ) -> Self:
        """Parse the options of the command line; raise `ChoiceError` if one is not valid."""
        if failed not in {None, FAILED_SKIP, FAILED_ZERO}:
            raise ChoiceError(f"--failed {failed}: use {FAILED_SKIP} or {FAILED_ZERO}")
        if swap_rule not in {None, SWAP_MEAN, SWAP_AGREE}:
            raise ChoiceError(f"--swap-rule {swap_rule}: use {SWAP_MEAN} or {SWAP_AGREE}")
        parsed = parse_columns(columns)
        score = parsed.get("score", "")
        if score.endswith(LOWER) and score != LOWER:
            parsed["score"] = score.removesuffix(LOWER)
        return cls(
            Selection("--metric", metric),
            Selection("--filter", filter),
            Selection("--scorer", scorer),
            cluster,
            benchmark,
            parsed,
            subtasks,
            parse_scale(scale),
            follow_symlinks,
            failed,
            map,
            Selection("--split", split),
            swap_rule,
            lower=parsed.get("score", "") != score,
        )

    def unused(self, *used: str) -> list[str]:
        """Return the given flags that a file does not use, of those that choose among what a log holds.

        >>> Choices.parse(metric=["acc"], cluster="topic").unused("cluster")
        ['--metric']
        >>> Choices.parse(metric=["acc"], scorer=["match"]).unused("scorer", "cluster", "benchmark")
        []
        """
        given = [name for name in (*_CHOOSERS, "cluster", "benchmark", "failed") if getattr(self, name)]
        elsewhere = (*_CHOOSERS, "failed") if set(_CHOOSERS).intersection(used, given) else ("failed",)
        return [f"--{name}" for name in given if name not in {*used, *elsewhere}]

    @property
    def choose_scores(self) -> bool:
        """Whether they choose which of several scores of an item is read, or what a failed run counts.

        >>> Choices.parse(scorer=["match"]).choose_scores, Choices.parse(columns=["model=name"]).choose_scores
        (True, False)
        """
        return bool(
            self.metric
            or self.filter
            or self.scorer
            or self.split
            or self.failed
            or self.swap_rule
            or "score" in self.columns
        )

    def unmatched(self) -> list[tuple[str, str, list[str]]]:
        """Return each choice for a benchmark that no file holds, with its name and the names that the files hold."""
        selections = (self.metric, self.filter, self.scorer, self.scale, self.split)
        return [(entry, name, sorted(each.asked)) for each in selections for entry, name in each.unmatched().items()]

    def scaled(self, score: object, *benchmarks: object) -> object:
        """Return a score on the scale from 0 to 1; any value that is not a number is returned unchanged.

        >>> choices = Choices.parse(scale=["100", "essay=1:5"])
        >>> choices.scaled(85, "quiz"), choices.scaled(True, "quiz"), choices.scaled("?", "quiz")
        (0.85, True, '?')
        >>> choices.scaled(1, "essay"), choices.scaled(4, "essay")
        (0.0, 0.75)
        """
        scale = self.scale.of(*(name for name in benchmarks if isinstance(name, str)))
        if scale is None or isinstance(score, bool) or not isinstance(score, int | float):
            return score
        smallest, largest = ends_of(scale)
        try:
            return (score - smallest) / (largest - smallest)
        except OverflowError:
            return math.inf

    def directed(self, score: object) -> object:
        """Return a score from 0 to 1 where more is better.

        >>> choices = Choices.parse(columns=["score=latency:lower"])
        >>> choices.columns, choices.directed(0.25), choices.directed(True), choices.directed(7)
        ({'score': 'latency'}, 0.75, 0, 7)
        """
        return 1 - score if self.lower and isinstance(score, bool | int | float) and 0 <= score <= 1 else score

    def cluster_field(self, item: Mapping[str, object]) -> str | None:
        """Return the field of an item that holds its cluster, or None.

        >>> Choices().cluster_field({"question": "?", "subject": "law"})
        'subject'
        """
        chosen = self.cluster or self.columns.get("cluster")
        if chosen is not None:
            return None if chosen == NONE else chosen
        return next((name for name in CLUSTER_FIELDS if isinstance(item.get(name), str | int)), None)


def cluster_of(item: object, field: str | None) -> str | None:
    """Return the cluster of an item, or None."""
    return _cluster(item.get(field) if isinstance(item, dict) and field is not None else None)


def clusters_of(values: Sequence[object]) -> Sequence[str | None]:
    """Return the clusters of items, given the values of their field."""
    usual = isinstance(values, Derived) or (set(map(type, values)) == {str} and all(values))
    return values if usual else list(map(_cluster, values))  # type: ignore[return-value]


def _cluster(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and value != "" else None


def parse_scale(entries: Iterable[str]) -> Selection:
    """Parse ``N``, ``LOW:N`` or either after ``BENCHMARK=``, given any number of times."""
    entries = list(entries)
    for entry in entries:
        try:
            smallest, largest = ends_of(entry.rpartition("=")[2])
            good = -math.inf < smallest < largest < math.inf
        except ValueError:
            good = False
        if not good:
            raise ChoiceError(
                f"--scale {entry}: give the largest score, as N or NAME=N, or the smallest and the largest, for example --scale 100 or "
                "--scale 1:5"
            )
    return Selection("--scale", entries)


def ends_of(scale: str) -> tuple[float, float]:
    """Return the smallest and the largest score of a scale."""
    smallest, _, largest = scale.rpartition(":")
    return float(smallest or 0), float(largest)


def parse_columns(entries: Iterable[str]) -> dict[str, str]:
    """Parse ``FIELD=COLUMN,...``, given any number of times.

    >>> parse_columns(["model=system,item_id=question", "score=ok"])
    {'model': 'system', 'item_id': 'question', 'score': 'ok'}
    """
    columns: dict[str, str] = {}
    for entry in (part.strip() for text in entries for part in text.split(",")):
        name, _, column = entry.partition("=")
        if name not in (*FIELDS, "models") or not column:
            fields = ", ".join(FIELDS)
            raise ChoiceError(
                f"--columns {entry}: use FIELD=COLUMN, where FIELD is one of {fields}, or models=A|B, or models={EVERY_OTHER}"
            )
        if name == "models" and not all(each.strip() for each in column.split(MODELS_SEPARATOR)):
            raise ChoiceError(
                f"--columns {entry}: a name is missing; use models=A|B with the columns that are models, or models={EVERY_OTHER} for "
                "every column without a field"
            )
        if columns.setdefault(name, column) != column:
            raise ChoiceError(f"--columns: {name} is given twice, as {columns[name]} and {column}; give it once")
    if "models" in columns and columns.keys() & {"model", "score"}:
        raise ChoiceError("--columns: models replaces model and score; omit those")
    return columns
