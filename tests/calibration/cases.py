"""Cases of the calibration: each makes streams, and returns what the engine falsely claims of them.

`python -m tests.calibration` runs 2,000 streams of each and writes the tables of the documentation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from monitor.words.assumptions import TEXTS, clause
from schemas.results.assumptions import Assumption
from stats import committed_order, exact_p
from stats.evidence.eprocess import log_leader_bound
from tests.calibration import races, streams
from tests.calibration.claims import excluded_gaps, excluded_ranks, opponents
from tests.calibration.streams import (
    ALPHA,
    BLOCK,
    ITEMS,
    MODELS,
    Board,
    Wrong,
    by_opponents,
    capacity,
    fold,
    fold_records,
    listed,
    named,
    of_family,
    packed,
    plain,
    trouble,
    under,
    wrong,
)

Rng = np.random.Generator
Found = list[list[Wrong]]
Run = Callable[[Rng], Found]
Rows = dict[str, dict[str, Run]]

PAIRS = 10
"""Opponents of a board whose pairs are judged each on its own: as many streams at a time."""

LOOKED_AT = 20
"""The same, where intervals are looked at."""

MANY = 300
"""Items where a producer stops."""

SPENDING = {"policy": "spending"}


@dataclass(frozen=True)
class Case:
    """One cell of a table: what is tried under a policy, and which assumption it breaks, if any."""

    table: str
    row: str
    column: str
    run: Run
    """Makes some streams, and returns the false claims about each."""
    breaks: str = ""
    """Words in the sentence of every false claim that rests on the assumption that the streams break."""
    promised: bool = True
    """Whether the error rate is at most alpha, in each family of its own."""

    @property
    def name(self) -> str:
        """Name the case."""
        return f"{self.table}: {self.row}, {self.column}"

    def board(self, number: int) -> Found:
        """Return the false claims about the streams of a board; the name and the number determine the random numbers."""
        return self.run(np.random.default_rng([*self.name.encode(), number]))

    def simulate(self, size: int) -> Found:
        """Return the false claims about some streams, of the first boards."""
        found, number = [], 0
        while len(found) < size:
            found += self.board(number)
            number += 1
        return found[:size]

    def names(self, claim: Wrong) -> bool:
        """Return whether the sentence of a false claim names what the streams break; where all items count, nothing is ignored."""
        return self.breaks in claim.sentence or (self.breaks == TEXTS["ignored"] and claim.counted in {ITEMS, MANY})


def errors_by_family(found: Found) -> dict[str, int]:
    """Count the streams with a false claim in each family."""
    families = sorted({each.family for stream in found for each in stream})
    return {family: sum(any(x.family == family for x in stream) for stream in found) for family in families}


def _policies(
    make: Callable[[Rng], streams.Stream], *names: str, items: int = ITEMS, opponents_of: int = 0, **spec: object
) -> dict[str, Run]:
    """Fold what is made under some policies; `opponents_of` models are judged pair by pair, or the board is one family."""
    claim = "anytime" if opponents_of else "anytime_family"

    def run(rng, policy):
        benchmark = fold(make(rng), **under(rng, policy, items), **spec)
        found = wrong(benchmark, claim=claim)
        return by_opponents(found, opponents_of) if opponents_of else [found]

    return {name: partial(run, policy=name) for name in names}


EVERY = "trusted", "committed", "completion"


def _copies(rng: Rng, policy: str, models: int, *, units: bool) -> Found:
    """Fold five copies of each item, which are declared as units or not; each two opponents are judged by themselves."""
    scores, unit_of = streams.copied(rng, models)
    spec = under(rng, policy, streams.UNITS if units and policy == "completion" else streams.UNITS * streams.COPIES)
    spec |= {"family": {"policy": "capacity", "size": models**2}} | ({"units": unit_of} if units else {})
    return by_opponents(wrong(fold(plain(scores), **spec), claim="anytime"), models)


def _pairs() -> Rows:
    """Pairs of equal models, each on its own: alpha for the pair."""
    models = 2 * PAIRS
    pairs = partial(_policies, opponents_of=models, family={"policy": "capacity", "size": models**2})
    ended = partial(pairs, ends=True)
    ignored = partial(ended, missing="ignorable")

    def equal(rng, items=ITEMS):
        return streams.exchangeable(rng, items, models)

    def graded(rng):
        return streams.graded_exchangeable(rng, ITEMS, models)

    def anything(rng, scores=equal):
        return trouble(rng, scores(rng))

    def blocks(rng, scores=streams.clustered):
        return streams.delayed(rng, trouble(rng, scores(rng, models)))

    def repeats(rng, count):
        return trouble(rng, streams.repeated(rng, count, 60, models))

    def uneven(rng, most):
        return streams.labelled(streams.some_repeats(rng, repeats(rng, most), most))

    def gaps(rng, scores=equal):
        return streams.without_some(rng, anything(rng, scores), 0.2)

    def nulls_first(rng, late=lambda model, score: 0.3 + 0 * model, skipped=0):
        return streams.filled(rng, trouble(rng, equal(rng), skipped), late)

    def wins_first(rng):
        return streams.wins_first(rng, equal(rng))

    def skipped(rng):
        return plain(streams.bad_news_skipped(equal(rng)))

    def behind(rng):
        return streams.up_to(lambda b, c: c - b >= 4, equal(rng))

    def small(rng):
        return streams.up_to(lambda b, c: exact_p(b, c) <= ALPHA, equal(rng, MANY))

    wins_null = partial(nulls_first, late=streams.wins_late)
    fours, eights = partial(uneven, most=4), partial(uneven, most=8)
    return {
        "random order": pairs(anything, *EVERY),
        "blocks of clusters (fixed effects of mean 0), delayed wins": pairs(blocks, "committed", "completion"),
        "wins first": pairs(wins_first, "committed", "completion"),
        "losses skipped": pairs(skipped, "committed", "completion"),
        "models join one after another": pairs(
            lambda rng: streams.one_after_another(equal(rng)), "committed", "completion"
        ),
        "30 % of the scores null first, filled later": pairs(partial(nulls_first, skipped=0.02), "trusted"),
        "60 % of the wins null first, filled late": pairs(wins_null, "committed", "completion"),
        "the producer ends the runs once a model trails by 4": ended(behind, *EVERY),
        "the producer ends the runs once p <= .05, 300 items": ended(small, *EVERY, items=MANY),
        'the same, `missing: "ignorable"`': ignored(small, "committed", items=MANY),
        "a fifth of the items missing at random, `ignorable`, runs ended": ignored(gaps, "committed", "completion"),
        "the best half of twice the items comes first, a random half is listed": {"completion": _best_of_listed},
        "graded scores, random order": pairs(
            partial(anything, scores=graded), "trusted", "completion", scores="graded"
        ),
        "graded scores, blocks of clusters, delayed wins": pairs(
            partial(blocks, scores=streams.graded_clustered), "completion", scores="graded"
        ),
        "graded scores, a fifth missing at random, `ignorable`, runs ended": ignored(
            partial(gaps, scores=graded), "completion", scores="graded"
        ),
        "five copies of each of 60 items, declared as units": {
            policy: partial(_copies, policy=policy, models=models, units=True) for policy in EVERY
        },
        "4 repeats of 60 items": pairs(partial(repeats, count=4), "trusted", items=60, repeats=4),
        "1 to 4 of 4 repeats, any labels, runs ended": ended(fours, "trusted", "completion", items=60, repeats=4),
        '1 to 8 repeats, `repeats: "all"`, any labels, runs ended': ended(
            eights, "trusted", "completion", items=60, repeats="all"
        ),
    }


def _weights() -> Rows:
    """Pairs whose weighted scores are equal, each on its own: three clusters of 60, 30 and 10 items count the same."""
    models = 2 * PAIRS
    spec = {
        "weights": "equal-clusters",
        "clusters": streams.UNEVEN,
        "family": {"policy": "capacity", "size": models**2},
        "item_clusters": streams.uneven_clusters(),
    }

    def run(rng, gap, policy, arrive):
        stream = arrive(rng, streams.weighted(rng, gap, models))
        return by_opponents(wrong(fold(stream, order=policy, **spec), claim="anytime"), models)

    def shuffled(rng, scores):
        return streams.reordered(
            plain(scores), np.repeat(rng.permutation(ITEMS) * models, models) + np.tile(np.arange(models), ITEMS)
        )

    rows = {}
    for gap in (0, 0.1, 0.24):
        gaps = f"gaps of {gap:g} and -{gap:g} in two clusters" if gap else "equal in every cluster"
        rows[f"{gaps}, random order"] = {
            policy: partial(run, gap=gap, policy=policy, arrive=shuffled) for policy in ("trusted", "completion")
        }
        rows[f"{gaps}, wins first"] = {
            "completion": partial(run, gap=gap, policy="completion", arrive=streams.wins_first)
        }
    return rows


def _best_of_listed(rng: Rng) -> Found:
    """Send the most favourable of twice as many items first; those that are not in the declared list are refused."""
    models = 2 * PAIRS
    scores = streams.exchangeable(rng, 2 * ITEMS, models)
    some = rng.choice(2 * ITEMS, ITEMS, replace=False)
    board = Board(item_ids=[str(each) for each in some.tolist()])
    board.fold(packed(streams.wins_first(rng, scores)))
    assert board.benchmark.counters["rejected"] == ITEMS * models
    return by_opponents(wrong(board.benchmark, claim="anytime"), models)


def _families() -> Rows:
    """All pairs of a few equal models in one family."""

    def uneven(rng):
        return streams.labelled(streams.some_repeats(rng, trouble(rng, streams.repeated(rng, 4, 60)), 4))

    def anything(rng):
        return trouble(rng, streams.exchangeable(rng))

    def equal(rng, models):
        return plain(streams.exchangeable(rng, models=models))

    uneven_spec = {"items": 60, "family": SPENDING, "repeats": 4, "ends": True}
    few_and_many: Rows = {
        f"random order, `spending`, {models} equal models": _policies(
            partial(equal, models=models), *EVERY, family=SPENDING
        )
        for models in (2, 3, 30)
    }
    return few_and_many | {
        "random order, `capacity`": _policies(anything, *EVERY, family=capacity()),
        "random order, `spending`": _policies(anything, "trusted", "completion", family=SPENDING),
        "1 to 4 of 4 repeats, any labels, runs ended, `spending`": _policies(
            uneven, "trusted", "completion", **uneven_spec
        ),
    }


def unequal(quality: list[float], family: object, items: int) -> dict[str, Run]:
    """Models of some quality, all pairs in one family, under each policy."""
    true = {named(k): value for k, value in enumerate(quality)}

    def run(rng, policy):
        stream = plain(streams.of_quality(rng, quality, items))
        return [wrong(fold(stream, family=family, **under(rng, policy, items)), true)]

    return {policy: partial(run, policy=policy) for policy in EVERY}


GROUPS = [0.88] * 3 + [0.32] * 3
"""Three strong and three weak models: the nine pairs between them free their weight for the six equal ones."""

TINY_GAPS = [0.05, 0.06, 0.35, 0.36, 0.65, 0.66, 0.94, 0.95]
"""Eight models: the pairs of neighbours are close, all others are decided early and leave their weight to these."""


LAST_GAP = [0.15, 0.85, 0.85001]
"""Three models: the pair of the last two is left with all of alpha, and nearly equal."""


def _step_down() -> Rows:
    return {
        "9 of 15 pairs decided, 6 equal, `capacity`": unequal(GROUPS, capacity(6), ITEMS),
        "9 of 15 pairs decided, 6 equal, `spending`": unequal(GROUPS, SPENDING, ITEMS),
        "24 of 28 pairs decided, 4 with a gap of .01: wrong direction": unequal(TINY_GAPS, capacity(8), ITEMS),
        "2 of 3 pairs decided, 1 with a gap of .00001, 300 items: wrong direction": unequal(LAST_GAP, capacity(3), 300),
    }


def _registration(family: object, named_so: str = "", models: int = 8, items: int = ITEMS) -> Rows:
    """Let a producer who knows all outcomes determine which pairs of equal models register first."""

    def sent(rng, order):
        return order(streams.exchangeable(rng, items, models))

    orders = {
        "one item of each of the best-looking pairs first": streams.best_pairs_first,
        "one model at a time, the unluckiest first, then the luckiest": streams.unluckiest_first,
    }
    return {
        f"{row}{named_so}": _policies(partial(sent, order=order), "committed", "completion", items=items, family=family)
        for row, order in orders.items()
    }


def _generations() -> Rows:
    rows = {
        "scored again twice, 2 % of the scores replaced at random": streams.fold_regrades,
        "each generation stopped once some pair has p <= .05, inherited, and continued": streams.fold_best_stopped,
    }

    def run(rng, make, policy):
        return [wrong(make(rng, 3, family=capacity(), **under(rng, policy)))]

    return {
        row: {policy: partial(run, make=make, policy=policy) for policy in ("trusted", "completion")}
        for row, make in rows.items()
    }


def _settled() -> Rows:
    """Models with the same sum over all items: nobody leads."""

    def run(rng, make, models, policy, **spec):
        stream = make(rng, streams.same_total(rng, ITEMS, models))
        return [wrong(fold(stream, family=capacity(models), **under(rng, policy), **spec), claim="settled")]

    def gaps(rng, scores):
        stream = trouble(rng, scores)
        absent = rng.random(scores.shape[:2]) < 0.005  # the prefix of a model stops at the first item without a score
        return streams.reordered(stream, ~absent[stream[0], stream[1]])

    rows = {
        "item by item": lambda rng, scores: plain(scores),
        "losses skipped": lambda rng, scores: plain(streams.bad_news_skipped(scores)),
        "gaps, skips, late models, duplicates, conflicts": gaps,
    }
    settled: Rows = {
        row: {
            f"committed, {models} models": partial(run, make=make, models=models, policy="committed")
            for models in (2, MODELS)
        }
        for row, make in rows.items()
    }
    last = settled["gaps, skips, late models, duplicates, conflicts"]
    last["completion"] = partial(run, make=gaps, models=MODELS, policy="completion")
    last["trusted, items listed"] = partial(run, make=gaps, models=MODELS, policy="trusted", item_ids=listed())
    return settled


def _ranks() -> dict[str, Run]:
    """Two pairs of equal models, and one model: any range that leaves out a true rank."""
    quality = [0.8, 0.8, 0.6, 0.6, 0.4]
    true, family = {named(k): value for k, value in enumerate(quality)}, capacity(len(quality))

    def run(rng, policy):
        stream = plain(streams.of_quality(rng, quality))
        return [excluded_ranks(fold(stream, family=family, **under(rng, policy)), true)]

    return {policy: partial(run, policy=policy) for policy in EVERY}


def _intervals(*, graded: bool = False) -> dict[str, Run]:
    """Look at the intervals of pairs after every item: of each two opponents the gap is 0, or .1."""
    models = 2 * LOOKED_AT
    quality = [(0.6, 0.6, 0.7, 0.6)[k % 4] for k in range(models)]
    true = {named(k): value for k, value in enumerate(quality)}

    def run(rng, arrange=streams.random_order, **spec):
        scores = (streams.graded_of_quality if graded else streams.of_quality)(rng, quality)
        board = Board(scores="graded" if graded else "binary", **spec)
        looks = board.looks(arrange(rng, scores), models)
        return by_opponents([each for look in looks for each in excluded_gaps(look, true, "gap", opponents)], models)

    def in_order(rng):
        declared = under(rng, "committed")
        return run(rng, partial(streams.in_committed_order, seed=declared["order"]["seed"]), **declared)

    columns: dict[str, Run] = {
        "trusted": partial(run, order="trusted"),
        "completion": partial(run, items=ITEMS),
        "completion, wins first": partial(run, arrange=streams.wins_first, items=ITEMS),
    }
    return columns | ({} if graded else {"committed": in_order})


def _family_intervals() -> dict[str, Run]:
    """Five models far apart, all pairs decided in most boards: any interval of the family that leaves out the true gap at the end."""
    quality, items = [0.9, 0.7, 0.5, 0.3, 0.1], 200
    true, family = {named(k): value for k, value in enumerate(quality)}, capacity(len(quality))

    def run(rng, policy):
        stream = plain(streams.of_quality(rng, quality, items))
        board = fold(stream, family=family, **under(rng, policy, items))
        return [excluded_gaps(board, true, "gap_family", lambda one, other: one != other)]

    return {policy: partial(run, policy=policy) for policy in ("trusted", "completion")}


def _breaking() -> Iterator[tuple[str, str, str, Run]]:
    """Yield row, policy, the words that name the assumption, and the case that breaks it."""
    models = 2 * PAIRS
    pairs = partial(_policies, opponents_of=models)

    def equal(rng, items=ITEMS):
        return streams.exchangeable(rng, items, models)

    def chosen_repeats(rng):
        scores = streams.repeated(rng, 8, 60, models)
        return streams.until_right(trouble(rng, scores, 0), scores)

    def stopped(stop):
        return lambda rng: streams.up_to(stop, equal(rng, MANY))

    def lost(rng, scores):
        return (scores[:, :, 0] == 0) & (np.arange(models) % 2 == 0) & (rng.random(scores.shape[:2]) < 0.6)

    def wrong_answers_missing(rng):
        scores = equal(rng)
        # Every pair lacks something, so that its verdict rests on what is ignored.
        gone = lost(rng, scores) | (rng.random(scores.shape[:2]) < 0.1)
        item, model, *_ = stream = trouble(rng, scores, 0)
        return streams.reordered(stream, ~gone[item, model])

    def wrong_answers_null(rng):
        scores = equal(rng)
        null = lost(rng, scores)
        item, model, repeat, score = trouble(rng, scores, 0)
        return item, model, repeat, np.where(null[item, model], -1, score)

    def wins_filled_late(rng):
        return streams.filled(rng, trouble(rng, equal(rng), 0), streams.wins_late)

    def scored_again(rng, policy):
        found = wrong(streams.fold_one_sided(rng, 3, family=capacity(), **under(rng, policy)))
        return [of_family(found, "generation 2", "two epochs 2")]

    def best_half(rng):
        # The two halves of the items of each pair: those that favour the even model are sent.
        item, model, *rest = streams.wins_first(rng, equal(rng, 2 * ITEMS))
        sent = np.arange(item.size)
        order = np.lexsort((sent, model))
        place = np.empty_like(sent)
        place[order] = np.arange(item.size) % (2 * ITEMS)
        return streams.reordered((place, model, *rest), place < ITEMS)

    def recounted(rng):
        scores = streams.exchangeable(rng, MANY, 2)
        stream = streams.up_to(lambda b, c: exact_p(b, c) <= ALPHA, scores)
        items = int(stream[0].max()) + 1
        again = {"declare": "bench", "alpha": ALPHA, "items": items, "version": 2}
        return [wrong(fold_records([packed(stream), *[again] * (items < MANY)], items=MANY), claim="anytime")]

    def chosen_seed(rng, claim):
        scores = streams.same_total(rng, ITEMS, 2) if claim == "settled" else streams.exchangeable(rng, ITEMS, 2)
        d, seeds = scores[:, 0, 0] - scores[:, 1, 0], [str(each) for each in range(30)]
        best = max(seeds, key=lambda seed: np.abs(np.cumsum(d[committed_order(seed, listed())])[: ITEMS // 2]).max())
        order = {"policy": "committed", "seed": best}
        return [wrong(fold(plain(scores), order=order, item_ids=listed(), family=capacity(2)), claim=claim)]

    for row, make in (
        ("60 % of the wrong answers null", wrong_answers_null),
        ("60 % of the wins null first, filled late", wins_filled_late),
        ("wins first", lambda rng: streams.wins_first(rng, equal(rng))),
        ("losses skipped", lambda rng: plain(streams.bad_news_skipped(equal(rng)))),
        ("blocks of clusters without labels", lambda rng: plain(streams.clustered(rng, models))),
    ):
        yield row, "trusted", TEXTS["trusted"], pairs(make, "trusted")["trusted"]
    for policy in EVERY:
        case = partial(_copies, policy=policy, models=models, units=False)
        yield "five copies of each of 60 items", policy, TEXTS["independent"], case
    for row, make, items in (
        ("60 % of the wrong answers missing, `ignorable`, runs ended", wrong_answers_missing, ITEMS),
        ("runs ended once p <= .05, `ignorable`, 300 items", stopped(lambda b, c: exact_p(b, c) <= ALPHA), MANY),
        (
            "runs ended once e >= 20, `ignorable`, 300 items",
            stopped(lambda b, c: log_leader_bound(b, c, 0) >= -np.log(ALPHA)),
            MANY,
        ),
    ):
        case = pairs(make, "completion", items=items, ends=True, missing="ignorable")["completion"]
        yield row, "completion", TEXTS["ignored"], case
    for family, named_so in (
        (SPENDING, ", `spending`"),
        ({**capacity(), "size": 10}, ", a capacity of 10 pairs for 28"),
    ):
        for row, columns in _registration(family, named_so).items():
            for policy, case in columns.items():
                yield row, policy, TEXTS["joined"], case
    many = _registration(SPENDING, ", `spending`, 30 models", models=30)
    for policy, case in many["one item of each of the best-looking pairs first, `spending`, 30 models"].items():
        yield "one item of each of the best-looking pairs first, `spending`, 30 models", policy, TEXTS["joined"], case
    words = clause(Assumption("declared_late", names=("items",)))
    yield "declared again with the items so far once p <= .05, 300 items", "completion", words, recounted
    half = pairs(best_half, "completion")["completion"]
    yield "the best half of twice the items, only its number declared", "completion", TEXTS["completion"], half
    for policy, case in pairs(chosen_repeats, "trusted", "completion", items=60, repeats="all", ends=True).items():
        yield 'items repeated until right, `repeats: "all"`', policy, TEXTS["repeated"], case
    for policy in ("trusted", "completion"):
        row = "a fifth of the wrong answers of one model scored again, twice"
        yield row, policy, TEXTS["rescored"], partial(scored_again, policy=policy)
    sentence = TEXTS["committed"]
    yield "the best of 30 seeds, outcomes known", "committed", sentence, partial(chosen_seed, claim="anytime")
    yield "the same, settled", "committed", TEXTS["ordered"], partial(chosen_seed, claim="settled")


def _watched() -> Rows:
    """What other watchers make of streams, and what is not claimed: all pairs of equal models."""
    settings = {
        "blocks, fixed effects of mean 0": (streams.clustered, BLOCK),
        "blocks, random effects (standard deviation .1)": (streams.random_effects, BLOCK),
    }

    def diagnosed(rng, scores, block):
        return fold(trouble(rng, scores(rng)), order="trusted", block=block, family=capacity())

    def left(rng, scores, block):
        benchmark = diagnosed(rng, scores, block)
        return [[] if benchmark.order_refuted else wrong(benchmark)]

    def of(scores, block):
        return {
            "naive": lambda rng: [[Wrong("")] if streams.peeking(scores(rng), ALPHA) else []],
            **_policies(lambda rng: trouble(rng, scores(rng)), "trusted", "completion", family=capacity()),
            "trusted, clusters named": lambda rng: [wrong(diagnosed(rng, scores, block))],
            "the same, at the end": partial(left, scores=scores, block=block),
        }

    return {row: of(*setting) for row, setting in settings.items()}


def _cases() -> Iterator[Case]:
    tables = {
        "pairs": _pairs(),
        "weights": _weights(),
        "families": _families() | _step_down(),
        "registration": _registration(capacity(8))
        | _registration({"models": list(map(named, range(8)))}, ", 8 of 16 models declared", models=16),
        "generations": _generations(),
        "settled": _settled(),
        "races": races.rows(),
        "ranks": {"any rank range leaves out a true rank": _ranks()},
        "intervals": {"0/1 scores": _intervals(), "graded scores": _intervals(graded=True)},
        "family intervals": {"any of the 10 pairs of five models, gaps .2 to .8": _family_intervals()},
    }
    for table, rows in tables.items():
        for row, columns in rows.items():
            yield from (Case(table, row, column, run) for column, run in columns.items())
    for row, policy, words, run in _breaking():
        yield Case("breaking", row, policy, run, breaks=words, promised=False)
    for row, columns in _watched().items():
        yield from (Case("watched", row, column, run, promised=False) for column, run in columns.items())


CASES = {case.name: case for case in _cases()}
