"""`python -m monitor.compile_loops` compiles the loops, so that nobody waits for it later: installation and image run it."""

import json
import sys

from monitor.engine.chunk_fold import Partition
from monitor.engine.loop.compiled import cache_folder, mode
from schemas.records.chunks import Chunk

_ITEMS = [str(k) for k in range(4)]
_POLICIES = (
    {"order": "trusted"},
    {"order": "completion", "items": 4},
    {"order": {"policy": "committed", "seed": "s"}, "item_ids": _ITEMS},
)


def main() -> int:
    """Fold a few events under each policy: what is compiled by that is kept."""
    if mode() != "compiled":
        sys.stderr.write("rankwatch: Numba is missing, so events are folded slowly: pip install 'rankwatch[fast]'\n")
        return 0
    scores = [(item, model) for model in ("a", "b") for item in _ITEMS]
    for policy in _POLICIES:
        partition = Partition()
        events = [{"benchmark": "b", "item_id": item, "model": model, "score": 1} for item, model in scores]
        mixed = {"benchmark": "b", "item_id": "0", "model": "c", "score": 0.5}
        records = [json.dumps(each).encode() for each in ({"declare": "b", **policy}, *events, mixed)]
        partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
        benchmark = partition.benchmarks["b"]
        if benchmark.committed is not None:
            benchmark.loop.rebuild(benchmark.item_codes())
    (cache_folder() / "complete").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
