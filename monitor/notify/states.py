"""Watch states of benchmarks that people are notified of: verdicts that are held while results arrive, and results that have stopped."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from monitor.notify.notification import Notification, Wording
from monitor.view.values import BoardState

HELD_WITHIN_SECONDS: Final = 600
"""Results arrive if the last one is younger: an import of results that existed already is over sooner."""

DAY_SECONDS: Final = 86_400  # after a day without events an evaluation has ended, not stalled

LOOK_SECONDS: Final = 15.0  # the longest time between two looks

_LIVE_SHARE: Final = 1 / 15
"""Results that came over this share of the time without any were evaluated as they came, not imported."""


class Due(NamedTuple):
    """What is to be noted of a benchmark, after the notification, if there is one, was accepted."""

    # field, value: the same for the same state in any process, so that what is noted is not sent again
    field: str
    value: str
    notification: Notification | None


class _Seen(NamedTuple):
    """What this process has seen of a benchmark: its first commit, and since when its verdicts are held while results arrive."""

    first: float
    held_since: float | None


class StateWatch:
    """Finds the states that people are notified of; the rules of Prometheus (``deploy/prometheus/rules/alerts.yml``) watch the same."""

    def __init__(
        self, wording: Wording, held_seconds: float, stalled_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._wording, self._clock = wording, clock
        self.change(held_seconds, stalled_seconds)
        self._started = clock()
        self._seen: dict[str, _Seen] = {}

    def change(self, held_seconds: float, stalled_seconds: float) -> None:
        """Take other times."""
        self._held_seconds, self._stalled_seconds = held_seconds, stalled_seconds
        times = [each for each in (held_seconds, stalled_seconds) if each]
        self.look_seconds = min([LOOK_SECONDS, *(each / 4 for each in times)])
        self.watches = bool(times)

    def look(self, origin: str, boards: Iterable[BoardState], noted: Mapping[str, str]) -> list[Due]:
        """Return what is due of the benchmarks of a partition and not noted yet."""
        now = self._clock()
        return [
            due
            for board in boards
            for due in (
                self._held(origin, board, now),
                self._live(board, now),
                self._stalled(origin, board, now, noted),
            )
            if due is not None and noted.get(due.field) != due.value
        ]

    def _held(self, origin: str, board: BoardState, now: float) -> Due | None:
        seen = self._seen.setdefault(board.key, _Seen(board.last_event, None))
        holds = board.held is not None and board.models > 1 and now - board.last_event < HELD_WITHIN_SECONDS
        since = (now if seen.held_since is None else seen.held_since) if holds else None
        self._seen[board.key] = seen._replace(held_since=since)
        if not self._held_seconds or since is None or now - since < self._held_seconds:
            return None
        return Due(f"held:{board.key}", str(board.version), self._wording.held(origin, board))

    def _live(self, board: BoardState, now: float) -> Due | None:
        """Note once a day that results of a benchmark come over a while: another process may have to judge that they stopped."""
        over = board.last_event - self._seen[board.key].first
        if (
            not self._stalled_seconds
            or over < _LIVE_SHARE * self._stalled_seconds
            or now - board.last_event > DAY_SECONDS
        ):
            return None
        return Due(f"live:{board.key}", _day(board), None)

    def _stalled(self, origin: str, board: BoardState, now: float, noted: Mapping[str, str]) -> Due | None:
        age = now - board.last_event
        quiet = now - max(board.last_event, self._started)  # what came while nothing ran is folded after the start
        live = self._live(board, now) is not None or noted.get(f"live:{board.key}") == _day(board)
        if (
            not live
            or board.complete
            or not self._stalled_seconds
            or not quiet > self._stalled_seconds
            or age > DAY_SECONDS
        ):
            return None
        return Due(f"stalled:{board.key}", str(board.offset), self._wording.stalled(origin, board, age))


def _day(board: BoardState) -> str:
    return str(int(board.last_event // DAY_SECONDS))
