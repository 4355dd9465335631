"""What has been sent to a destination, so that a second run sends only what is new."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final, Self

from monitor.engine.state.delta import Source

_VERSION: Final = 1


def default_folder() -> Path:
    """Return the folder for such records: ``$XDG_STATE_HOME/rankwatch/sent``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rankwatch" / "sent"


class Sent:
    """How far each file has been sent to one destination, and what was declared on the way.

    Kept as a small JSON file that is replaced whole, so that it is never torn. Losing it costs only that everything is sent again, which
    changes no score: the first score of a key wins. Two runs at once to one destination may therefore both go on, and send some things
    twice.

    Attributes
    ----------
    sources : dict of str to Source
        By absolute path: bytes and lines of the (gunzipped) contents that were acknowledged, and the hash of these bytes.
    benchmarks : dict of str to (str or None)
        The benchmarks that have begun, each with the declaration that was placed before it on behalf of the command line (as JSON).
    """

    def __init__(self, path: Path, destination: str) -> None:
        self.path, self.destination = path, destination
        self.sources: dict[str, Source] = {}
        self.benchmarks: dict[str, str | None] = {}

    @classmethod
    def to(cls, destination: str, folder: Path, *, forget: bool = False) -> Self:
        """Read what a folder knows of a destination.

        Parameters
        ----------
        destination : str
            URL without a user and a password.
        folder : Path
            Made when something is saved.
        forget : bool
            Begin anew instead.

        Raises
        ------
        ValueError
            If the file holds something else.
        OSError
            If it cannot be read.
        """
        digest = hashlib.blake2b(destination.encode(), digest_size=16).hexdigest()
        self = cls(folder / f"{digest}.json", destination)
        if forget or not self.path.exists():
            return self
        try:
            self._read(json.loads(self.path.read_bytes()))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path} does not say what was sent to {destination}: delete it, and everything is sent again"
            ) from error
        return self

    def _read(self, data: Any) -> None:  # noqa: ANN401 - whatever the file holds
        if data["version"] != _VERSION or data["destination"] != self.destination:
            raise ValueError("another version, or destination")
        self.sources = {path: Source(**source) for path, source in data["files"].items()}
        self.benchmarks = dict(data["benchmarks"])

    def save(self) -> None:
        """Replace the file, durably.

        Raises
        ------
        OSError
            If that is not possible; the old file stays.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = {
            "version": _VERSION,
            "destination": self.destination,
            "files": {path: source._asdict() for path, source in self.sources.items()},
            "benchmarks": self.benchmarks,
        }
        draft = self.path.with_suffix(f".{os.getpid()}")
        with open(draft, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(json.dumps(data, ensure_ascii=False, indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
