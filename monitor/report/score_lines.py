"""Write the scores of a benchmark as records that any rankwatch reads."""

import msgspec
import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import ABSENT, SCORE_UNIT, SKIPPED
from schemas.events import Ended, EventFields


def score_lines(benchmark: Benchmark, start: int, end: int) -> bytes:
    """Return some rows as JSON lines: ahead of the first one the declaration, after the last one the ends of runs."""
    lines: list[bytes] = []
    if start == 0 and benchmark.declared:
        declaration = benchmark.spec.model_dump(mode="json", exclude_defaults=True)
        lines.append(msgspec.json.encode({"declare": benchmark.name, **declaration}))
    codes = benchmark.matrix()[start:end]
    values = benchmark.table.by_code
    for row, column in np.argwhere(codes != ABSENT).tolist():
        key, contestant, code = benchmark.rows[start + row], benchmark.contestants[column], int(codes[row, column])
        score = None if code == SKIPPED else int(values[code]) / SCORE_UNIT
        lines.append(
            msgspec.json.encode(
                EventFields(
                    benchmark.name,
                    key.item,
                    contestant.model,
                    int(score) if score in {0, 1} else score,
                    key.cluster,
                    key.repeat,
                    contestant.epoch,
                )
            )
        )
    if end >= len(benchmark.rows):
        for index in sorted(benchmark.ended):
            model, epoch = benchmark.contestants[index]
            lines.append(
                Ended(ended=benchmark.name, model=model, epoch=epoch).model_dump_json(exclude_none=True).encode()
            )
    return b"".join(line + b"\n" for line in lines)
