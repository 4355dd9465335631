"""Many boards: events of several benchmarks in a random order, from Kafka to durable state.

Each board has 20 models, one after another; which board the next event is of is drawn at random. All are in the log when the worker begins,
as in `ingest`. One message an event; processor time is that of the worker, without the broker and Redis.
"""

import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.events import made_lines
from benchmarks.folding import declaration
from benchmarks.harness import SEED, Options, Table
from benchmarks.ingest import new_place, service, taken
from benchmarks.servers import redis_server
from tests.kafka.broker import KafkaCluster

MODELS, EVENTS = 20, 120_000
BOARDS = (1, 30, 1_000)


def measure(options: Options) -> Iterator[Table]:
    """Fold the same number of events of more and more boards, without verdicts and with them."""
    events = options.size(EVENTS, 6_000)
    table = Table(
        f"{events:,} events of boards of {MODELS} models in a random order",
        ["boards", "order", "events/s", "least", "most", "processor \u00b5s an event"],
    )
    with KafkaCluster(1) as cluster, redis_server() as port:
        for boards in (1, 3) if options.quick else BOARDS:
            names = [f"board-{board:04}" for board in range(boards)]
            lines = mixed(names, events // boards // MODELS)
            for order in ("none", "trusted"):
                place = new_place(cluster, port, [*(declaration(name, order=order) for name in names), *lines])
                runs = [taken(service, place) for _ in range(min(options.runs, 3))]
                speeds = [len(lines) / each.seconds for each in runs]
                processor = statistics.median(each.processor for each in runs) / len(lines)
                row = (round(statistics.median(speeds)), round(min(speeds)), round(max(speeds)))
                table.rows.append((boards, order, *row, round(1e6 * processor, 1)))
    yield table


def mixed(names: Sequence[str], items: int) -> list[bytes]:
    """Return the events of boards: those of each in their order, mixed at random."""
    own = [made_lines(MODELS, items, benchmark=name) for name in names]
    order = np.random.default_rng(SEED).permutation(np.repeat(np.arange(len(names)), MODELS * items))
    return [next(own[board]) for board in order.tolist()]
