"""Lines of results, and an oracle that reads them with nothing but `json`."""

import json
from pathlib import Path

from monitor.files.streams.blocks import BLOCK_BYTES, Block, BlockReader
from schemas.records.events import EventFields


def event(item=0, model="m", score=1, benchmark="bench", **more):
    return {"benchmark": benchmark, "item_id": str(item), "model": model, "score": score, **more}


def lines(*records) -> bytes:
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


def read_blocks(path, position=0, *, block_bytes=BLOCK_BYTES, final=True):
    """Read the blocks of a file from a position to its present end."""
    with BlockReader(path, position, block_bytes=block_bytes) as reader:
        while (block := reader.next(final=final)) is not None:
            yield block


def blocks(path: Path, data: bytes, **options) -> list[Block]:
    path.write_bytes(data)
    return list(read_blocks(path, **options))


def keys(events) -> list[tuple[str, str, str, object]]:
    records = (e if isinstance(e, EventFields) else EventFields(**e) for e in events)
    return [(e.benchmark, e.item_id, e.model, e.score) for e in records]
