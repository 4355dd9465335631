"""The stream of the demo: a joint table of ten models with the nine printed pairs, in a committed order."""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.paper.demo import top_ten
from schemas.records.declaration import DEFAULT_LOOK
from stats.order import committed_order

Scores = npt.NDArray[np.uint8]

BENCHMARK: Final = "mmlu-pro-top10"
NULL_BENCHMARK: Final = "equal-models"

DEFAULT_SEED: Final = 0
"""The first one; under others 5 v 6 may cross the threshold of the family, which decides it permanently, and fall back below it."""

NULL_ACCURACY: Final = 0.65
NULL_CORRELATION: Final = 0.6
NULL_MODELS: Final = tuple(f"equal-{k:02d}" for k in range(1, 11))


@dataclass(frozen=True)
class DemoStream:
    """The records that the demo replays, and the same results as a table."""

    benchmark: str
    declaration: bytes  # the first record, as JSON without a newline
    events: list[bytes]  # the other records in their arrival order
    pairs: tuple[tuple[str, str], ...]  # the nine pairs of neighbours in rank, the better-ranked model first
    note: str  # what is simulated
    models: tuple[str, ...]  # by rank
    scores: Scores  # items in their arrival order


def demo_stream(*, null: bool = False, seed: int = DEFAULT_SEED) -> DemoStream:
    """Simulate the stream of the demo.

    >>> stream = demo_stream()
    >>> len(stream.events)
    120320
    >>> stream.pairs[4]
    ('Reflection-70B', 'Arcee-Blitz')
    """
    rng = np.random.default_rng(seed)
    models = NULL_MODELS if null else top_ten.MODELS
    scores = null_scores(rng) if null else published_scores(rng)
    benchmark = NULL_BENCHMARK if null else BENCHMARK
    pairs = tuple(pairwise(models))
    ids = [f"item-{item + 1:05d}" for item in range(len(scores))]
    item_order = committed_order(str(seed), ids)
    arrival = rng.permuted(np.tile(np.arange(len(models)), (len(scores), 1)), axis=1)
    declaration = {
        "declare": benchmark,
        "item_ids": ids,
        "order": {"policy": "committed", "seed": str(seed)},
        "family": {"models": models},
        "alpha": 0.05,
        "power": 0.8,
        "mixture": "beta(1,1)",
        "look": DEFAULT_LOOK,
    }
    return DemoStream(
        benchmark=benchmark,
        declaration=json.dumps(declaration).encode(),
        events=_events(benchmark, models, ids, scores, item_order, arrival),
        pairs=pairs,
        note=_NULL_NOTE if null else _NOTE,
        models=models,
        scores=scores[item_order],
    )


_NOTE: Final = (
    "Simulated: the joint table and the arrival, along the committed order. "
    "Only the nine pairs of neighbours are the paper's; the other 36 come from the simulated table."
)
_NULL_NOTE: Final = (
    "Simulated: ten models of equal accuracy that find the same items hard, and the arrival, along the committed order. "
    "Every verdict would be a false alarm."
)


def published_scores(rng: np.random.Generator) -> Scores:
    """Draw a table of items by models with the printed counts of the nine pairs and the printed accuracy of the first model."""
    # From each rank to the next, b random right answers become wrong and c random wrong answers become right. The accuracies follow, and
    # print as in the paper except at ranks 6 and 10 (.6154 and .5946 for .6153 and .5945): no count of right answers of the first model
    # gives all ten.
    scores = np.zeros((top_ten.ITEMS, len(top_ten.MODELS)), np.uint8)
    right = round(top_ten.PAIRS[0].p_a * top_ten.ITEMS)
    scores[rng.choice(top_ten.ITEMS, right, replace=False), 0] = 1
    for rank, pair in enumerate(top_ten.PAIRS):
        now = scores[:, rank]
        lost = rng.choice(np.flatnonzero(now == 1), pair.b, replace=False)
        won = rng.choice(np.flatnonzero(now == 0), pair.c, replace=False)
        scores[:, rank + 1] = now
        scores[lost, rank + 1] = 0
        scores[won, rank + 1] = 1
    return scores


def null_scores(rng: np.random.Generator) -> Scores:
    """Draw a table of items by ten equal models, each right with the item's own Beta-distributed probability of mean .65."""
    # Given the item the models are independent, so any two have correlation .6: the variance of the probability over that of a score.
    weight = 1 / NULL_CORRELATION - 1
    easiness = rng.beta(NULL_ACCURACY * weight, (1 - NULL_ACCURACY) * weight, (top_ten.ITEMS, 1))
    return (rng.random((top_ten.ITEMS, len(NULL_MODELS))) < easiness).astype(np.uint8)


def _events(
    benchmark: str,
    models: tuple[str, ...],
    ids: list[str],
    scores: Scores,
    item_order: npt.NDArray[np.int64],
    arrival: npt.NDArray[np.intp],
) -> list[bytes]:
    names = [json.dumps(model).encode() for model in models]
    start = b'{"benchmark": %s, "item_id": ' % json.dumps(benchmark).encode()
    rows = scores.tolist()
    return [
        b'%b"%b", "model": %b, "score": %d}' % (start, ids[item].encode(), names[model], rows[item][model])
        for item, order in zip(item_order.tolist(), arrival.tolist(), strict=True)
        for model in order
    ]
