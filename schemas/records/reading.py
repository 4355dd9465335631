"""What a reader of files found besides the scores that were folded: it limits what the files may be taken for."""

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from schemas.records.text import Fault, Found, Reject, Sentence, shorten

LOG: Final = "log"  # in place of a file: records that were sent on their own

_MOST_DECLARATIONS: Final = 5
"""Refused declarations of a benchmark that are kept for each file: those after them repeat one reason."""

_SCALES: Final = (5, 10, 100)


class Refused(NamedTuple):
    """A file that was not read, or not to its end, and why; `benchmark` is the one that it holds, where that is known."""

    path: str
    reason: Sentence
    benchmark: str | None = None


class RefusedDeclaration(NamedTuple):
    """A declaration that does not count: its benchmark, its line, or its offset in the log, and what is wrong."""

    benchmark: str
    place: int
    file: str | None
    field: str
    reason: str


@dataclass
class FileReading:
    """What reading one file showed besides its scores."""

    path: str  # as its place is stored; `LOG` for records without a file
    generation: int = 0  # which contents of it were read
    has_results: bool = False  # whether any line of it was read
    # the file's own path, and reason and benchmark of the first line that was rejected, or of the one that ended it; and whether it did
    refused: tuple[str, str, str | None, bool] | None = None
    # the file's own path, reason and benchmark, where it cannot be read on from where it was read to
    damage: tuple[str, str, str | None] | None = None
    # lines by benchmark that cannot be read, or that the benchmark refuses
    rejected: dict[str, int] = field(default_factory=dict)
    # rejected lines by benchmark and item; those that name no item as ""
    lost: dict[str, dict[str, int]] = field(default_factory=dict)
    # of benchmarks with scores that are most likely on another scale, the largest
    above: dict[str, float] = field(default_factory=dict)
    # differing, notes, failed: by benchmark; see `Reading`. chosen: by benchmark, which metric, filter, scorer or judge counts
    differing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)
    chosen: dict[str, dict[str, str]] = field(default_factory=dict)
    # the declarations that were refused, as `RefusedDeclaration` has them
    declarations: list[RefusedDeclaration] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.declarations = [RefusedDeclaration(*each) for each in self.declarations]

    @classmethod
    def parse(cls, stored: bytes | str) -> "FileReading":
        """Return what was stored."""
        return cls(**json.loads(stored))

    def dump(self) -> str:
        """Return it as JSON; empty where nothing has to be remembered."""
        return "" if self.clear else json.dumps(vars(self))

    @property
    def clear(self) -> bool:
        """Whether nothing has to be remembered."""
        return self.refused is None and self.damage is None and not any(self._by_benchmark) and not self.declarations

    @property
    def _by_benchmark(self) -> tuple[dict[str, Any], ...]:
        return self.rejected, self.lost, self.above, self.differing, self.notes, self.failed, self.chosen

    @property
    def refusal(self) -> Refused | None:
        """Why the file counts as refused; None for one that gave results to its end."""
        if self.refused is not None and (self.refused[3] or not self.has_results):
            return Refused(*self.refused[:3])
        return None if self.damage is None or self.has_results else Refused(*self.damage)

    def add(self, reject: Reject, most: int | None = None) -> None:
        """Add a line that cannot be read; the items of at most so many are kept by name."""
        name, item = reject.get("benchmark"), reject.get("item_id")
        ends = reject.get("refuses", False)
        if ends or self.refused is None:
            self.refused = reject["source"], reject["reason"], name, ends
        if name is not None:
            self.reject(name)
        if name is not None and item != "":  # an empty one scores no item
            self.lose(name, item or "", most)
        if name is not None and "above" in reject:
            self.above[name] = max(reject["above"], self.above.get(name, 0))

    def reject(self, benchmark: str) -> None:
        """Count a line that does not count."""
        self.rejected[benchmark] = self.rejected.get(benchmark, 0) + 1

    def lose(self, benchmark: str, item: str, most: int | None = None) -> None:
        """Count a line of an item that does not count, under "" where that is not known or many are known."""
        items = self.lost.setdefault(benchmark, {})
        if most is not None and item not in items and len(items) >= most:
            item = ""
        items[item] = items.get(item, 0) + 1

    def find(self, found: Found) -> None:
        """Add what the reader of the format found."""
        self.differing |= found.differing
        for name, texts in found.notes.items():
            known = self.notes.setdefault(name, [])
            known += [text for text in texts if text not in known]
        self.failed |= found.failed
        for name, chosen in found.chosen.items():
            self.chosen.setdefault(name, {}).update(chosen)

    def rewritten(self, generation: int) -> "FileReading":
        """Return what is left to remember once other contents of the file are read: scores of the earlier ones still count."""
        return FileReading(self.path, generation, above=self.above, differing=self.differing, chosen=self.chosen)

    def benchmarks(self) -> set[str]:
        """Return the benchmarks that the file shows something of, besides its refusal."""
        declared = {each.benchmark for each in self.declarations}
        damaged = set() if self.damage is None or self.damage[2] is None else {self.damage[2]}
        return declared.union(damaged, self.lost, self.above, self.differing, self.notes, self.failed)

    def forget(self, benchmark: str) -> None:
        """Forget a benchmark that was deleted."""
        for by_name in self._by_benchmark:
            by_name.pop(benchmark, None)
        self.declarations = [each for each in self.declarations if each.benchmark != benchmark]


@dataclass
class Reading:
    """What is known of the files of one benchmark, and of what was declared; empty where nothing was found."""

    refused: list[Refused] = field(default_factory=list)  # of this benchmark, or of one that is not known
    elsewhere: list[Refused] = field(default_factory=list)  # of benchmarks without any result
    # items of rejected lines, which other lines may have scored; see `Benchmark.unread`
    lost: frozenset[str] = frozenset()
    nameless: int = 0  # rejected lines that name no item: each may be of one more
    # results without a score because the run of the item failed, by what the harness names as the reason
    failed: dict[str, int] = field(default_factory=dict)
    # why scores of one item id are not scores of one item, or the models have other items, and what to do; empty if nothing shows it
    differing: Sentence = ""
    # why the scores that count may be on another scale, and what to do; empty if nothing shows it
    off_scale: Sentence = ""
    notes: list[Sentence] = field(default_factory=list)  # what was chosen, or assumed, to read the files
    declarations: list[RefusedDeclaration] = field(default_factory=list)
    # the model whose scores in conflict count at their best, while all others count at their worst, as in a gate: so a verdict that it is
    # worse chooses none of them
    at_best: str | None = None
    excess: str = ""  # why the command fails: too large a share of the files or lines was refused; empty if it was not

    @property
    def hold(self) -> str:
        """Why no verdict can rest on the scores; empty if it can."""
        return self.differing or self.off_scale

    @property
    def whole(self) -> bool:
        """Whether nothing shows that the files are not the whole benchmark."""
        return not self.refused and not self.hold


class Readings:
    """What reading the files of a partition showed, file by file.

    >>> readings = Readings()
    >>> readings.of("a.jsonl").add({"source": "a.jsonl", "line": 1, "field": "record", "found": "{", "reason": "no JSON"})
    >>> [(_, reading)] = readings.of_benchmarks(["quiz"], {"quiz"})
    >>> reading.refused
    [Refused(path='a.jsonl', reason='no JSON', benchmark=None)]
    """

    def __init__(self, files: Iterable[FileReading] = (), most: int | None = None) -> None:
        self._files = {each.path: each for each in files}
        self._most = most
        self._changed: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self._files)

    def of(self, path: str) -> FileReading:
        """Return what was found in a file, to be changed."""
        self._changed.add(path)
        return self._files.setdefault(path, FileReading(path))

    def read(
        self,
        path: str,
        generation: int,
        *,
        continued: bool,
        results: bool,
        rejects: Collection[Reject],
        found: Found | None,
        damaged: bool = False,
    ) -> None:
        """Add a span of a file; `continued`: it follows lines of the same contents; `damaged`: it has no line, as none can be read."""
        known = self._files.get(path)
        if known is not None and known.generation != generation:
            self._changed.add(path)
            known = self._files[path] = known.rewritten(generation)
        if known is None and (rejects or found is not None):
            # Nothing was rejected of the lines before, so they gave results.
            known = self.of(path)
            known.generation, known.has_results = generation, continued
        if known is None:
            return
        if (results and not known.has_results) or rejects or found is not None:
            self._changed.add(path)
        known.has_results |= results
        if known.damage is not None:
            known.damage = None  # it can be read on, or the damage is another
            self._changed.add(path)
        for each in rejects:
            if damaged:
                known.damage = each["source"], each["reason"], each.get("benchmark")
            else:
                known.add(each, self._most)
        if found is not None:
            known.find(found)

    def reject(self, path: str, benchmark: str, item: str | None) -> None:
        """Count a line that can be read, and that the benchmark refuses; `item` is the one that it would have scored, if any."""
        known = self.of(path)
        known.has_results = True
        known.reject(benchmark)
        if item is not None:
            known.lose(benchmark, item, self._most)

    def rejected(self, benchmark: str) -> int:
        """Return how many lines of the files, as they are now, do not count."""
        return sum(each.rejected.get(benchmark, 0) for each in self._files.values())

    def refused(self) -> dict[str, str]:
        """Return the files that were refused, by the name of their place."""
        return {place: each.refusal.path for place, each in self._files.items() if each.refusal is not None}

    def chosen(self) -> dict[str, dict[str, str]]:
        """Return which metric, filter, scorer or judge counts, by benchmark."""
        return {name: chosen for file in self._files.values() for name, chosen in file.chosen.items()}

    def refuse(self, benchmark: str, place: int, file: str | None, fault: Fault) -> None:
        """Keep a declaration that is refused."""
        known = self.of(file or LOG)
        known.has_results |= file is not None
        others = [each for each in known.declarations if each.benchmark == benchmark]
        if len(others) < _MOST_DECLARATIONS and all(each.field != fault.field for each in others):
            known.declarations.append(RefusedDeclaration(benchmark, place, file, fault.field, fault.reason))

    def forget(self, benchmark: str) -> None:
        """Forget a benchmark that was deleted."""
        for each in self._files.values():
            each.forget(benchmark)
        self._changed |= self._files.keys()

    def changed(self) -> dict[str, str]:
        """Return the files that showed more since the last call, as they are stored. A file with nothing to remember is empty."""
        changed, self._changed = self._changed, set()
        found = {path: self._files[path].dump() for path in sorted(changed)}
        for path, stored in found.items():
            if not stored:
                del self._files[path]
        return found

    def of_benchmarks(self, names: Iterable[str], with_results: Collection[str]) -> Iterator[tuple[str, Reading]]:
        """Yield what is known of some benchmarks; `with_results` are all that have any."""
        files = [self._files[path] for path in sorted(self._files)]
        refused = [each for each in (file.refusal for file in files) if each is not None]
        unnamed = [each for each in refused if each.benchmark is None]
        elsewhere = [each for each in refused if each.benchmark is not None and each.benchmark not in with_results]
        of_name: dict[str, list[FileReading]] = {}
        for file in files:
            for name in file.benchmarks():
                of_name.setdefault(name, []).append(file)
        own = {each.benchmark for each in refused}
        for name in names:
            reading = _reading(name, of_name.get(name, []))
            reading.refused, reading.elsewhere = unnamed, elsewhere
            if name in own:
                reading.refused = [each for each in refused if each.benchmark in {None, name}]
                reading.elsewhere = [each for each in elsewhere if each.benchmark != name]
            yield name, reading


def _reading(name: str, files: Sequence[FileReading]) -> Reading:
    """Return what files show of a benchmark, besides those that were refused."""
    lost, failed = Counter[str](), Counter[str]()
    for file in files:
        if file.refusal is None:
            lost.update(file.lost.get(name, {}))
            lost[""] += file.damage is not None and file.damage[2] == name
        failed.update(file.failed.get(name, {}))
    above = [file.above[name] for file in files if name in file.above]
    return Reading(
        lost=frozenset(lost) - {""},
        nameless=lost[""],
        failed=dict(failed.most_common()),
        differing=next((file.differing[name] for file in files if name in file.differing), ""),
        off_scale=_off_scale(name, max(above)) if above else "",
        notes=list(dict.fromkeys(text for file in files for text in file.notes.get(name, ()))),
        declarations=[each for file in files for each in file.declarations if each.benchmark == name],
    )


def _off_scale(name: str, largest: float) -> str:
    """Return why scores from 0 to 1 may mean something else, and what to do."""
    scale = next((each for each in _SCALES if largest <= each), _SCALES[-1])
    argument = shorten(shlex.quote(name))
    return (
        f"scores above 1 were rejected (the largest is {largest:g}), so those from 0 to 1 may be on that scale too; begin the board again "
        f"(`rankwatch board delete {argument}`, then `board reopen {argument}`), and then start watch again with --scale {scale}, or with "
        "the scale that they have, which is 1 if a score was wrong and its file is correct now"
    )
