"""List the faults that the tests inject, and the bugs that the simulation has to find, from the tests themselves."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from docs.generate.pages import DOCS

TESTS = DOCS.parent / "tests"
_AREAS = {
    "processes": "Processes that are killed, frozen or stopped",
    "log": "The log and the disk",
    "store": "The server of the state",
    "kafka": "Brokers and topics",
    "benchmarks": "Records and benchmarks",
    "readers": "Readers and notifications",
    "attacks": "Attacks",
}
_SETTINGS = {
    "contract": "real servers",
    "deploy": "real processes",
    "fault": "real processes",
    "fuzz": "one part",
    "integration": "real processes",
    "property": "one part",
    "security": "real processes",
    "unit": "one part",
}


class Fault(NamedTuple):
    """What the marker `fault` of a test names."""

    area: str
    what: str
    outcome: str
    test: str


def faults() -> Iterator[Fault]:
    """Yield the fault of every test that has the marker, by file and line."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for marker in getattr(node, "decorator_list", ()):
                if isinstance(marker, ast.Call) and ast.unparse(marker.func) == "pytest.mark.fault":
                    area, what, outcome = map(ast.literal_eval, marker.args)
                    yield Fault(area, what, outcome, path.relative_to(TESTS).as_posix())


def tables() -> str:
    """Return a table of faults for each area."""
    found = list(faults())
    if unknown := {fault.area for fault in found} - _AREAS.keys():
        raise ValueError(f"the marker fault has no area {', '.join(sorted(unknown))}")
    parts = []
    for area, title in _AREAS.items():
        rows = (
            f"| {fault.what} | {fault.outcome} | {_SETTINGS[fault.test.partition('/')[0]]} | `tests/{fault.test}` |"
            for fault in found
            if fault.area == area
        )
        parts.append("\n".join((f"## {title}\n", "| fault | outcome | in | test |\n|---|---|---|---|", *rows)))
    return "\n\n".join(parts)


def planted_bugs() -> str:
    """Return the table of planted bugs: what each patch breaks, and how soon the last full run found it."""
    lines = ["| planted bug | what it breaks | faults until found | processor seconds |", "|---|---|---:|---:|"]
    folder = TESTS / "simulation" / "mutants"
    runs = dict(_found(row) for row in (folder / "found.csv").read_text("utf-8").splitlines()[1:])
    for patch in sorted(folder.glob("*.patch")):
        breaks = patch.read_text("utf-8").partition("\n")[0]
        injected, seconds = runs.get(patch.stem, ("not run", ""))
        lines.append(f"| {patch.stem.replace('-', ' ')} | {breaks} | {injected} | {seconds} |")
    return "\n".join(lines)


def _found(row: str) -> tuple[str, tuple[str, str]]:
    name, injected, seconds = row.split(",")
    return name, (f"{int(injected):,}", seconds)
