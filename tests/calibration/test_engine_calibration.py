"""Error rates of the engine itself: whole streams of equal models through the fold, every pair of them watched at every event.

RANKWATCH_SLOW=1 runs 2,000 streams of each case; otherwise eight.
"""

import numpy as np
import pytest

from schemas.sentences import IGNORED
from tests.calibration.cases import BREAKING, GENERATIONS, GUARANTEED, SETTINGS, generator, watchers
from tests.calibration.streams import (
    ALPHA,
    BLOCK,
    FAMILIES,
    FULL,
    ITEMS,
    LISTED,
    MODELS,
    assert_at_most,
    clustered,
    decided,
    decided_in,
    decisions_of_last_generation,
    exchangeable,
    fold,
    peeking,
    trouble,
)

pytestmark = pytest.mark.slow

STREAMS = 2_000 if FULL else 8


@pytest.mark.parametrize("name", GUARANTEED)
def test_family_wise_error_rate(name):
    rng = generator(name)
    errors = [GUARANTEED[name](rng) for _ in range(STREAMS)]
    print(f"{name}: {np.mean(errors):.4f} of {STREAMS}")
    assert_at_most(errors, ALPHA)


@pytest.mark.parametrize("name", GENERATIONS)
def test_family_wise_error_rate_of_each_generation(name):
    rng = generator(name)
    benchmarks = (GENERATIONS[name](rng) for _ in range(STREAMS))
    families = [(epoch, pure) for epoch in range(5) for pure in (True, False) if epoch or pure]
    errors = np.array([[decided_in(each, *family) for family in families] for each in benchmarks])
    for (epoch, pure), errors_in in zip(families, errors.T, strict=True):
        print(f"{name}: {errors_in.mean():.4f} in {'generation' if pure else 'pairs of two epochs,'} {epoch}")
        assert_at_most(errors_in, ALPHA)
    print(f"{name}: {errors.any(axis=1).mean():.4f} in any of them, of {STREAMS}")


@pytest.mark.parametrize("name", BREAKING)
def test_a_broken_assumption_is_named(name):
    case, words = BREAKING[name]
    rng = generator(name)
    errors = []
    for _ in range(STREAMS):
        decisions = decisions_of_last_generation(case(rng))
        errors.append(any(change.procedure == "anytime_family" for change in decisions))
        # A decision that counts missing items against the leader does not rest on their being ignored.
        resting = [change for change in decisions if words is not IGNORED or not change.evidence.missing]
        assert all(words in change.sentence for change in resting)
    print(f"{name}: {np.mean(errors):.4f} of {STREAMS}")


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_other_watchers_decide(setting):
    rng = generator(setting)
    decisions = [watchers(rng, setting) for _ in range(STREAMS)]
    rate = {name: np.mean([each[name] for each in decisions]) for name in decisions[0]}
    print(f"{setting}: {rate} of {STREAMS}")
    # The streams can err: that is what they do to those who look at a test made for one look.
    assert rate["naive"] > 0.7
    for name in {
        "random order": ("trusted", "trusted, ever", "completion", "committed"),
        "blocks, fixed effects": ("completion", "committed"),
        "blocks, random effects": (),  # no claim about other clusters is made
    }[setting]:
        assert_at_most([each[name] for each in decisions], ALPHA)
    if setting != "random order":
        assert rate["trusted"] > 4 * ALPHA  # what the order does to those who trust it
        assert rate["trusted, left"] == 0


def test_one_pair_by_itself_is_not_enough_for_all():
    rng = np.random.default_rng(30)
    single, adjusted = [], []
    for _ in range(STREAMS if FULL else 24):
        scores = exchangeable(rng)
        single.append(decided(fold(trouble(rng, scores), order="trusted", family=FAMILIES["capacity"]), "anytime"))
        adjusted.append(peeking(scores, ALPHA / 45))
    assert np.mean(single) > 2 * ALPHA
    if FULL:
        assert np.mean(adjusted) > ALPHA + 2 * np.sqrt(ALPHA / STREAMS)


def test_trusted_in_blocks_is_held():
    """Blocks of clusters that say which they are: the diagnostic holds the benchmark, and takes back what was decided."""
    rng = np.random.default_rng(33)
    held = []
    for _ in range(STREAMS):
        benchmark = fold(trouble(rng, clustered(rng)), order="trusted", block=BLOCK)
        held.append(benchmark.order_refuted)
        assert {change.kind for change in benchmark.changes.values()} <= {"decided", "reversed", "invalidated"}
        kinds = [field.split(":")[2] for field in benchmark.changes]
        assert not benchmark.order_refuted or kinds.count("decided") == kinds.count("invalidated")
    assert np.mean(held) > 0.99


def test_trusted_in_random_order_is_hardly_ever_held():
    rng = np.random.default_rng(34)
    held = []
    for _ in range(STREAMS):
        item, *rest = trouble(rng, exchangeable(rng))
        # Which item has which cluster has nothing to do with when it comes.
        stream = rng.permutation(ITEMS)[item], *rest
        held.append(fold(stream, order="trusted", block=BLOCK, item_ids=LISTED).order_refuted)
    assert_at_most(held, 0.01)


def test_completion_does_not_depend_on_the_order():
    # The verdict of a complete benchmark is a function of the final counts alone.
    rng = np.random.default_rng(32)
    for _ in range(5 if FULL else 2):
        scores = (rng.random((ITEMS, MODELS)) < np.linspace(0.3, 0.8, MODELS)).astype(int)
        item, model = (index.ravel() for index in np.indices(scores.shape))
        latches = []
        for order in (
            np.argsort(model, kind="stable"),
            np.argsort(scores.ravel(), kind="stable"),
            rng.permutation(item.size),
        ):
            arrays = item[order], model[order], scores.ravel()[order]
            # Nine events come three times, the last time with another score.
            items, models = (np.concatenate([x, x[:9], x[:9]]) for x in arrays[:2])
            again = np.concatenate([arrays[2], arrays[2][:9], 1 - arrays[2][:9]])
            stream = items, models, np.zeros_like(items), again
            benchmark = fold(stream, items=ITEMS, family=FAMILIES["capacity"])
            names = [c.model for c in benchmark.contestants]
            sides = {
                frozenset({names[i], names[j]}): names[i] if side > 0 else names[j]
                for j in range(MODELS)
                for i in range(j)
                if (side := benchmark.latched["anytime_family"][j * (j - 1) // 2 + i])
            }
            latches.append(sides)
        assert latches[0] == latches[1] == latches[2]
        assert 0 < len(latches[0]) < 45
