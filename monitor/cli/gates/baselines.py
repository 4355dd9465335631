"""The baseline of a gate that is on a server, or in the stored state of a service."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import msgspec

from monitor.cli.shared.declared.values import first_names, name_hint
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.remote.places import StoredPlace
from monitor.files.streams.paths import name_copy, show
from schemas.records.names import natural
from schemas.records.text import mask_url, shorten


class _Line(msgspec.Struct):
    """What decides whether a line of a board is about the baseline."""

    declare: str | None = None
    model: str | None = None
    score: float | None = None


@contextmanager
def stored_baseline(place: StoredPlace, baseline: str, benchmarks: Sequence[str]) -> Iterator[Path]:
    """Copy the scores of a model, and the declarations of its boards, to a file."""
    from monitor.cli.shared.remote.boards import open_boards  # start-up: few gates have a stored baseline

    where = mask_url(place.server) if place.server is not None else "the stored state"
    with open_boards(place) as boards, TemporaryDirectory(prefix="rankwatch-") as folder:
        known = sorted((row["benchmark"] for row in boards.rows()), key=natural)
        chosen = [name for name in dict.fromkeys(benchmarks) if name in known] if benchmarks else known
        if not chosen or (not benchmarks and len(chosen) > 1):
            problem = f"no board of {first_names(benchmarks)}" if benchmarks else f"{len(known):,} boards"
            stop(f"{where} has {problem}; choose one with --benchmark: {first_names(known)}", USAGE)
        file = Path(folder, "baseline.jsonl")
        counts = {}
        models: set[str] = set()
        with file.open("wb") as lines:
            for name in chosen:
                counts[name] = _copy(boards.scores(name), baseline, lines, models)
        if not any(counts.values()):
            hint = f"; {name_hint([baseline], models, 'it has')}" if models else ""
            stop(f"the baseline {show(baseline)} has no scores on {where}, in {first_names(chosen)}{hint}", USAGE)
        for name, count in counts.items():
            if count:
                note(f"{shorten(name)}: {count:,} scores of the baseline {show(baseline)} are read from {where}")
        name_copy(file, f"the baseline on {where}")
        yield file


def _copy(parts: Iterable[bytes], baseline: str, file: BinaryIO, models: set[str]) -> int:
    """Write the lines about a model; add the names of all models, and return how many scores the lines have."""
    decode = msgspec.json.Decoder(_Line).decode
    scores = 0
    for part in parts:
        for line in part.splitlines(keepends=True):
            record = decode(line)
            if record.declare is not None or record.model == baseline:
                file.write(line)
                scores += record.score is not None
            if record.model is not None:
                models.add(record.model)
    return scores
