"""Error rates of the engine itself: whole streams through the fold, every pair of them watched at every event.

A few streams of each case are made here; `python -m tests.calibration` makes 2,000 and keeps the counts.
"""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import binom

from monitor.engine.loop import bets, board, evidence, kernels
from monitor.view.pairs import intervals
from tests.calibration.__main__ import RATES
from tests.calibration.cases import CASES, Case, errors_by_family, unequal
from tests.calibration.streams import (
    ALPHA,
    BLOCK,
    ITEMS,
    capacity,
    clustered,
    exchangeable,
    fold,
    listed,
    trouble,
)

STREAMS = 20


def most(size):
    """Return how many errors of a rate of alpha are still likely, but for one case in a thousand."""
    return int(binom.ppf(0.999, size, ALPHA))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_few_streams(name):
    case = CASES[name]
    found = case.simulate(STREAMS)
    assert all(case.names(claim) for stream in found for claim in stream)
    if case.promised:
        assert max(errors_by_family(found).values(), default=0) <= most(STREAMS)


OTHER_WATCHERS = {
    "watched: blocks, fixed effects of mean 0, naive",
    "watched: blocks, fixed effects of mean 0, trusted",
    "watched: blocks, fixed effects of mean 0, trusted, clusters named",
    "watched: blocks, random effects (standard deviation .1), naive",
    "watched: blocks, random effects (standard deviation .1), trusted",
}
"""What the documentation shows for comparison: a naive test, and what a trusted order would claim of blocks."""


def unexplained(kept):
    """Return the cases with more errors than alpha allows whose verdicts name no assumption that the streams break."""
    found = []
    for name, row in kept.items():
        rate = max(row["errors"].values(), default=0) / row["streams"]
        named = row["breaks"] and row["unnamed"] == 0
        if (
            rate > ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / row["streams"])
            and not named
            and name not in OTHER_WATCHERS
        ):
            found.append(name)
    return found


def without_assumptions():
    """Return the kept rates as if no sentence named an assumption."""
    kept = json.loads(RATES.read_text(encoding="utf-8"))
    return {name: row | {"breaks": ""} for name, row in kept.items()}


BROKEN = unexplained(without_assumptions())
"""The cases above the bound that are no other watchers."""


@pytest.mark.smoke
def test_the_kept_rates_hold_what_is_promised():
    kept = json.loads(RATES.read_text(encoding="utf-8"))
    assert set(kept) == set(CASES), "run `python -m tests.calibration`"
    assert {name: row["breaks"] for name, row in kept.items()} == {name: each.breaks for name, each in CASES.items()}
    assert unexplained(kept) == []
    for name, row in kept.items():
        assert not CASES[name].promised or not unexplained({name: row | {"breaks": ""}}), name
        assert row["unnamed"] == 0, f"{name}: a sentence does not name what the stream breaks"


@pytest.mark.smoke
@pytest.mark.parametrize(
    "change", [{"breaks": ""}, {"unnamed": 1}], ids=["no assumption", "a sentence without the assumption"]
)
def test_a_high_rate_without_a_named_assumption_is_found(change):
    kept = json.loads(RATES.read_text(encoding="utf-8"))
    assert len(BROKEN) == 19
    assert all(CASES[name].table == "breaking" for name in BROKEN)
    assert unexplained({name: row | change for name, row in kept.items()}) == BROKEN


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_the_sentence_of_a_false_verdict_names_the_assumption(name):
    case, claims = CASES[name], []
    for number in range(200):
        claims += [claim for stream in case.board(number) for claim in stream]
        if any(case.breaks in claim.sentence for claim in claims):
            break
    assert claims, "no stream of the case ended in a false verdict"
    assert any(case.breaks in claim.sentence for claim in claims)
    assert all(case.names(claim) for claim in claims)


# --- rules that are broken on purpose -----------------------------------------------------------------------------------------------------


def change_the_loops(monkeypatch, *changes):
    """Let the interpreter run the loops with other lines."""
    texts = {each: Path(each.__file__).read_text(encoding="utf-8") for each in (evidence, bets, kernels)}
    for line, other in changes:
        assert any(line in text for text in texts.values())
        texts = {each: text.replace(line, other) for each, text in texts.items()}
    for module in tuple(texts):
        name = module.__name__.rpartition(".")[2]
        changed = ModuleType(f"planted_{name}")
        monkeypatch.setitem(sys.modules, changed.__name__, changed)
        for word, put in (
            ("@compiled\n", ""),
            ("@entry\n", ""),
            ("from monitor.engine.loop.evidence ", "from planted_evidence "),
            ("from monitor.engine.loop.bets ", "from planted_bets "),
        ):
            texts[module] = texts[module].replace(word, put)
        exec(compile(texts[module], changed.__name__, "exec"), vars(changed))
        if hasattr(board, name):
            monkeypatch.setattr(board, name, changed)


def ignores_missing_items(monkeypatch):
    """Look at the exact p of the items so far, at any time."""
    line = "lead, trail = max(b, c), min(b, c) + missing\n"
    change_the_loops(monkeypatch, (line, "lead, trail = max(b, c), min(b, c)\n"))


NEED = "log(float(max(state.open[claim, family], 1)))"


def divides_by_nothing(monkeypatch):
    """Decide each pair of a family at alpha."""
    change_the_loops(monkeypatch, (NEED, f"0.0 if claim == FAMILY else {NEED}"))


def frees_every_weight(monkeypatch):
    """Free the weight of all open pairs with the first decision of a family."""
    freed = "state.open[claim, family] = 1 if claim == FAMILY else state.open[claim, family] - count[PENDING]\n"
    change_the_loops(monkeypatch, ("state.open[claim, family] -= count[PENDING]\n", freed))


def ignores_skips(monkeypatch):
    """Let the items that a model of a committed order skips count for nobody."""
    change_the_loops(
        monkeypatch,
        ("x in (ZERO, SKIPPED) and y in (ONE, SKIPPED)", "x == ZERO and y == ONE"),
        ("x in (ONE, SKIPPED) and y in (ZERO, SKIPPED)", "x == ONE and y == ZERO"),
    )


def settles_despite_skips(monkeypatch):
    """Let a skipped item bet a difference of 0 on who leads on all items."""
    change_the_loops(monkeypatch, ("sums[1] - sums[3], sums[4] - sums[2]", "sums[1] - sums[2], sums[1] - sums[2]"))


def narrows_intervals(monkeypatch):
    """Give each pair an interval at the threshold of its decision."""
    monkeypatch.setattr(intervals, "family_alpha", lambda table, at: np.exp(-table.log_family_threshold(at)))


def ten_models(quality):
    """Return a case of ten models under policy completion."""
    return Case("planted", str(quality), "completion", unequal(quality, capacity(10), ITEMS)["completion"])


PLANTED = [
    (ignores_missing_items, CASES["pairs: wins first, completion"]),
    (divides_by_nothing, ten_models([0.5] * 10)),
    (frees_every_weight, ten_models([0.82] * 5 + [0.3] * 5)),
    (ignores_skips, CASES["pairs: losses skipped, committed"]),
    (narrows_intervals, CASES["family intervals: any of the 10 pairs of five models, gaps .2 to .8, completion"]),
    (settles_despite_skips, CASES["settled: losses skipped, committed, 2 models"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "case"), PLANTED)
def test_a_broken_rule_is_detected(rule, case, monkeypatch):
    streams = 3 * STREAMS
    assert max(errors_by_family(case.simulate(streams)).values(), default=0) <= most(streams)
    rule(monkeypatch)
    assert max(errors_by_family(case.simulate(streams)).values(), default=0) > most(streams)


# --- the diagnostic of the order ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trusted_in_blocks_is_held():
    """Blocks of clusters that say which they are: the diagnostic holds the benchmark, and takes back what was decided."""
    rng = np.random.default_rng(33)
    for _ in range(STREAMS):
        benchmark = fold(trouble(rng, clustered(rng)), order="trusted", block=BLOCK)
        kinds = [field.split(":")[2] for field in benchmark.changes]
        assert benchmark.order_refuted
        assert kinds.count("decided") == kinds.count("invalidated")


@pytest.mark.slow
def test_trusted_in_random_order_is_hardly_ever_held():
    rng = np.random.default_rng(34)
    held = 0
    for _ in range(STREAMS):
        item, *rest = trouble(rng, exchangeable(rng))
        # Which item has which cluster has nothing to do with when it comes.
        stream = rng.permutation(ITEMS)[item], *rest
        held += fold(stream, order="trusted", block=BLOCK, item_ids=listed()).order_refuted
    assert held <= binom.ppf(0.999, STREAMS, 0.01)


# --- the order of arrival under completion ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_completion_does_not_depend_on_the_order():
    # The verdict of a complete benchmark is a function of the final counts alone.
    rng, models = np.random.default_rng(32), 10
    for _ in range(2):
        scores = (rng.random((ITEMS, models)) < np.linspace(0.3, 0.8, models)).astype(int)
        item, model = (index.ravel() for index in np.indices(scores.shape))
        decided = []
        for order in (
            np.argsort(model, kind="stable"),
            np.argsort(scores.ravel(), kind="stable"),
            rng.permutation(item.size),
        ):
            arrays = item[order], model[order], scores.ravel()[order]
            # Nine events come three times, the last time with another score.
            items, which = (np.concatenate([x, x[:9], x[:9]]) for x in arrays[:2])
            again = np.concatenate([arrays[2], arrays[2][:9], 1 - arrays[2][:9]])
            benchmark = fold(
                (items, which, np.zeros_like(items), again), items=ITEMS, family={"policy": "capacity", "size": 45}
            )
            changes = [each for each in benchmark.changes.values() if each.procedure == "anytime_family"]
            decided.append({(each.model_a, each.model_b, each.after) for each in changes if each.kind == "decided"})
        assert decided[0] == decided[1] == decided[2]
        assert 0 < len(decided[0]) < 45
