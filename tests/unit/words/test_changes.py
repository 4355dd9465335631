"""Sentences of verdict changes."""

import pytest

from monitor.words.assumptions import TEXTS, clauses
from monitor.words.order import Numbers, decided, reversed_after, settled
from schemas.results.assumptions import Assumption, flagged


def numbers(b, c, missing=0, gap=None, log_e=3.5):
    n = 10 if b is None else 2 * (b + c)
    return Numbers(n, b, c, (b - c) / n if gap is None else gap, missing, log_e, 3.0, None)


@pytest.mark.parametrize(
    ("missing", "words"), [(1, "even if the 1 missing item went"), (1200, "all 1,200 missing items")]
)
def test_a_count_agrees_with_its_noun(missing, words):
    evidence = numbers(9, 1, missing)
    assert words in decided(
        "ash", "birch", "demo", "anytime", "completion", evidence, [Assumption("completion")], alpha=0.05
    )


def test_counts_are_those_of_the_model_that_is_named_first():
    ahead, behind = numbers(9, 1), numbers(9, 1).swapped()
    of = ("ash", "birch", "demo", "anytime_family", "trusted")
    assert "only ash is right on 9 and only birch on 1" in decided(*of, ahead, [Assumption("trusted")], alpha=0.05)
    late = decided(*of, behind, [Assumption("trusted")], alpha=0.05)
    assert (
        "decided family-wise at alpha = 0.05 by its largest evidence so far, although ash does not lead now: " in late
    )
    assert "only ash is right on 1 and only birch on 9" in late
    assert "9 to 1" in reversed_after("ash", "birch", "demo", "anytime", ahead)


def test_a_model_that_does_not_lead_is_decided_by_earlier_evidence_alone():
    of = ("ash", "birch", "demo", "anytime_family")
    late = decided(*of, "committed", numbers(4, 5, missing=3), [Assumption("committed")], alpha=0.05)
    assert "does not lead now" in late
    assert "skipped" not in late.split(" Assumes ")[0]
    graded = decided(*of, "trusted", numbers(None, None, gap=-0.02), [Assumption("trusted")], alpha=0.05)
    assert "although ash does not lead now: on 10 shared items its mean score is lower by 0.02." in graded


def test_assumptions_become_one_clause_in_a_fixed_order():
    clause = "the 1 item read is the whole benchmark, and that scores were replaced for reasons that do not depend on who was ahead"
    assert clauses([Assumption("rescored"), Assumption("items_read", 1), Assumption("rescored")]) == clause
    assert clauses([]) is None


def test_bets_that_settle_name_what_they_assume():
    of = ("ash", "birch", "demo", 40)
    plain = settled(*of, numbers(9, 1, missing=1), assumed=[Assumption("ordered")], alpha=0.05)
    assert plain.startswith("ash leads birch on the 40 items of demo, settled at alpha = 0.05: ")
    assert plain.endswith(f"only birch on 1; 1 item is left. Assumes that {TEXTS['ordered']}.")
    again = settled(
        *of, numbers(4, 5, missing=20), assumed=flagged(ordered=True, begun_again=True, rescored=True), alpha=0.05
    )
    assert "settled at alpha = 0.05 by its largest evidence so far, although ash does not lead now: " in again
    assert again.count(", and that ") == 2
    certain = settled(*of, numbers(9, 1, missing=20, log_e=None), assumed=[Assumption("listed")], alpha=0.05)
    assert "alpha" not in certain
    assert certain.endswith("the 20 missing items cannot change who leads.")


@pytest.mark.parametrize(("weighted", "word"), [(False, "the same mean score"), (True, "the same weighted mean score")])
def test_a_tie_names_what_is_equal(weighted, word):
    tie = settled(
        "ash", "birch", "demo", 40, numbers(None, None, gap=-5e-13), assumed=[], alpha=0.05, tie=True, weighted=weighted
    )
    assert tie.startswith(f"ash and birch have {word} on the 40 items of demo, settled: all of them are scored.")
