"""Battles through the engine: equal models under what a matchmaker, positions, ties and voters may do, and under what they may not.

With 2,000 streams each: 2, 0, 2 and 0 families with a false decision, 73 for one pair (3.7 %); 90 of 100 where the position is fixed.
"""

import numpy as np
import pytest

from tests.fold_log import FoldLog

STREAMS = 100
MODELS, BATTLES = 4, 240
PAIRS = [(i, j) for i in range(MODELS) for j in range(i + 1, MODELS)]


def chases_the_lead(lead, _rng):
    """Let the pair with the largest lead meet again: a matchmaker that looks at every past result."""
    return int(np.argmax(np.abs(lead)))


def at_random(_lead, rng):
    return int(rng.integers(len(PAIRS)))


def stream(rng, matchmaker, *, bias=0.0, fixed_position=False, ties=0.2, votes=1):
    """Battles of equal models: the answer shown first wins with probability 1/2 + bias, and is that of either model by chance."""
    lead = np.zeros(len(PAIRS))
    for prompt in range(BATTLES):
        pair = matchmaker(lead, rng)
        a, b = PAIRS[pair]
        first = "a" if fixed_position or rng.random() < 0.5 else "b"
        draw = rng.random()
        other = "b" if first == "a" else "a"
        winner = "tie" if draw < ties else first if draw < ties + (1 - ties) * (0.5 + bias) else other
        lead[pair] += {"a": 1, "b": -1, "tie": 0}[winner]
        battle = {
            "benchmark": "bench",
            "item_id": f"p{prompt}",
            "model_a": f"m{a}",
            "model_b": f"m{b}",
            "winner": winner,
        }
        # A voter that votes again repeats itself.
        yield from (battle | {"position": first, "repeat": k} for k in range(votes))


def false_decisions(streams, matchmaker, declared=(), procedure="anytime_family", **options):
    """In how many streams equal models are decided: any pair of the family, or the first two on their own."""
    wrong = 0
    for seed in range(streams):
        log = FoldLog({"declare": "bench", "order": "trusted", **dict(declared)})
        log.send(*stream(np.random.default_rng([57, seed]), matchmaker, **options))
        wrong += any(
            change.procedure == procedure
            and (procedure == "anytime_family" or {change.model_a, change.model_b} == {"m0", "m1"})
            for change in log.bench.changes.values()
        )
    return wrong


def most(streams, alpha=0.05):
    """The count that a rule of size alpha exceeds with a probability of about 1 %."""
    return streams * alpha + 2.4 * (streams * alpha * (1 - alpha)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("matchmaker", "declared", "options"),
    [
        (at_random, {}, {}),
        (chases_the_lead, {}, {}),
        (chases_the_lead, {}, {"bias": 0.2, "ties": 0.0}),
        (chases_the_lead, {"repeats": 3}, {"votes": 3}),
        (chases_the_lead, {}, {"procedure": "anytime"}),
    ],
    ids=["random pairs", "pairs by past results", "position bias", "voters who vote three times", "one pair"],
)
def test_equal_models_are_decided_within_alpha(matchmaker, declared, options):
    assert false_decisions(STREAMS, matchmaker, declared, **options) <= most(STREAMS)


@pytest.mark.slow
def test_a_fixed_position_with_a_bias_is_what_the_policy_does_not_allow():
    assert false_decisions(STREAMS, chases_the_lead, bias=0.2, fixed_position=True) > most(STREAMS)
