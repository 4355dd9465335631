"""Lines of results, and an oracle that reads them with nothing but `json`."""

import json
from pathlib import Path

from monitor.ingest.files.blocks import Block, read_blocks
from schemas.events import EventFields


def event(item=0, model="m", score=1, benchmark="bench", **more):
    return {"benchmark": benchmark, "item_id": str(item), "model": model, "score": score, **more}


def lines(*records) -> bytes:
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


def blocks(path: Path, data: bytes, **options) -> list[Block]:
    path.write_bytes(data)
    return list(read_blocks(path, **options))


def keys(events) -> list[tuple[str, str, str, object]]:
    found = (e if isinstance(e, EventFields) else EventFields(**e) for e in events)
    return [(e.benchmark, e.item_id, e.model, e.score) for e in found]
