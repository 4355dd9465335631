"""Cases of the calibration: each makes one stream of equal models and says whether any pair was ever decided by the family procedure."""

from collections.abc import Callable

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from schemas.sentences import ASSUMPTIONS, IGNORED, REPEATED, RESCORED
from stats import exact_p
from stats.eprocess import log_leader_bound
from tests.calibration import streams
from tests.calibration.streams import (
    ALPHA,
    BLOCK,
    FAMILIES,
    ITEMS,
    LISTED,
    committed,
    decided,
    delayed,
    fold,
    peeking,
    trouble,
)

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

    def uneven(rng, most):
        return streams.labelled(streams.some_repeats(rng, trouble(rng, streams.repeated(rng, most, 120)), most))

    def labels(rng):
        return streams.labelled(trouble(rng, streams.repeated(rng, 4, 120)))

    def ended(make, **spec):
        return lambda rng: decided(fold(make(rng), ends=True, family=family, **spec))

    def gaps(rng, scores=streams.exchangeable):
        return streams.without_some(rng, trouble(rng, scores(rng)), 0.2)

    def nulls_first(rng, late=lambda model, score: 0.3 + 0 * model, skipped=0):
        return streams.filled(rng, trouble(rng, streams.exchangeable(rng), skipped), late)

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
        f"repeats 4, trusted, random order, {kind}": repeats(4, 120),
        f"repeats 8, trusted, random order, {kind}": repeats(8, 60),
        f"repeats 4 of any labels, ended, trusted, {kind}": ended(labels, order="trusted", repeats=4),
        f"repeats 4 of any labels, ended, completion, {kind}": ended(labels, items=120, repeats=4),
        f"1 to 4 of 4 repeats, ended, trusted, {kind}": ended(lambda rng: uneven(rng, 4), order="trusted", repeats=4),
        f"1 to 4 of 4 repeats, ended, completion, {kind}": ended(lambda rng: uneven(rng, 4), items=120, repeats=4),
        f"1 to 8 repeats, all, ended, trusted, {kind}": ended(
            lambda rng: uneven(rng, 8), order="trusted", repeats="all"
        ),
        f"1 to 8 repeats, all, ended, completion, {kind}": ended(lambda rng: uneven(rng, 8), items=120, repeats="all"),
        f"a fifth missing, ignorable, ended, completion, {kind}": ended(gaps, items=ITEMS, missing="ignorable"),
        f"graded, a fifth missing, ignorable, ended, completion, {kind}": ended(
            lambda rng: gaps(rng, streams.graded_exchangeable), items=ITEMS, missing="ignorable", scores="graded"
        ),
        f"a fifth missing, ignorable, ended, committed, {kind}": ended(
            gaps, item_ids=LISTED, order={"policy": "committed", "seed": "a seed"}, missing="ignorable"
        ),
        f"nulls filled later, trusted, {kind}": lambda rng: decided(
            fold(nulls_first(rng, skipped=0.02), order="trusted", family=family)
        ),
        f"wins null first, filled late, completion, {kind}": lambda rng: decided(
            fold(nulls_first(rng, streams.wins_late), items=ITEMS, family=family)
        ),
        f"wins null first, filled late, committed, {kind}": lambda rng: decided(
            committed(rng, nulls_first(rng, streams.wins_late), family=family)
        ),
    }


def _generations(kind: str) -> dict[str, Callable[[np.random.Generator], Benchmark]]:
    family = FAMILIES[kind]
    return {
        f"regraded, trusted, {kind}": lambda rng: streams.fold_regrades(rng, 5, order="trusted", family=family),
        f"regraded, completion, {kind}": lambda rng: streams.fold_regrades(rng, 5, items=ITEMS, family=family),
        f"stopped at its best and inherited, trusted, {kind}": lambda rng: streams.fold_best_stopped(
            rng, 5, order="trusted", family=family
        ),
    }


GUARANTEED: dict[str, Case] = {name: case for kind in FAMILIES for name, case in _guaranteed(kind).items()}
"""Error rate at most alpha."""

GENERATIONS = {name: case for kind in FAMILIES for name, case in _generations(kind).items()}
"""Benchmarks of five epochs: the error rate of each generation is at most alpha."""


def _breaking() -> dict[str, tuple[Callable[[np.random.Generator], Benchmark], str]]:
    family = FAMILIES["capacity"]

    def chosen_repeats(rng, **spec):
        scores = streams.repeated(rng, 8, ITEMS)
        return fold(
            streams.until_right(trouble(rng, scores, 0), scores), ends=True, repeats="all", family=family, **spec
        )

    def stopped(stop):
        return lambda rng: streams.fold_stopped(rng, 1_000, stop, missing="ignorable")

    def wrong_answers(rng, scores):
        return (
            (scores[:, :, 0] == 0) & (np.arange(streams.MODELS) % 2 == 0) & (rng.random((ITEMS, streams.MODELS)) < 0.6)
        )

    def wrong_answers_missing(rng):
        scores = streams.exchangeable(rng)
        # Every pair lacks something, so that its verdict rests on what is ignored.
        lost = wrong_answers(rng, scores) | (rng.random((ITEMS, streams.MODELS)) < 0.1)
        item, model, *_ = stream = trouble(rng, scores, 0)
        kept = tuple(x[~lost[item, model]] for x in stream)
        return fold(kept, ends=True, items=ITEMS, missing="ignorable", family=family)

    def wrong_answers_null(rng):
        scores = streams.exchangeable(rng)
        null = wrong_answers(rng, scores)
        item, model, repeat, score = trouble(rng, scores, 0)
        return fold((item, model, repeat, np.where(null[item, model], -1, score)), order="trusted", family=family)

    def wins_filled_late(rng):
        stream = streams.filled(rng, trouble(rng, streams.exchangeable(rng), 0), streams.wins_late)
        return fold(stream, order="trusted", family=family)

    return {
        "repeats until right, ended, trusted": (lambda rng: chosen_repeats(rng, order="trusted"), REPEATED),
        "repeats until right, ended, completion": (lambda rng: chosen_repeats(rng, items=ITEMS), REPEATED),
        "wins null first, filled late, trusted": (wins_filled_late, ASSUMPTIONS["trusted"]),
        "wrong answers null, trusted": (wrong_answers_null, ASSUMPTIONS["trusted"]),
        "wrong answers missing, ignorable, ended, completion": (wrong_answers_missing, IGNORED),
        "ended once p <= .05, ignorable, completion, 1,000 items": (
            stopped(lambda b, c: exact_p(b, c) <= ALPHA),
            IGNORED,
        ),
        "ended once e >= 20, ignorable, completion, 1,000 items": (
            stopped(lambda b, c: log_leader_bound(b, c, 0) >= -np.log(ALPHA)),
            IGNORED,
        ),
        "wrong answers of one model scored again, trusted": (
            lambda rng: streams.fold_one_sided(rng, 3, order="trusted", family=family),
            RESCORED,
        ),
        "wrong answers of one model scored again, completion": (
            lambda rng: streams.fold_one_sided(rng, 3, items=ITEMS, family=family),
            RESCORED,
        ),
    }


BREAKING = _breaking()
"""Streams that break an assumption, and the words of the verdict's sentence that name it."""

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
