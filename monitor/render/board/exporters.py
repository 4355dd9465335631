"""What `rankwatch export` writes into a folder: our exporters, and those of other packages.

A package adds one by an entry point of the group `rankwatch.exporters` that names an `Exporter`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, NamedTuple

from monitor.render.board.standings import Board

GROUP: Final = "rankwatch.exporters"

MANIFEST: Final = "export.json"  # the list of the files of an export, which the next one replaces

File = tuple[str, str]  # the path of a file, with `/`, and its text


class ExportError(Exception):
    """A board cannot be written in this shape; the message has the reason and what to do."""


class Dataset(NamedTuple):
    """Where the data of a benchmark is published: the id of the data set, and the task or configuration in it."""

    id: str
    task: str | None = None


@dataclass(frozen=True)
class Context:
    """What an exporter may need to know that no board has.

    Attributes
    ----------
    at : float
        The time of the export, in seconds since 1970.
    datasets : mapping of str to Dataset
        By benchmark, as far as they were given.
    organization, source : str or None
        Who evaluated, and the address of the results.
    percent : bool
        Whether scores are written from 0 to 100 instead of 0 to 1.
    note : callable
        Takes a sentence about what the files omit.
    """

    at: float = 0.0
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    organization: str | None = None
    source: str | None = None
    percent: bool = False
    note: Callable[[str], None] = lambda _: None

    def scaled(self, score: float) -> float:
        """Return a score of 0 to 1 as it is written."""
        return round(100 * score, 4) if self.percent else round(score, 6)


class Exporter(NamedTuple):
    """A shape of files.

    Attributes
    ----------
    name : str
        As `--as` names it.
    files : callable
        Returns the files of boards: each path once, also where upper and lower case are alike. It raises `ExportError`.
    options : frozenset of str
        The fields of `Context` that are used, apart from `at` and `note`.
    """

    name: str
    files: Callable[[Iterable[Board], Context], Iterable[File]]
    options: frozenset[str] = frozenset()


_OURS: Final = {
    "site": ("site", "SITE"),
    "every-eval-ever": ("every_eval_ever", "EXPORTER"),
    "hf-eval-results": ("hugging_face", "EVAL_RESULTS"),
    "hf-model-index": ("hugging_face", "MODEL_INDEX"),
}
"""Module and attribute by name: each is loaded when it is chosen."""


def find_exporter(name: str) -> Exporter:
    """Return an exporter: ours, else that of a package.

    Raises
    ------
    ExportError
        If there is none of this name, or its package cannot be loaded.
    """
    if name in _OURS:
        module, attribute = _OURS[name]
        exporter: Exporter = getattr(import_module(f"monitor.render.board.{module}"), attribute)
        return exporter
    from importlib.metadata import entry_points  # noqa: PLC0415 - start-up: most exports are ours

    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise ExportError(f"--as {name}: there is no such exporter; use one of {', '.join([*_OURS, *sorted(points)])}")
    try:
        loaded = points[name].load()
    except Exception as error:
        reason = f"it cannot be loaded ({type(error).__name__})"
        raise ExportError(f"--as {name}: {reason}; update or uninstall its package") from error
    if not isinstance(loaded, Exporter):
        raise ExportError(f"--as {name}: it names no Exporter; update or uninstall its package")
    return loaded


def export_files(exporter: Exporter, boards: Iterable[Board], context: Context) -> dict[str, str]:
    """Return the text of each file by its path; an exporter of a package that fails is named.

    Raises
    ------
    ExportError
        If a board cannot be written, or a path is not inside the folder or comes twice.
    """
    files: dict[str, str] = {}
    taken = {MANIFEST}
    for path, text in _guarded(exporter, boards, context):
        if not is_inside(path) or path.lower() in taken:
            wrong = "twice" if is_inside(path) else "outside its folder"
            raise ExportError(f"the exporter {exporter.name} names a file {wrong}; report it to its authors")
        taken.add(path.lower())
        files[path] = text
    return files


def _guarded(exporter: Exporter, boards: Iterable[Board], context: Context) -> Iterator[File]:
    try:
        yield from exporter.files(boards, context)
    except ExportError:
        raise
    except Exception as error:
        if exporter.name in _OURS:
            raise
        reason = f"failed ({type(error).__name__}); report it to its authors"
        raise ExportError(f"the exporter {exporter.name} {reason}") from error


def is_inside(path: str) -> bool:
    r"""Return whether a path stays in the folder that it is relative to, on any system.

    Examples
    --------
    >>> is_inside("a/b.json"), is_inside("../b"), is_inside("/b"), is_inside("a\\b"), is_inside("a//b")
    (True, False, False, False, False)
    """
    plain = all(part not in {"", ".", ".."} for part in path.split("/"))
    return plain and not any(character in path for character in "\\:\0")
