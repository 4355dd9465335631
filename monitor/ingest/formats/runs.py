"""What has to agree between the logs of several runs, if their scores are to be compared."""

from collections.abc import Callable
from pathlib import Path

from monitor.ingest.files.paths import show
from monitor.ingest.files.translated import Refusal
from schemas.text import shorten


class Runs:
    """Remembers the runs that were read: of which version of a task, by which model, and on what items.

    Parameters
    ----------
    tell : callable
        Takes what whoever compares the runs should know.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._versions: dict[str, tuple[object, Path]] = {}
        self._models: dict[tuple[str, str], tuple[str, Path]] = {}
        self._items: dict[tuple[str, str], tuple[bytes, Path]] = {}
        self._differing: set[Path] = set()

    def begin(self, path: Path, task: str, model: str, version: object, run: str) -> None:
        """Take in a run.

        Parameters
        ----------
        path : Path
        task, model : str
        version : object
            Of the task; None where the log does not say.
        run : str
            What the logs of one run, and of its retries, have in common.

        Raises
        ------
        Refusal
            If its task has another version than that of an earlier run: equal ids need not mean equal items.
        """
        first, where = self._versions.setdefault(task, (version, path))
        if version is not None and first is None:
            self._versions[task] = (version, path)
        elif version not in (None, first):
            raise Refusal(
                "version",
                f"version {shorten(version)} of {shorten(task)}",
                f"{show(where)} has version {shorten(first)}, and scores on different versions of a task are not comparable: leave one of "
                "the files out, or read them apart with --benchmark NAME",
            )
        known, where = self._models.setdefault((task, model), (run, path))
        if known != run and where != path:
            self._tell(
                f"{shorten(task)}: {show(where)} and {show(path)} both hold scores of {shorten(model)}: where they overlap the first "
                "one counts; name one of them with NAME=PATH to compare them"
            )

    def item(self, path: Path, task: str, item: str, contents: bytes) -> None:
        """Take in what an item is, and tell where one id stands for different things."""
        known, where = self._items.setdefault((task, item), (contents, path))
        if known != contents and path not in self._differing:
            self._differing.add(path)
            self._tell(
                f"{shorten(task)}: item {shorten(item)} in {show(path)} is not what it is in {show(where)} (others may differ too): "
                "were both runs made on the same data?"
            )
