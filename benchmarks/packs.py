"""Runs and packs: the same events one a message, packed, and as run messages, from Kafka to durable state.

As in `ingest`, with one broker, and appendfsync always. Packed messages hold 100 events; run messages are those that
`rankwatch send --packed` writes, the columns of up to 1,000 items of one model. The rungs run in turn. Processor time is that of the
measuring process: of the client, or of the worker, without the broker and Redis. Other work on the machine matters less to it.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.events import lines_of
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table
from benchmarks.ingest import DECLARED, Taken, bare, new_place, service, taken
from benchmarks.servers import redis_server
from monitor.send.messages import write_messages
from schemas.records.decode import decode_records
from schemas.records.packed import Segment
from tests.kafka.broker import KafkaCluster

PACK = 100


def measure(options: Options) -> Iterator[Table]:
    """Measure each kind of message without verdicts and with them, next to the bare client."""
    what, lines = lines_of(options)
    events = decode_records(lines)
    assert events is not None
    name, items = events[0].benchmark, len({event.item_id for event in events})
    kinds = {
        "one event a message": lines,
        f"{PACK} events a message": [
            b'{"events": [' + b",".join(lines[k : k + PACK]) + b"]}" for k in range(0, len(lines), PACK)
        ],
        "run messages": [each.value for each in write_messages([Segment([], events, [], 0, 0)], packed=True)],
    }
    del events
    with KafkaCluster(1) as cluster, redis_server() as port:
        for kind, messages in kinds.items():
            plain = new_place(cluster, port, messages)
            declared = new_place(cluster, port, [declaration(name, items=items), *messages])
            rungs = {
                "bare getmany": (bare, plain),
                "rankwatch run, whole": (service, plain),
                DECLARED: (service, declared),
            }
            runs: dict[str, list[Taken]] = {}
            for _ in range(options.runs):
                for rung, (climb, place) in rungs.items():
                    runs.setdefault(rung, []).append(taken(climb, place))
            title = f"{kind}: {len(messages):,} messages ({what}), {options.runs} runs"
            yield Table(
                title[0].upper() + title[1:],
                ["what", "events/s", "least", "most", "of bare", "processor \u00b5s an event"],
                rows_of(runs, len(lines)),
            )


def rows_of(runs: dict[str, list[Taken]], events: int) -> list[Sequence[Any]]:
    """Return the medians of each rung, and its share of the speed of the first."""
    speeds = {rung: [events / each.seconds for each in taken] for rung, taken in runs.items()}
    first = statistics.median(next(iter(speeds.values())))
    return [
        (
            rung,
            round(statistics.median(each)),
            round(min(each)),
            round(max(each)),
            round(statistics.median(each) / first, 3),
            round(1e6 * statistics.median(one.processor for one in runs[rung]) / events, 2),
        )
        for rung, each in speeds.items()
    ]
