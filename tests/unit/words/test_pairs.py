"""The sentences of a pair: one for each fact."""

import pytest

from monitor.words.assumptions import TEXTS
from monitor.words.clusters import warning
from monitor.words.kinds import OfBattles, OfItems
from monitor.words.order import because
from monitor.words.pairs import Pair, reason
from schemas.results.reasons import Reason, fact

ITEMS, BATTLES = Pair("ash", "birch", OfItems()), Pair("ash", "birch", OfBattles())
DECIDED = {"side": "a", "alpha": 0.05, "n": 100, "wins": 60, "losses": 5, "missing": 0, "ignored": 0}
MIXED = "some scores are neither 0 nor 1, and the pairs bet on 0/1 scores; declare graded scores (scores: graded)"
FINDING = {"model": "ash", "items": 128, "observed": 90.0, "expected": 12.0, "p": 1e-9}


@pytest.mark.parametrize(
    ("code", "values", "sentence"),
    [
        (Reason.NOTHING_SHARED, {"waits": False, "ended": True}, "ash and birch share no items."),
        (Reason.NOTHING_SHARED, {"waits": False, "ended": False}, "ash and birch share no items yet."),
        (Reason.NOTHING_SHARED, {"waits": True, "ended": False}, "ash and birch share no items yet: their items count when both runs have ended (repeats: all)."),
        (Reason.SUPERSEDED, {"side": None, "procedure": "anytime", "alpha": 0.05, "epochs": [0, 1]}, "Superseded: nothing was decided on epoch 0 of ash and epoch 1 of birch. At least one of them was scored again later. This verdict is kept unchanged; the newer scores are compared separately."),
        (Reason.DECIDED, DECIDED, "ash is better than birch, decided family-wise at alpha = 0.05: of 100 shared items, only ash is right on 60 and only birch on 5."),
        (Reason.DECIDED, DECIDED | {"side": "b", "wins": None, "losses": None, "missing": 1}, "birch is better than ash, decided family-wise at alpha = 0.05; the 1 missing item cannot change that."),
        (Reason.DECIDED, DECIDED | {"wins": None, "losses": None, "ignored": 35}, "ash is better than birch, decided family-wise at alpha = 0.05; 35 missing items ignored."),
        (Reason.GAP_TURNED, {"leader": "b"}, "The gap has turned since: birch now leads. The decision is not withdrawn; check what changed."),
        (Reason.GAP_TURNED_BACK, {"n": 1200}, "After the decision the gap turned, at 1,200 shared items; it has turned back since."),
        (Reason.PAIR_ONLY, {"side": "a", "alpha": 0.05, "end": "scored"}, "Every item is scored. Decided for this pair only at alpha = 0.05: ash is better than birch."),
        (Reason.NOT_FAMILY_WISE, {"exhausted": False}, "Not decided family-wise yet: among this many pairs, chance alone often makes one look like this."),
        (Reason.INVALIDATED, {"because": [fact(Reason.MIXED_SCORES)]}, f"A decision was made and no longer counts: {MIXED}."),
        (Reason.HELD, {"because": [fact(Reason.MIXED_SCORES)]}, f"Held: {MIXED}."),
        (Reason.EQUIVALENT, {"alpha": 0.05}, "A tie at alpha = 0.05: the gap is smaller than the declared margin in either direction."),
        (Reason.EXHAUSTED, {"missing": 0, "ignored": 0, "against_leader": True}, "Every item is scored, and the evidence does not decide which model is better."),
        (Reason.EXHAUSTED, {"missing": 0, "ignored": 3, "against_leader": True}, "The runs have ended, and the evidence does not decide which model is better."),
        (Reason.EXHAUSTED, {"missing": 40, "ignored": 0, "against_leader": True}, "Undecided after the end of the runs: 40 items are missing for this pair and count against the leader."),
        (Reason.EXHAUSTED, {"missing": 1, "ignored": 0, "against_leader": False}, "Undecided after the end of the runs: 1 item is missing for this pair."),
        (Reason.DECIDED_IF_IGNORED, {"side": "b"}, "It would be decided for birch if missing items were ignored (missing: ignorable)."),
        (Reason.MISSING_ITEMS, {"missing": 1}, "Undecided: 1 item is still missing for this pair and could change the result."),
        (Reason.OUTSIDE_FAMILY, {"because": [fact(Reason.FAMILY_FULL, capacity=1)]}, "It has no family-wise verdict: earlier pairs filled the declared family (1)."),
        (Reason.RULED_OUT, {"a": 0.0123, "b": 0.0}, "The family-wise interval rules out that ash leads by more than 1.23 points and that birch leads."),
        (Reason.INFORMATIVE, {"informative": 3134, "n": 12032}, "Informative items: 3,134 of 12,032 shared (exactly one of the two models is right)."),
        (Reason.NEEDS_ITEMS, {"items": 152.3}, "A test of about 150 items in all finds a gap of this size in 4 of 5 runs."),
        (Reason.NEVER, {}, "At the current estimate no number of items decides it."),
        (Reason.CHANCE, {"probability": 0.004}, "It is decided by the last item with a probability of less than 1 %."),
        (Reason.ASSUMES, {"assumptions": [{"code": "listed"}, {"code": "joined"}]}, f"Assumes that {TEXTS['listed']}, and that {TEXTS['joined']}."),
        (Reason.OTHER_LEADER, {}, "birch leads on the shared items, although ash has the higher mean on its own items: the two were scored on different items."),
    ],
)  # fmt: skip
def test_a_fact_as_a_sentence(code, values, sentence):
    assert reason([fact(code, **values)], ITEMS) == sentence


@pytest.mark.parametrize(
    ("code", "values", "sentence"),
    [
        (Reason.NOT_MET, {"waits": False}, "ash and birch have not met."),
        (Reason.DECIDED, DECIDED, "ash is better than birch, decided family-wise at alpha = 0.05: of 100 prompts, ash won 60 and birch won 5, the others are ties."),
        (Reason.EXHAUSTED, {"missing": 0, "ignored": 0, "against_leader": False}, "No further battles come, and the evidence does not decide which model is better."),
        (Reason.INFORMATIVE, {"informative": 65, "n": 100}, "Decisive prompts: 65 of 100; the others are ties."),
        (Reason.NEVER, {}, "At the current estimate no number of prompts decides it."),
    ],
)  # fmt: skip
def test_battles_have_sentences_of_their_own(code, values, sentence):
    assert reason([fact(code, **values)], BATTLES) == sentence


@pytest.mark.parametrize(
    ("code", "values", "clause"),
    [
        (Reason.REFUSED_FILES, {"files": 1, "path": "a.csv"}, "a.csv was refused, so what was read is not taken for the whole benchmark; correct the file by its reason, or leave it out"),
        (Reason.REFUSED_FILES, {"files": 3, "path": "a.csv"}, "a.csv and 2 more files were refused, so what was read is not taken for the whole benchmark; correct the file by its reason, or leave it out"),
        (Reason.TOO_MANY_ITEMS, {"benchmark": "bench", "declared": 100, "arrived": 101}, "101 items arrived and 100 were declared, so the declared item count was wrong; declare the right one (items: N)"),
        (Reason.REPEATS, {"least": 1, "mean": 2.5, "most": 4, "declared": None}, "2.5 repeats an item on average, 1 to 4: a score is their mean"),
        (Reason.REPEATS, {"least": 4, "mean": 4.0, "most": 4, "declared": 2}, "4 repeats an item, 2 are declared: a score is the mean of all"),
        (Reason.SUSPECT_ORDER, FINDING | {"statistic": "cluster successions", "harmless": True}, "the arrival order is suspect: of the first 128 items of ash, 90 follow an item of the same cluster; about 12 would in a random order (p at most 1e-09); this order policy does not depend on it"),
        (Reason.ORDER_REFUTED, FINDING | {"statistic": "item position"}, "the arrival order is suspect: the first 128 items of ash follow the order of their ids (correlation 90.00; p at most 1e-09), and the order was declared trusted"),
        (Reason.NOT_DECLARED, {"models": ["gema"], "declared": 3, "nearest": ["gemma"]}, "gema is not among the 3 declared models; the declared model with the nearest name is gemma"),
    ],
)  # fmt: skip
def test_a_fact_as_a_clause(code, values, clause):
    assert because([fact(code, **values)]) == clause


def test_a_warning_about_clusters():
    facts = [
        fact(Reason.FEW_CLUSTERS, effective=2.2, clusters=51, largest="big", share=2 / 3, few=10),
        fact(Reason.UNLABELLED, unlabelled=1, items=61),
    ]
    text = warning(facts)
    assert text is not None
    assert text.startswith(
        "The effective number of clusters is 2.2 of 51; the largest, big, has 67 % of the items. Below 10 "
    )
    assert "1 of 61 items has no cluster and is omitted from clustered results." in text
    assert warning([]) is None
