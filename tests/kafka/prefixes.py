"""What a report of each prefix of a topic shows: every answer of a reader has to be one of them, at the offset that it names."""

import asyncio
import json

from monitor.engine.chunk_fold import Partition
from monitor.serve.report_cache import ReportCache
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import ORIGIN_HEADER, Chunk
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner
from schemas.records.packed import parse_offsets
from tests.kafka.records import read_all


def differences(answer, expected, path=""):
    """Return up to ten places where two JSON values differ: (path, answer, expected)."""
    if isinstance(answer, dict) and isinstance(expected, dict):
        keys = [*answer, *(key for key in expected if key not in answer)]
        parts = [differences(answer.get(key), expected.get(key), f"{path}/{key}") for key in keys]
    elif isinstance(answer, list) and isinstance(expected, list) and len(answer) == len(expected):
        parts = [
            differences(one, other, f"{path}/{k}") for k, (one, other) in enumerate(zip(answer, expected, strict=True))
        ]
    else:
        return [] if answer == expected else [(path, answer, expected)]
    return [each for part in parts for each in part][:10]


class Prefixes:
    """Folds the records of a topic once, and compares the answers that were given at each offset.

    Parameters
    ----------
    secret, log
        Of the origins of republished records, and the identity of the log.
    """

    def __init__(self, cluster, topic, partitions, secret, log):
        self.count = partitions
        key = OriginKey(secret, log)
        self.logs = {number: [] for number in range(partitions)}
        for record in asyncio.run(read_all(cluster, topic)):
            origin = dict(record.headers).get(ORIGIN_HEADER)
            verified = None if origin is None else key.verify(origin, record.partition, record.value or b"")
            self.logs[record.partition].append((record.offset, record.value or b"", verified, record.key))

    def check(self, answers):
        """Check answers to GET /api/v1/summaries and /api/v1/benchmarks/<name>?pairs=all: (name or None, header, body)."""
        wanted = {number: set() for number in range(self.count)}
        for _, header, _ in answers:
            for number, offset in parse_offsets(header).items():
                wanted[number].add(offset)
        summaries, reports = {}, {}
        for number, offsets in wanted.items():
            named = {
                (parse_offsets(header)[number], name)
                for name, header, _ in answers
                if name is not None and number in parse_offsets(header)
            }
            for offset, cache in self._prefixes(number, sorted(offsets)):
                summaries[number, offset] = json.loads(cache.listed_summaries(cache.names()))
                for name in {name for at, name in named if at == offset}:
                    report = cache.benchmark_report(name, "all")
                    reports[name, offset] = None if report is None else json.loads(report.as_json())
        for name, header, body in answers:
            offsets = parse_offsets(header)
            if name is None:
                expected = [each for item in offsets.items() for each in summaries[item]]
                assert json.loads(body) == sorted(expected, key=lambda each: each["benchmark"]), header
                assert len(offsets) == self.count
            else:
                (offset,) = offsets.values()
                (answer,) = json.loads(body)["benchmarks"]
                assert answer == reports[name, offset], (name, header, differences(answer, reports[name, offset]))

    def _prefixes(self, number, offsets):
        """Yield each offset, and the reports of the fold of the log up to there."""
        partition = Partition(number, owner=lambda name: owner(name, self.count))
        cache = ReportCache(lambda: [PartitionView(partition)])
        log, done = self.logs[number], 0
        for offset in offsets:
            part = []
            while done < len(log) and log[done][0] < offset:
                part.append(log[done])
                done += 1
            if offset > partition.off:
                places, values, origins, keys = zip(*part, strict=True) if part else ((), (), (), ())
                chunk = Chunk(number, partition.off, offset, places, values, origins if any(origins) else None, keys)
                partition.fold(chunk)
            cache.clear()  # a report that took long would be given again for the next offset
            yield offset, cache
