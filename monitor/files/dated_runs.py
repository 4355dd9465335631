"""Read results as runs of one model on one benchmark, in the order of their dates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from monitor.files.streams.blocks import BLOCK_BYTES, new_hash
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.paths import SUFFIXES, show
from schemas.records.declaration import ANCHOR
from schemas.records.events import BattleFields, EventFields
from schemas.records.names import name_fault
from schemas.records.packed import Segment
from schemas.records.run_names import date_in, name_of
from schemas.records.text import shorten


class RunFault(ValueError):  # noqa: N818 - named after the input
    """Results that are no runs: two files hold the same scores of one, or they are battles."""


class Scored(NamedTuple):
    """The first score of an item and repeat, and its file."""

    score: float
    source: str


@dataclass
class Run:
    """One run of a model on a benchmark."""

    benchmark: str
    model: str
    name: str  # of the field `run`, else the date in the name of the file or its folder, else the name of the file
    # fresh, anchors: the scores of each item, by repeat
    fresh: dict[str, dict[int, Scored]] = field(default_factory=dict)
    anchors: dict[str, dict[int, Scored]] = field(default_factory=dict)
    duplicates: int = 0
    conflicts: int = 0
    skipped: int = 0

    def means(self, role: str | None = None) -> dict[str, float]:
        """Return the mean score of each item over its repeats."""
        scores = self.anchors if role == ANCHOR else self.fresh
        return {item: sum(each.score for each in of.values()) / len(of) for item, of in scores.items()}

    def by_file(self) -> dict[str, set[tuple[str, int, float]]]:
        """Return what is scored in each file, frozen answers not."""
        found: dict[str, set[tuple[str, int, float]]] = {}
        for item, of in self.fresh.items():
            for repeat, (score, source) in of.items():
                found.setdefault(source, set()).add((item, repeat, score))
        return found


class DatedRuns:
    """Collects the runs that files hold; `name` gives the run of a file, also where `by_file` its events name one."""

    def __init__(self, name: Callable[[str], str] = name_of, *, by_file: bool = False) -> None:
        self._name, self._by_file = name, by_file
        self._runs: dict[tuple[str, str, str], Run] = {}
        self._names: dict[str, str] = {}
        self.files: dict[str, Path] = {}  # by the name that segments have
        self.rejected = 0  # lines that cannot be read, of any run
        self.alphas: dict[str, float] = {}  # of the benchmarks that files declare
        self.declaring: dict[str, str] = {}
        """Benchmarks with a declared sentinel, or with a run that ends early, each with its file."""

    def add(self, segment: Segment) -> None:
        """Add the scores of a segment of a file."""
        self.alphas |= {each.declare: each.alpha for each in segment.declarations}
        of_file = self._names.get(segment.path) or self._names.setdefault(segment.path, self._name(segment.path))
        self.declaring |= {each.declare: segment.path for each in segment.declarations if each.drift is not None}
        self.declaring |= {each.ended: segment.path for each in segment.ended if each.state in {"cancelled", "changed"}}
        for event in segment.events:
            self._add(event, segment.path, of_file)

    def _add(self, event: EventFields, source: str, of_file: str) -> None:
        if isinstance(event, BattleFields):
            raise RunFault(
                f"{show(source)}: {shorten(event.benchmark)} holds battles, which score no model on its own; give it scores of items"
            )
        named = not self._by_file and isinstance(event.run, str | int) and str(event.run) != ""
        name = str(event.run) if named else of_file
        key = event.benchmark, event.model, name
        run = self._runs.get(key)
        if run is None:
            # A path that is a name itself is escaped where it is shown.
            if name != source and (fault := name_fault(name)) is not None:
                raise RunFault(f"{show(source)}: the name of its run {fault}; use 1 to 200 printable characters")
            run = self._runs[key] = Run(*key)
        if event.score is None:
            run.skipped += 1
            return
        scores = run.anchors if event.role == ANCHOR else run.fresh
        of_item = scores.setdefault(event.item_id, {})
        score = Scored(float(event.score), source)
        known = of_item.setdefault(event.repeat, score)
        if known is score:
            return
        if known.source != source:
            raise RunFault(
                f"{show(source)}: it holds run {shorten(name)} of {shorten(event.model)} on {shorten(event.benchmark)}, and so does "
                f"{show(known.source)}; give each run its own name: a field run, or a date and time in the name of its file"
            )
        if known.score == score.score:
            run.duplicates += 1
        else:
            run.conflicts += 1

    def sentinels(self) -> dict[tuple[str, str], tuple[list[Run], Literal["date", "appearance"]]]:
        """Return the runs of each benchmark and model, in order: by date where each has one, else as they appeared."""
        found: dict[tuple[str, str], list[Run]] = {}
        for run in self._runs.values():
            found.setdefault((run.benchmark, run.model), []).append(run)
        return {key: _in_order(runs) for key, runs in sorted(found.items())}

    def copied(self, runs: Sequence[Run]) -> tuple[str, str] | None:
        """Return a file of one run of a model that may be a copy, and its original in another: every line, or every score, is there."""
        held: dict[bytes, int] = {}  # by line: a bit for each file
        scored: dict[frozenset[tuple[str, int, float]], str] = {}
        of_file: dict[str, list[set[tuple[str, int, float]]]] = {}
        for run in runs:
            for source, scores in run.by_file().items():
                of_file.setdefault(source, []).append(scores)
        files = [source for source, of in of_file.items() if len(of) == 1]  # a field names the other runs
        lines = [_lines(self.files[source]) for source in files]
        for k, of_run in enumerate(lines):
            held |= {line: held.get(line, 0) | 1 << k for line in of_run}
        for k in reversed(range(len(files))):
            others = ~(1 << k)
            for line in lines[k]:
                others &= held[line]
            first = scored.setdefault(frozenset(of_file[files[k]][0]), files[k])
            if others or _suffix(first) != _suffix(files[k]):
                return files[k], files[(others & -others).bit_length() - 1] if others else first
        return None


_LINES = (*SUFFIXES, ".csv", ".tsv", ".csv.gz", ".tsv.gz")


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def _lines(path: Path) -> set[bytes]:
    """Return a hash of each line without its spaces; of a format without lines, of the contents."""
    stream, found, current = open_stream(path), set[bytes](), new_hash()
    dropped = b" \t\r" if path.name.endswith(_LINES) else b" \t\r\n"
    try:
        while piece := stream.read(BLOCK_BYTES):
            head, *rest = piece.translate(None, dropped).split(b"\n")
            current.update(head)
            for begun in rest:
                found.add(current.digest())
                current = new_hash()
                current.update(begun)
    finally:
        stream.close()
    return (found | {current.digest()}) - {new_hash().digest()}


def _in_order(runs: list[Run]) -> tuple[list[Run], Literal["date", "appearance"]]:
    dates = [date_in(run.name) for run in runs]
    if None in dates:
        return runs, "appearance"
    return [
        run for _, run in sorted(zip(map(str, dates), runs, strict=True), key=lambda pair: (pair[0], pair[1].name))
    ], "date"
