"""Cases of the calibration: each makes one stream of equal models and says whether any pair was ever decided by the family procedure."""

from collections.abc import Callable

import numpy as np

from tests.calibration import streams
from tests.calibration.streams import ALPHA, BLOCK, FAMILIES, ITEMS, committed, decided, delayed, fold, peeking, trouble

Case = Callable[[np.random.Generator], bool]


def generator(name: str) -> np.random.Generator:
    """Random numbers of a case: always the same ones."""
    return np.random.default_rng(list(name.encode()))


def _guaranteed(kind: str) -> dict[str, Case]:
    family = FAMILIES[kind]

    def blocks(rng, scores=streams.clustered):
        return delayed(rng, trouble(rng, scores(rng)))

    def repeats(count, items):
        return lambda rng: decided(
            fold(trouble(rng, streams.repeated(rng, count, items)), order="trusted", repeats=count, family=family)
        )

    def regraded(epoch, *, pure, **policy):
        return lambda rng: streams.decided_in(streams.fold_regrades(rng, 3, family=family, **policy), epoch, pure=pure)

    return {
        f"trusted, random order, {kind}": lambda rng: decided(
            fold(trouble(rng, streams.exchangeable(rng)), order="trusted", family=family)
        ),
        f"committed, blocks, delayed wins, {kind}": lambda rng: decided(
            committed(rng, blocks(rng), block=BLOCK, family=family)
        ),
        f"completion, blocks, delayed wins, {kind}": lambda rng: decided(fold(blocks(rng), items=ITEMS, family=family)),
        f"graded, trusted, random order, {kind}": lambda rng: decided(
            fold(trouble(rng, streams.graded_exchangeable(rng)), order="trusted", scores="graded", family=family)
        ),
        f"graded, completion, blocks, delayed wins, {kind}": lambda rng: decided(
            fold(blocks(rng, streams.graded_clustered), items=ITEMS, scores="graded", family=family)
        ),
        f"regraded twice, trusted, the last generation, {kind}": regraded(2, pure=True, order="trusted"),
        f"regraded twice, trusted, while models have two epochs, {kind}": regraded(1, pure=False, order="trusted"),
        f"regraded twice, completion, the last generation, {kind}": regraded(2, pure=True, items=ITEMS),
        f"repeats 4, trusted, random order, {kind}": repeats(4, 120),
        f"repeats 8, trusted, random order, {kind}": repeats(8, 60),
    }


GUARANTEED: dict[str, Case] = {name: case for kind in FAMILIES for name, case in _guaranteed(kind).items()}
"""Error rate at most alpha."""

SETTINGS = {
    "random order": streams.exchangeable,
    "blocks, fixed effects": streams.clustered,
    "blocks, random effects": streams.random_effects,
}


def watchers(rng: np.random.Generator, setting: str) -> dict[str, bool]:
    """Make one stream and say who of several watchers decides any pair of it.

    `naive` looks at the exact test at level alpha after every ten items. `trusted` reads no clusters, so that the diagnostic is blind;
    `trusted, ever` and `trusted, left` do, and count what was decided before the order was refuted, and what is left of it.
    """
    scores = SETTINGS[setting](rng)
    stream = trouble(rng, scores)
    family = FAMILIES["capacity"]
    diagnosed = fold(stream, order="trusted", block=None if setting == "random order" else BLOCK, family=family)
    return {
        "naive": peeking(scores, ALPHA),
        "trusted": decided(fold(stream, order="trusted", family=family)),
        "trusted, ever": decided(diagnosed),
        "trusted, left": decided(diagnosed) and not diagnosed.order_refuted,
        "completion": decided(fold(stream, items=ITEMS, family=family)),
        "committed": decided(committed(rng, stream, block=BLOCK, family=family)),
    }
