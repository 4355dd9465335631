"""Importers of other distributions: entry points of the group `rankwatch.importers`, each of which names a `Format` with its tool.

They come after the formats of `registry`, and are loaded when a file is in none of these.
"""

from functools import cache
from typing import Final

from monitor.files.formats import registry
from monitor.files.formats.registry import Format

GROUP: Final = "rankwatch.importers"

_problems: dict[str, str] = {}


@cache
def plugins() -> tuple[Format, ...]:
    """Return the formats of all plugins, in the order of their names; one that cannot be loaded is a problem."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - start-up: most files are in a known format

    formats = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 - code of others
            _problems[point.name] = f"it cannot be loaded ({type(error).__name__})"
            continue
        if not isinstance(loaded, Format) or loaded.tool is None or bool(loaded.document) == bool(loaded.lines):
            _problems[point.name] = "it names no Format with a tool and the paths of a document or of lines"
            continue
        formats.append(loaded)
    return tuple(formats)


def problems() -> list[str]:
    """Return a sentence for each plugin that is not used."""
    return [
        f"the importer {name} is not used: {problem}; update or uninstall its package"
        for name, problem in _problems.items()
    ]


def match(value: object, *, lines: bool) -> Format | None:
    """Return the format of a document, or of JSON lines, that begins with this value: ours, else that of a plugin."""
    return registry.match(value, lines=lines) or registry.match(value, lines=lines, formats=plugins())
