"""Record what has been sent to a destination, so that a second run sends only what is new."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final, Self

from monitor.durable import replace_file
from schemas.records.chunks import Source
from schemas.records.declaration import Declaration, Spec

_VERSION: Final = 1


def default_folder() -> Path:
    """Return the folder of such records: ``$XDG_STATE_HOME/rankwatch/sent``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rankwatch" / "sent"


class SendRecord:
    """How far each file has been sent to one destination, and what was declared there."""

    # A small JSON file, replaced whole so that it is never torn. If it is lost, everything is sent again, which changes no score: the first
    # score of a key wins. Two runs at once to one destination may both send some events.

    def __init__(self, path: Path, destination: str) -> None:
        self.path, self.destination = path, destination
        self.sources: dict[str, Source] = {}
        self.benchmarks: dict[str, str | None] = {}
        self.ended: set[tuple[str, str, int]] = set()
        self.chosen: dict[str, dict[str, str]] = {}  # by which metric, filter, scorer or judge each benchmark was read

    @classmethod
    def load(cls, destination: str, folder: Path, *, forget: bool = False) -> Self:
        """Read the record of a destination, empty without one; with `forget` only by what benchmarks are read: their scores are there."""
        digest = hashlib.blake2b(destination.encode(), digest_size=16).hexdigest()
        self = cls(folder / f"{digest}.json", destination)
        if not self.path.exists():
            return self
        try:
            self._parse(json.loads(self.path.read_bytes()), forget=forget)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if forget:
                return cls(self.path, destination)
            raise ValueError(
                f"{self.path} is not a record of what was sent to {destination}; delete it to send everything again"
            ) from error
        return self

    def _parse(self, data: Any, *, forget: bool) -> None:  # noqa: ANN401 - JSON of any shape
        if data["version"] != _VERSION or data["destination"] != self.destination:
            raise ValueError("another version, or destination")
        self.chosen = {name: dict(chosen) for name, chosen in data.get("chosen", {}).items()}
        if forget:
            return
        self.sources = {path: Source(**source) for path, source in data["files"].items()}
        self.benchmarks = dict(data["benchmarks"])
        self.ended = {(name, model, epoch) for name, model, epoch in data.get("ended", ())}

    @property
    def epochs_path(self) -> Path:
        """The file for the epochs that files were sent with."""
        return self.path.with_suffix(".epochs.json")

    def specs(self) -> dict[str, Spec]:
        """Return the benchmarks that have begun, as they were declared."""
        return {
            name: Spec() if text is None else Declaration.model_validate_json(text).spec()
            for name, text in self.benchmarks.items()
        }

    def save(self) -> None:
        """Replace the file, durably."""
        data = {
            "version": _VERSION,
            "destination": self.destination,
            "files": {path: source._asdict() for path, source in self.sources.items()},
            "benchmarks": self.benchmarks,
            "ended": sorted(self.ended),
            "chosen": self.chosen,
        }
        replace_file(self.path, json.dumps(data, ensure_ascii=False, indent=1).encode())
