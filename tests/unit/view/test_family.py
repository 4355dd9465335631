"""What family-wise verdicts assume of the models that join, and the models outside a declared family."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.pairs.intervals import unlisted, unscored
from monitor.words import header
from monitor.words.assumptions import TEXTS
from monitor.words.header import family, registration
from schemas.records.declaration import Spec
from stats.order import committed_order
from tests.fold_log import FoldLog, packed

WITHIN = f"either at most 9 pairs join, or {TEXTS['joined']}"
ONE_SIDED = np.tile([1, 0, 0], (200, 1))
MODELS = {"models": ["a", "b", "c"]}
PAIRS = [["a", "b"], ["a", "c"]]


def folded(models="abc", scores=ONE_SIDED, arrival=None, **spec):
    log = FoldLog({"declare": "bench", "order": "completion" if "items" in spec else "trusted", **spec})
    log.send(packed(scores, models, items=arrival))
    return log


def first_pair(report):
    return next(pair for pair in report.pairs if (pair.model_a, pair.model_b) == ("a", "b"))


@pytest.mark.parametrize("policy", [{}, {"items": 200}])
@pytest.mark.parametrize(
    ("declared", "assumed"),
    [
        ("spending", TEXTS["joined"]),
        ({"policy": "spending", "pairs": PAIRS}, TEXTS["joined"]),
        ({"pairs": PAIRS}, None),
        ({"policy": "capacity", "size": 9}, WITHIN),
        ({"policy": "capacity", "pairs": PAIRS}, None),
        (MODELS, None),
    ],
)
def test_family_wise_verdicts_name_what_they_assume_of_the_models_that_join(policy, declared, assumed):
    log = folded(family=declared, **policy)
    report = benchmark_report(board_view(log.bench), pairs="all")
    reason = first_pair(report).reason
    sentences = {
        field.split(":")[1]: change.sentence for field, change in log.bench.changes.items() if change.kind == "decided"
    }
    for sentence in (reason, sentences["anytime_family"]):
        assert sentence.endswith(f", and that {assumed}.") if assumed else TEXTS["joined"] not in sentence
    assert TEXTS["joined"] not in sentences["anytime"]
    assert report.family_assumption == assumed
    assert (assumed or "None") in str(registration(report))


def test_a_capacity_that_was_exceeded_gives_no_verdict_beyond_it_and_names_the_assumption():
    report = benchmark_report(board_view(folded(family={"policy": "capacity", "size": 2}).bench), pairs="all")
    assert (report.family_assumption, report.family_outside) == (TEXTS["joined"], 1)
    assert first_pair(report).reason.endswith(f", and that {TEXTS['joined']}.")
    assert family(report) == "capacity, 2 pairs; 1 pair outside it, without family-wise verdicts"


def test_a_pair_that_is_decided_only_on_its_own_assumes_nothing_of_other_models():
    report = benchmark_report(
        board_view(folded(scores=np.tile([1, 0, 0], (8, 1)), family={"policy": "capacity", "size": 900}).bench)
    )
    assert report.pairs[0].decided.anytime == "a"
    assert report.pairs[0].decided.anytime_family is None
    assert TEXTS["joined"] not in report.pairs[0].reason


@pytest.mark.parametrize("declared", ["spending", MODELS, {"policy": "capacity", "size": 3}])
def test_complete_files_need_neither(declared):
    log = folded(order="none", family=declared)
    report = benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)
    assert first_pair(report).decided.anytime_family == "a"
    assert TEXTS["joined"] not in first_pair(report).reason
    assert (report.family.size, report.family_assumption) == (3, None)


def test_settled_by_bets_names_it_and_settled_for_certain_does_not():
    items = [str(k) for k in range(200)]
    order = {"order": {"policy": "committed", "seed": "s"}, "item_ids": items}
    for declared, assumed in (("spending", True), (MODELS, False)):
        log = folded(family=declared, arrival=committed_order("s", items), **order)
        settled = [
            change for change in log.bench.changes.values() if change.kind == "settled" and change.after != "tie"
        ]
        assert settled
        assert all(change.evidence.log_e is not None for change in settled)
        assert all((TEXTS["joined"] in change.sentence) == assumed for change in settled)
    certain = folded(items=200).bench.changes["0:settled:settled"]
    assert TEXTS["joined"] not in certain.sentence


def test_declared_models_share_alpha_equally_in_any_order_of_arrival_and_others_take_nothing():
    thresholds = set()
    for order in itertools.permutations("abcx"):
        log = folded(models=order, scores=np.tile([1, 1, 1, 1], (3, 1)), family={"models": ["c", "a", "b", "late"]})
        table = benchmark_report(board_view(log.bench), pairs="all")
        assert table.family.size == 6
        for pair in table.pairs:
            outside = "x" in {pair.model_a, pair.model_b}
            assert (pair.family_threshold is None) == outside
            if outside:
                assert "x is not among the 4 declared models" in pair.reason
            else:
                thresholds.add(round(pair.family_threshold, 12))
        assert table.family_outside == 3
    assert thresholds == {round(0.05 / 6, 12)}


def test_sending_the_best_looking_pair_first_does_not_change_what_is_decided():
    rng = np.random.default_rng(5)
    names = [f"m{k}" for k in range(12)]
    scores = (rng.random((400, 12)) < 0.5).astype(float)
    gaps = np.abs(scores.mean(axis=0)[:, None] - scores.mean(axis=0))
    best = np.unravel_index(gaps.argmax(), gaps.shape)
    attack, honest = (FoldLog({"declare": "bench", "items": 400, "family": {"models": names}}) for _ in range(2))
    attack.send(packed(scores[:1, best], [names[k] for k in best]))
    for log in (attack, honest):
        log.send(packed(scores, names))

    def verdicts(log):
        pairs = benchmark_report(board_view(log.bench), pairs="all").pairs
        return {(pair.model_a, pair.model_b): (pair.decided.anytime_family, pair.family_threshold) for pair in pairs}

    assert verdicts(attack) == verdicts(honest)


def test_a_misspelt_model_is_named_with_the_declared_one():
    log = folded(models=("Gemma-7B", "qwen2.5", "other"), family={"models": ["gemma_7b", "qwen-2.5", "llama", "opt"]})
    assert unlisted(board_view(log.bench)) == {"Gemma-7B": "gemma_7b", "qwen2.5": "qwen-2.5", "other": None}
    assert unscored(board_view(log.bench)) == ["gemma_7b", "qwen-2.5", "llama", "opt"]
    (pair, *_) = benchmark_report(board_view(log.bench)).pairs
    assert "Gemma-7B and " in pair.reason
    assert "the declared model with the nearest name is gemma_7b" in pair.reason
    assert unlisted(board_view(folded().bench)) == {}


def test_scores_of_a_newer_epoch_stay_in_the_declared_family():
    log = folded(family=MODELS)
    log.send(
        *(
            {"benchmark": "bench", "item_id": str(k), "model": m, "score": int(m == "a"), "epoch": 1}
            for k in range(60)
            for m in "abc"
        )
    )
    report = benchmark_report(board_view(log.bench), pairs="all")
    assert [pair.decided.anytime_family for pair in report.pairs if pair.epoch_a == 1][:2] == ["a", "a"]
    assert "reasons that do not depend on who was ahead" in report.pairs[0].reason


@pytest.mark.parametrize("policy", [{}, {"items": 200}])
def test_declared_pairs_share_alpha_equally_unless_spending_is_named(policy):
    """A list without a policy was spent in the order of arrival, in silence."""
    listed = benchmark_report(board_view(folded(family={"pairs": PAIRS}, **policy).bench), pairs="all")
    spent = benchmark_report(
        board_view(folded(family={"policy": "spending", "pairs": PAIRS}, **policy).bench), pairs="all"
    )
    assert (listed.family.policy, listed.family.size) == ("capacity", 2)
    assert spent.family.policy == "spending"
    assert family(listed) == "capacity, 2 pairs; 1 pair outside it, without family-wise verdicts"


@pytest.mark.parametrize("declared", [{"pairs": PAIRS}, {"policy": "spending", "pairs": PAIRS}, MODELS])
@pytest.mark.parametrize("omitted", [{}, {"exclude_defaults": True}, {"exclude_unset": True}, {"exclude_none": True}])
def test_a_stored_family_keeps_its_policy(declared, omitted):
    spec = Spec(family=declared)
    assert Spec.model_validate(spec.model_dump(mode="json", **omitted)).family == spec.family
    # A state that names the policy, as every stored declaration does, keeps it.
    stored = {"policy": "spending", "size": None, "pairs": PAIRS}
    assert Spec.model_validate({"family": stored}).family.policy == "spending"


# --- generations --------------------------------------------------------------------------------------------------------------------------


def board(rng, models, items=150):
    """Scores of models of which neighbours are close."""
    return (rng.random((items, len(models))) < np.linspace(0.35, 0.75, len(models))).astype(int)


def decisions(report):
    return {(p.model_a, p.model_b): (p.decided.anytime_family, round(p.family_threshold, 12)) for p in report.pairs}


@pytest.mark.parametrize("spec", [{}, {"items": 150, "order": "completion"}])
def test_every_generation_in_files_is_a_family_with_its_own_alpha(spec):
    """All pairs of a report were one family, where the pairs of each generation are one under `watch`."""
    rng = np.random.default_rng(3)
    old, new = board(rng, "abcdef"), board(rng, "uvwxyz")

    def read(*parts):
        log = FoldLog(*([{"declare": "bench", **spec}] if spec else []))
        for scores, models, epoch in parts:
            log.send(packed(scores, models, epoch=epoch))
        log.bench.complete_files = True
        return benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)

    both = read((old, "abcdef", 0), (new, "uvwxyz", 1))
    apart = decisions(read((old, "abcdef", 0))) | decisions(read((new, "uvwxyz", 1)))
    found = decisions(both)
    assert {pair: found[pair] for pair in apart} == apart
    assert {side for side, _ in apart.values()} == {"a", None}
    assert (both.family.size, both.family.families) == (36, 3)
    assert "one for each generation of scores" in family(both)
    assert "in each of 3 families" in header.assumed(both)


def test_a_report_of_files_and_the_latches_agree_on_every_generation():
    """Half of the models are scored again: pairs of the old, of the new and of both generations, under declared models."""
    rng = np.random.default_rng(4)
    names, again = "abcdefghij", "bdfhj"
    first, second = board(rng, names), board(rng, again)
    declared = {"family": {"models": list(names)}}
    logs = [FoldLog({"declare": "bench", **declared, **spec}) for spec in ({}, {"items": 150, "order": "completion"})]
    for log in logs:
        # What is scored again comes first, so that no decision on its old scores has lowered a threshold.
        log.send(packed(second, again, epoch=1))
        log.send(packed(first, names))
    files, live = (benchmark_report(board_view(log.bench), pairs="all", assert_complete=True) for log in logs)
    assert decisions(files) == decisions(live)
    assert files.family == live.family
    assert files.family.families == 3
    assert {side for side, _ in decisions(files).values()} == {"a", None}


def test_live_the_example_of_the_first_tutorial_is_decided_as_in_a_report():
    """Step 4 of docs/tutorials/first-ranking.md: the same pairs are decided, and the tie needs a larger test."""
    lines = (Path(__file__).parents[3] / "deploy/compose/examples/demo.jsonl").read_bytes().splitlines()
    log = FoldLog()
    for line in lines:
        log.send(line)
    live = benchmark_report(board_view(log["demo"]), pairs="all")
    log["demo"].complete_files = True
    files = benchmark_report(board_view(log["demo"]), pairs="all", assert_complete=True)
    decided, items = (
        [[getattr(pair, field) for pair in each.pairs] for each in (live, files)] for field in ("status", "needs_items")
    )
    assert decided == [["decided", "decided", "exhausted"]] * 2
    assert items[0][2] > items[1][2]
