"""Draw which package imports which, from the code: layers of rooms for the page; run it for the matrix of packages."""

from graphlib import TopologicalSorter

import grimp

ROOTS = ("monitor", "schemas", "stats")
_ENTRY = {"monitor", "monitor.__main__"}
_LEGEND = (
    "Each row is a package; an `x` marks a package that it imports, by row number. Every `x` is to the right of the diagonal, so imports "
    "lead down the list, except between a package and its own subpackages."
)

Imports = dict[str, set[str]]
"""The packages that a package imports directly."""


def package_imports() -> Imports:
    """Return the direct imports between packages; a module right below `monitor` counts as a package."""
    graph = grimp.build_graph(*ROOTS)
    package_of = {module: _package(module, graph) for module in graph.modules}
    imports: Imports = {package: set() for package in package_of.values() if package not in _ENTRY}
    for module, package in package_of.items():
        targets = {package_of[target] for target in graph.find_modules_directly_imported_by(module)}
        if package in imports:
            imports[package] |= targets - {package, *_ENTRY}
    return imports


def _package(module: str, graph: grimp.ImportGraph) -> str:
    if graph.find_children(module):
        return module
    parent = module.rpartition(".")[0]
    return module if parent == "monitor" else parent


def room(package: str) -> str:
    """Return the room of a package: `monitor.engine` for `monitor.engine.state`, `stats` for itself."""
    return ".".join(package.split(".")[:2])


def room_levels(imports: Imports) -> dict[str, int]:
    """Return how many imports a room is above the rooms that import none; an import cycle raises `graphlib.CycleError`."""
    rooms: Imports = {room(package): set() for package in imports}
    for package, targets in imports.items():
        rooms[room(package)] |= {room(target) for target in targets} - {room(package)}
    levels: dict[str, int] = {}
    for name in TopologicalSorter(rooms).static_order():
        levels[name] = 1 + max((levels[target] for target in rooms[name]), default=-1)
    return levels


def module_imports() -> Imports:
    """Return the modules that a module imports directly."""
    graph = grimp.build_graph(*ROOTS)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def longest_chain(imports: Imports) -> list[str]:
    """Return the longest chain in which each imports the next; an import cycle raises `graphlib.CycleError`."""
    chains: dict[str, list[str]] = {}
    for name in TopologicalSorter(imports).static_order():
        chains[name] = [name, *max((chains[each] for each in sorted(imports[name])), key=len, default=[])]
    return max(chains.values(), key=len)


def render() -> str:
    """Return the layers as Markdown."""
    levels = room_levels(package_imports())
    layers = [
        f"{level}  {'  '.join(_short(name) for name in sorted(levels) if levels[name] == level)}"
        for level in sorted(set(levels.values()), reverse=True)
    ]
    return "\n".join(("```text", *layers, "```"))


def matrix() -> str:
    """Return which package imports which, as text."""
    imports = package_imports()
    levels = room_levels(imports)
    rows = _matrix(sorted(imports, key=lambda package: (-levels[room(package)], package)), imports)
    return "\n".join((_LEGEND, "", *rows))


def _matrix(order: list[str], imports: Imports) -> list[str]:
    width = max(len(_short(package)) for package in order)
    numbers = range(1, len(order) + 1)
    rows = [
        " " * (width + 6) + " ".join(str(number // 10 or " ") for number in numbers),
        " " * (width + 6) + " ".join(str(number % 10) for number in numbers),
    ]
    for number, package in enumerate(order, 1):
        marks = ("x" if other in imports[package] else "·" if other == package else " " for other in order)
        rows.append(f"{number:2}  {_short(package):{width}}  {' '.join(marks)}".rstrip())
    return [row.rstrip() for row in rows]


def _short(package: str) -> str:
    return package.removeprefix("monitor.")


if __name__ == "__main__":
    print(matrix())
