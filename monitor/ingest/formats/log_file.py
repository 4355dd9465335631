"""What everybody who reads a file has to know: what was chosen, what other files held, and whom to tell."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from monitor.ingest.files.paths import show
from monitor.ingest.formats.choices import Choices
from monitor.ingest.formats.runs import Runs
from schemas.text import shorten


class Notes:
    """Tells what was chosen or passed over, each thing once.

    Parameters
    ----------
    tell : callable, optional
        Takes a sentence.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell
        self._told: set[str] = set()

    def __call__(self, text: str) -> None:
        """Tell something."""
        self._once(text, text)

    def chosen(self, benchmark: str, what: str) -> None:
        """Tell what was chosen for a benchmark; others for which the same was chosen are not told of."""
        self._once(what, f"{shorten(benchmark)}: {what}")

    def _once(self, key: str, text: str) -> None:
        if self._tell is not None and key not in self._told:
            self._told.add(key)
            self._tell(text)


@dataclass(frozen=True)
class Reading:
    """How one file is read.

    Attributes
    ----------
    path : Path
    model : str or None
        The model of the file, as named on the command line.
    choices : Choices
    runs : Runs
    notes : Notes
    """

    path: Path
    model: str | None
    choices: Choices
    runs: Runs
    notes: Notes

    def note(self, text: str) -> None:
        """Tell something about the file."""
        self.notes(f"{show(self.path)}: {text}")

    def declares(self, benchmark: str) -> bool:
        """Say whether the item count that a log carries is to be declared: nobody has said anything else."""
        return self.choices.benchmark is None and not self.choices.declared(benchmark)
