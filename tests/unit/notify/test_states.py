"""Which states people are notified of: held while results arrive, and stalled; each once, whoever owns the benchmark."""

import re

import pytest
import yaml

from monitor.engine.chunk_fold import Partition
from monitor.notify.notification import Wording
from monitor.notify.states import DAY_SECONDS, HELD_WITHIN_SECONDS, StateWatch
from monitor.view.from_state import board_view
from monitor.view.news import board_state
from monitor.view.values import BoardState
from schemas.records.declaration import Declaration
from schemas.records.events import Ended, EventFields
from tests.deploy.monitoring import DEPLOY

START = 1_000_000_000.0
BOARD = BoardState("mmlu", "k", 1, 3, None, 90, 100, complete=False, last_event=START, offset=500)


class Owner:
    """A process that looks every 15 s, and notes what it has sent where the next owner finds it."""

    def __init__(self, noted=None, held=900.0, stalled=1_800.0, now=START):
        self.now, self.noted = now, {} if noted is None else noted
        self.watch = StateWatch(Wording(lambda: None, "runbooks"), held, stalled, lambda: self.now)

    def look(self, *boards):
        """Return the notifications of one look."""
        due = self.watch.look("evals/0", boards, self.noted)
        self.noted |= {each.field: each.value for each in due}
        return [each.notification for each in due if each.notification is not None]

    def go_on(self, board, seconds, arriving):
        """Look for so many seconds, while results arrive or none does; return the notifications and the last state."""
        sent, end = [], self.now + seconds
        while self.now < end:
            self.now += 15
            if arriving:
                board = board._replace(last_event=self.now, offset=board.offset + 10)
            sent += self.look(board)
        return sent, board


def held(board=BOARD):
    return board._replace(held="no order policy is declared")


def test_held_verdicts_are_reported_once_while_results_arrive():
    owner = Owner()
    assert owner.go_on(held(), 890, arriving=True)[0] == []
    (sent,) = owner.go_on(held(), 3_600, arriving=True)[0]
    assert (sent.alert, sent.severity, sent.runbook) == ("RankwatchHeld", "warning", "runbooks#held")
    assert sent.lines == ("The reason: no order policy is declared.",)
    owner.watch.change(0, 0)
    assert (owner.watch.watches, owner.go_on(held()._replace(version=3), 3_600, arriving=True)[0]) == (False, [])
    later = Owner(owner.noted, now=owner.now)
    assert later.go_on(held()._replace(version=2), 1_800, arriving=True)[0] != []


def test_an_import_of_held_verdicts_is_not_reported():
    owner = Owner(stalled=0)
    assert owner.go_on(held(), HELD_WITHIN_SECONDS / 2, arriving=True)[0] == []
    assert owner.go_on(held(), DAY_SECONDS, arriving=False)[0] == []


def test_results_that_stop_are_reported_once():
    owner = Owner()
    sent, board = owner.go_on(BOARD, 600, arriving=True)
    assert sent == []
    assert owner.go_on(board, 1_800, arriving=False)[0] == []
    (sent,) = owner.go_on(board, 3_600, arriving=False)[0]
    assert (sent.alert, sent.runbook) == ("RankwatchIngestStalled", "runbooks#ingest-stalled")
    assert sent.title == "No event of mmlu for 30 minutes, and it is incomplete"
    assert sent.lines[1] == "The model with the fewest has 90 of 100 items."
    _, board = owner.go_on(board, 300, arriving=True)
    (again,) = owner.go_on(board, 3_600, arriving=False)[0]
    assert again.id != sent.id


@pytest.mark.parametrize("board", [BOARD, BOARD._replace(complete=True)], ids=["at once", "complete"])
def test_results_that_came_at_once_and_complete_ones_do_not_stall(board):
    owner = Owner()
    _, board = owner.go_on(board, 600 if board.complete else 15, arriving=True)
    assert owner.go_on(board, 2 * DAY_SECONDS, arriving=False)[0] == []


def test_the_next_owner_reports_what_the_last_one_could_not_and_repeats_nothing():
    first = Owner()
    _, board = first.go_on(BOARD, 600, arriving=True)
    second = Owner(first.noted, now=first.now + 60)
    (sent,) = second.go_on(board, 3_600, arriving=False)[0]
    assert Owner(first.noted, now=second.now).go_on(board, 3_600, arriving=False)[0] == []
    lost = {field: value for field, value in first.noted.items() if not field.startswith("stalled")}
    (again,) = Owner(lost, now=second.now).go_on(board, 3_600, arriving=False)[0]
    assert again.id == sent.id


def test_what_came_while_nothing_ran_is_no_stall_at_the_start():
    first = Owner()
    _, board = first.go_on(BOARD, 600, arriving=True)
    late = Owner(first.noted, now=first.now + 7_200)
    assert late.look(board) == []
    assert late.go_on(board, 600, arriving=True)[0] == []


def test_zero_seconds_switch_a_state_off():
    owner = Owner(held=0, stalled=0)
    _, board = owner.go_on(held(), 3_600, arriving=True)
    assert owner.go_on(board, 7_200, arriving=False)[0] == []


def test_the_titles_are_those_of_the_rules_of_prometheus():
    wording = Wording(lambda: None, "runbooks")
    sent = {each.alert: each for each in (wording.held("evals/0", held()), wording.stalled("evals/0", BOARD, 1_860.0))}
    groups = yaml.safe_load((DEPLOY / "prometheus/rules/alerts.yml").read_text())["groups"]
    rules = {rule["alert"]: rule["annotations"] for group in groups for rule in group["rules"]}
    for name, notification in sent.items():
        pattern = re.sub(r"\\{\\{.*?\\}\\}", ".+", re.escape(rules[name]["summary"]))
        assert re.fullmatch(pattern, notification.title), name
        assert rules[name]["runbook_url"].endswith(notification.runbook.removeprefix("runbooks"))


def test_the_state_of_a_board_counts_current_runs_that_may_go_on():
    partition = Partition()
    scores = [("a", k, 0) for k in range(3)] + [("b", k, 0) for k in range(2)] + [("b", 0, 1)]
    events = [EventFields("quiz", str(k), model, 1, epoch=epoch) for model, k, epoch in scores]
    partition.fold_events([Declaration(declare="quiz", items=3)], events, [], len(events))
    (benchmark,) = partition.benchmarks.values()
    state = board_state(board_view(benchmark), START)
    assert (state.models, state.fewest, state.items, state.complete, state.held) == (2, 1, 3, False, None)
    partition.fold_events([], [EventFields("quiz", str(k), "b", 1, epoch=1) for k in (1, 2)], [], 2)
    assert board_state(board_view(benchmark), START).complete
    other = Partition()
    other.fold_events([], events, [], len(events))
    (benchmark,) = other.benchmarks.values()
    state = board_state(board_view(benchmark), START)
    assert state.held
    assert (state.fewest, state.items, state.complete) == (1, 3, False)  # model a has more items than model b
    other.fold_events([], [], [], 1, ended=[Ended(ended="quiz")])
    assert board_state(board_view(benchmark), START).complete
