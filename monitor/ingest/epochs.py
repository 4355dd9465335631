"""Give events an epoch where they carry none: a number, or the one after the newest that their model has."""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from schemas.packed import Segment

NEXT: Final = "next"

Newest = Callable[[str], Mapping[str, int]]
"""Returns the newest epoch of each model of a benchmark, before any file is read."""


class Epochs:
    """Sets the epoch of events that carry none (or 0).

    Parameters
    ----------
    epoch : int or "next"
        "next": one above the newest epoch that the model has; 0 for a model without scores.
    newest : callable, optional
    group : callable, optional
        Returns the group of a file: the files of a group are one generation, and a later group comes after it. One group by default.
    """

    def __init__(
        self,
        epoch: int | str,
        *,
        newest: Newest = lambda _: {},
        group: Callable[[str], Hashable] = lambda _: None,
    ) -> None:
        self._epoch, self._newest, self._group = epoch, newest, group
        self._resumed: dict[str, bool] = {}
        self._start: dict[str, Mapping[str, int]] = {}
        self._last: dict[tuple[str, str], tuple[Hashable, int]] = {}

    def __call__(self, segment: Segment, start: int = 0) -> Segment:
        """Return the segment with these epochs; `start` is its position in the file.

        With "next", a file that is first read after its beginning was read before: its new lines belong to the newest epoch.
        """
        self._resumed[segment.path] = start > 0 and self._resumed.get(segment.path, True)
        if isinstance(self._epoch, int):
            for event in segment.events:
                event.epoch = event.epoch or self._epoch
        else:
            group, resumed = self._group(segment.path), self._resumed[segment.path]
            for event in segment.events:
                if not event.epoch:
                    event.epoch = self._next(event.benchmark, event.model, group, resumed=resumed)
        return segment._replace(raw=None)  # the lines themselves have no epoch

    def of(self, benchmark: str, model: str) -> int:
        """Return the epoch of the events that carry none, once all files are read."""
        if isinstance(self._epoch, int):
            return self._epoch
        if (benchmark, model) in self._last:
            return self._last[benchmark, model][1]
        return self._newest(benchmark).get(model, 0)

    def _next(self, benchmark: str, model: str, group: Hashable, *, resumed: bool) -> int:
        key = benchmark, model
        if benchmark not in self._start:
            self._start[benchmark] = dict(self._newest(benchmark))
        start = self._start[benchmark].get(model)
        if resumed:
            return start or 0
        last_group, last = self._last.get(key, (None, start))
        if key not in self._last or last_group != group:
            last = 0 if last is None else last + 1
            self._last[key] = group, last
        assert last is not None
        return last
