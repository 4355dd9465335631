"""The notifications for verdict changes and lasting states: one for each benchmark and kind, with the answer and a link in the text."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from monitor.view.values import BoardNews, BoardState, PairNames
from monitor.words import notifications as words
from schemas.results.changes import AnyChange, DriftChange, Kind, VerdictChange

Severity = Literal["info", "warning"]


class _Alert(NamedTuple):
    """A kind of notification: its name as an alert, and the section of the runbooks."""

    name: str
    severity: Severity
    runbook: str


NEW_DECISIONS: Final = _Alert("RankwatchNewDecisions", "info", "new-decisions")
REVERSED: Final = _Alert("RankwatchDecisionsReversed", "warning", "decisions-reversed")
WITHDRAWN: Final = _Alert("RankwatchDecisionsWithdrawn", "warning", "decisions-withdrawn")
SUPERSEDED: Final = _Alert("RankwatchDecisionsSuperseded", "info", "decisions-superseded")
TIES_BROKEN: Final = _Alert("RankwatchRankingDecided", "info", "ranking-decided")
SETTLED: Final = _Alert("RankwatchRankingSettled", "info", "ranking-settled")
GOAL_MET: Final = _Alert("RankwatchGoalMet", "info", "goal-met")
HELD: Final = _Alert("RankwatchHeld", "warning", "held")
STALLED: Final = _Alert("RankwatchIngestStalled", "warning", "ingest-stalled")
DRIFT: Final = _Alert("RankwatchDrift", "warning", "drift")
DIGEST: Final = _Alert("RankwatchDigest", "info", "digest")

ALERTS: Final = (
    NEW_DECISIONS,
    REVERSED,
    WITHDRAWN,
    SUPERSEDED,
    TIES_BROKEN,
    SETTLED,
    GOAL_MET,
    HELD,
    STALLED,
    DRIFT,
    DIGEST,
)


class Notification(NamedTuple):
    """What a person gets at once."""

    id: str  # the same on every attempt, also by another process for the same changes
    alert: str  # the kind, as the name of an alert
    severity: Severity
    benchmark: str | None  # None where it is about several
    title: str  # the answer in one line
    lines: tuple[str, ...]
    link: str | None  # address of the page
    runbook: str  # address of what to do

    @property
    def text(self) -> str:
        """The lines and addresses below the title."""
        ends = ([] if self.link is None else [f"Board: {self.link}"]) + [f"What to do: {self.runbook}"]
        return "\n".join([*self.lines, *ends])


class Wording:
    """Words notifications for one service."""

    def __init__(self, page: Callable[[], str | None], runbooks: str) -> None:
        self._page, self._runbooks = page, runbooks

    def of_benchmark(self, origin: str, every: Sequence[AnyChange], news: BoardNews | None) -> list[Notification]:
        """Return the notifications for changes of one benchmark, at most one of each kind; of a sentinel, one for each change."""
        drifted = [self._drifted(origin, change) for change in every if isinstance(change, DriftChange)]
        changes = [change for change in every if isinstance(change, VerdictChange)]
        if not changes:
            return drifted
        board = changes[0].benchmark

        def note(alert: _Alert, about: Sequence[VerdictChange], title: str, lines: Iterable[str] = ()) -> Notification:
            return self._notification(alert, [f"{origin}/{change.id}" for change in about], board, title, tuple(lines))

        ranks = None if news is None else news.ranks
        family = [change for change in changes if change.procedure == "anytime_family"]
        notifications = self._good_news(note, board, changes, news)
        if turned := _of_kind(family, "reversed"):
            notifications.append(
                note(REVERSED, turned, words.decided(turned, "reversed decision"), words.lines(turned, ranks))
            )
        if gone := _of_kind(family, "invalidated"):
            notifications.append(note(WITHDRAWN, gone, words.withdrawn(board, len(gone)), words.sentences(gone)))
        if old := _of_kind(family, "superseded"):
            notifications.append(note(SUPERSEDED, old, words.superseded(board, len(old)), words.sentences(old)))
        return drifted + notifications

    def _drifted(self, origin: str, change: DriftChange) -> Notification:
        """Return the notification of what a monitor of a sentinel reports."""
        title, lines = words.drifted(change, self._page())
        alert = DRIFT._replace(severity="info") if change.kind == "drift.better" else DRIFT
        return self._notification(alert, [f"{origin}/{change.id}"], change.benchmark, title, tuple(lines))

    @staticmethod
    def _good_news(
        note: Callable[..., Notification], board: str, changes: Sequence[VerdictChange], news: BoardNews | None
    ) -> list[Notification]:
        """Return at most one notification: of what is decided now, headed by what is complete with it."""
        decided = [
            change
            for change in changes
            if change.procedure == "anytime_family"
            and change.kind == "decided"
            and (news is None or _pair(change) in news.followed)
        ]
        settled = _of_kind(changes, "settled")
        heads: list[tuple[_Alert, str]] = []
        if news is not None and news.goal_met is not None:
            heads.append((GOAL_MET, words.goal_met(board, news.goal_met.goal, news.goal_met.reason)))
        if news is not None and news.ranking_decided and decided:
            heads.append((TIES_BROKEN, words.ties_broken(board)))
        if news is not None and news.ranking_settled and settled:
            heads.append((SETTLED, words.settled(board)))
        if decided:
            heads.append((NEW_DECISIONS, words.decided(decided, "new decision")))
        if not heads:
            return []
        (alert, title), *others = heads
        lines = [text for kind, text in others if kind is not NEW_DECISIONS]
        return [
            note(
                alert,
                decided or settled or changes,
                title,
                [*lines, *words.lines(decided, None if news is None else news.ranks)],
            )
        ]

    def held(self, origin: str, board: BoardState) -> Notification:
        """Return the notification for a benchmark whose verdicts are held while results arrive, the same for each declaration."""
        ids = [f"{origin}/{board.key}/{board.version}"]
        title, lines = words.held(board.benchmark, board.held)
        return self._notification(HELD, ids, board.benchmark, title, tuple(lines))

    def stalled(self, origin: str, board: BoardState, seconds: float) -> Notification:
        """Return the notification for a benchmark that lacks results, none of which has come for a while; the same until one comes."""
        ids = [f"{origin}/{board.key}/{board.offset}"]
        title, lines = words.stalled(board.benchmark, seconds, board.fewest, board.items)
        return self._notification(STALLED, ids, board.benchmark, title, tuple(lines))

    def digest(self, notifications: Sequence[Notification]) -> Notification:
        """Return one notification in place of several, with the title of each."""
        boards = {each.benchmark for each in notifications if each.benchmark is not None}
        titles = [each.title for each in sorted(notifications, key=lambda each: each.severity != "warning")]
        return Notification(
            id=_digest_of(each.id for each in notifications),
            alert=DIGEST.name,
            severity="warning" if any(each.severity == "warning" for each in notifications) else "info",
            benchmark=next(iter(boards)) if len(boards) == 1 else None,
            title=words.digest(len(notifications), len(boards), titles[0]),
            lines=tuple(words.first(titles, len(titles))),
            link=self._page(),
            runbook=f"{self._runbooks}#{DIGEST.runbook}",
        )

    def trial(self) -> Notification:
        """Return a notification that tries the way to the people who get it."""
        title, lines = words.trial()
        return Notification(
            "trial",
            NEW_DECISIONS.name,
            NEW_DECISIONS.severity,
            "example",
            title,
            tuple(lines),
            self._page(),
            f"{self._runbooks}#{NEW_DECISIONS.runbook}",
        )

    def _notification(
        self, alert: _Alert, ids: Iterable[str], board: str, title: str, lines: tuple[str, ...]
    ) -> Notification:
        page = self._page()
        return Notification(
            id=_digest_of([alert.name, *ids]),
            alert=alert.name,
            severity=alert.severity,
            benchmark=board,
            title=title,
            lines=lines,
            link=None if page is None else f"{page.rstrip('/')}/#/b/{quote(board, safe='')}",
            runbook=f"{self._runbooks}#{alert.runbook}",
        )


def _of_kind(changes: Sequence[VerdictChange], kind: Kind) -> list[VerdictChange]:
    return [change for change in changes if change.kind == kind]


def _pair(change: VerdictChange) -> PairNames:
    return (change.model_a, change.model_b)


def pairs_of(changes: Iterable[AnyChange]) -> Collection[PairNames]:
    """Return the pairs of changes."""
    return {_pair(change) for change in changes if isinstance(change, VerdictChange)}


def _digest_of(ids: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(ids).encode(), digest_size=16).hexdigest()
