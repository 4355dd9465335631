"""Give events an epoch where they carry none: a number, or the one after the newest that their model has.

The epoch of a file is remembered, in a small file next to what was read of it: a restart goes on with it, and another epoch reads the file
again from its start.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.durable import replace_file
from schemas.records.packed import Segment

NEXT: Final = "next"

Newest = Callable[[str], Mapping[str, int]]
"""Returns the newest epoch of each model of a benchmark, before any file is read."""

_VERSION: Final = 1


class Generation(NamedTuple):
    """One reading of files with "next", by number."""

    number: int


class EpochRecord:
    """The epoch of each file, and the newest epochs that each generation comes after."""

    # It is written before the first event of a generation is passed on, so that a restart gives the rest of the generation the same epochs.
    # If it is lost, files go on as if they had been read without an epoch.

    def __init__(self, path: Path | None = None, *, forget: bool = False) -> None:
        self._path = path
        self.files: dict[str, int | Generation] = {}
        self.generations: list[dict[str, dict[str, int]]] = []
        if path is None or forget or not path.exists():
            return
        try:
            self._parse(json.loads(path.read_bytes()))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"{path} is not a record of the epochs of files; delete it, and give --epoch again where you gave it before"
            ) from error

    def _parse(self, data: Any) -> None:  # noqa: ANN401 - JSON of any shape
        if data["version"] != _VERSION:
            raise ValueError("another version")
        self.generations = [{name: dict(newest) for name, newest in each.items()} for each in data["generations"]]
        self.files = {
            file: epoch if isinstance(epoch, int) else Generation(range(len(self.generations))[epoch["generation"]])
            for file, epoch in data["files"].items()
        }

    def save(self) -> None:
        """Replace the file, durably."""
        if self._path is None:
            return
        files = {
            file: {"generation": epoch.number} if isinstance(epoch, Generation) else epoch
            for file, epoch in self.files.items()
        }
        data = {"version": _VERSION, "files": files, "generations": self.generations}
        replace_file(self._path, json.dumps(data, ensure_ascii=False, indent=1).encode())


class Epochs:
    """Sets the epoch of events that carry none (or 0)."""

    def __init__(
        self,
        epoch: int | str | None,
        *,
        newest: Newest = lambda _: {},
        group: Callable[[str], int] = lambda _: 0,
        record: EpochRecord | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.epoch, self._aliases = epoch, aliases or {}
        self._newest, self._group, self._record = newest, group, record or EpochRecord()
        self._first = len(self._record.generations)
        self._dated: dict[str, dict[str, int]] = {}

    def place(self, file: str) -> str:
        """Return the name under which the place of a file is stored: each epoch of a file has a place of its own."""
        epoch = self._record.files.get(file)
        return file if epoch is None else f"{file} (epoch {NEXT if isinstance(epoch, Generation) else epoch})"

    def begin(self, files: Iterable[str]) -> None:
        """Give each file its epoch, and record it: a file that has a generation keeps it."""
        if self.epoch is not None:
            changes = [self._assign(file) for file in files]
            if any(changes):
                self._record.save()

    def _assign(self, file: str, *, rewritten: bool = False) -> bool:
        """Give a file its epoch, and return whether it had another one."""
        known = self._record.files
        old = known.get(file)
        if self.epoch != NEXT:
            assert isinstance(self.epoch, int)
            if self.epoch:
                known[file] = self.epoch
            else:
                known.pop(file, None)  # 0 is the epoch of events without one
        elif not isinstance(old, Generation) or rewritten:
            known[file] = new = Generation(self._first + self._group(file))
            missing = new.number + 1 - len(self._record.generations)
            self._record.generations += [{} for _ in range(missing)]
        return known.get(file) != old

    def __call__(self, segment: Segment, *, rewritten: bool = False) -> Segment:
        """Return the segment with these epochs."""
        file = segment.path
        segment = segment._replace(events=list(segment.events))  # columns have one epoch for all
        if file not in self._record.files:
            self.begin([file])
        epoch = self._record.files.get(file)
        if rewritten and self.epoch == NEXT and isinstance(epoch, Generation) and epoch.number < self._first:
            self._assign(file, rewritten=True)
            self._record.save()
            epoch = self._record.files[file]
        if isinstance(epoch, int):
            for event in segment.events:
                event.epoch = event.epoch or epoch
        elif epoch is not None:
            self._date(segment, epoch)
        return segment if epoch is None else segment._replace(raw=None)  # the lines themselves have no epoch

    def _date(self, segment: Segment, generation: Generation) -> None:
        bases = self._record.generations[generation.number]
        if begun := {event.benchmark for event in segment.events} - bases.keys():
            bases |= {name: self._before(name) for name in sorted(begun)}
            self._record.save()
        for event in segment.events:
            name, model = event.benchmark, self._aliases.get(event.model, event.model)
            if not event.epoch:
                event.epoch = bases[name].get(model, -1) + 1
            dated = self._dated.setdefault(name, {})
            dated[model] = max(event.epoch, dated.get(model, 0))

    def _before(self, benchmark: str) -> dict[str, int]:
        """Return the newest epoch of each model of a benchmark now."""
        newest = dict(self._newest(benchmark))
        for model, epoch in self._dated.get(benchmark, {}).items():
            newest[model] = max(epoch, newest.get(model, 0))
        return newest
