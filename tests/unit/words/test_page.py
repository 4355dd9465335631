"""What the page writes: what most verdicts assume is stated once, and dropped from the sentence of each."""

from monitor.view.build import report_view
from monitor.view.from_state import board_view
from monitor.words.assumptions import clauses
from monitor.words.page import Verdict, assumed, board_words, change_words
from schemas.results.assumptions import Assumption
from schemas.results.reasons import Reason
from tests.fold_log import FoldLog, packed, paired

LISTED, JOINED, OWN = Assumption("listed"), Assumption("joined"), Assumption("rescored")


def test_what_most_verdicts_assume_is_stated_once():
    verdicts = [
        Verdict("settled", (LISTED,)),
        Verdict("anytime", (LISTED,)),
        Verdict("anytime_family", (LISTED, JOINED)),
        Verdict("anytime_family", (LISTED, JOINED)),
        Verdict("anytime_family", (LISTED, JOINED, OWN)),
    ]
    text, common = assumed(verdicts)
    assert common == {"settled": (LISTED,), "anytime": (LISTED,), "anytime_family": (LISTED, JOINED)}
    assert text == (
        f"Settled leads and pair-only verdicts assume that {clauses([LISTED])}. "
        f"Family-wise verdicts also assume that {clauses([JOINED])}. One verdict names another assumption."
    )
    assert assumed([]) == (None, {})
    assert assumed([Verdict("anytime", (LISTED,))])[0] == f"Verdicts assume that {clauses([LISTED])}."


def decided():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(packed(paired(60, 5, 40), "ab"))
    return log.bench


def test_the_reason_of_a_pair_has_no_assumption_that_is_stated():
    report = report_view(board_view(decided())).report
    (pair,), words = report.pairs, board_words(report)
    (named,) = (each for each in pair.facts if each["code"] == Reason.ASSUMES)
    clause = clauses(map(Assumption.of, named["assumptions"]))
    assert clause in pair.reason
    assert clause not in words.reasons[0]
    assert words.assumed_note == f"Verdicts assume that {clause}."
    assert words.held_note is words.order_note is words.goal_note is None


def test_a_verdict_change_has_no_assumption_that_is_stated():
    changes = [change for change in decided().changes.values() if change.kind == "decided"]
    words = change_words([change.as_json() for change in changes])
    for change, sentence in zip(changes, words.sentences, strict=True):
        clause = clauses(map(Assumption.of, change.assumptions))
        assert change.sentence == f"{sentence} Assumes that {clause}."
    assert change_words([]).assumed_note is None
