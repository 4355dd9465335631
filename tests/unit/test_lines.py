"""The code keeps to its budgets of lines, package by package."""

import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGETS = tomllib.loads((ROOT / "docs/generate/lines.toml").read_text("utf-8"))
PAGE = "monitor/serve/page"
MOST = 100_462
"""Lines of all packages. They may give lines to each other; lower it when you cut."""


def package(path: Path) -> str:
    """Return the package of a file of the product; the page of the server is one of its own."""
    parts = path.relative_to(ROOT).parts
    if "/".join(parts).startswith(f"{PAGE}/"):
        return PAGE
    return "/".join(parts[:2]) if parts[0] == "monitor" and len(parts) > 2 else parts[0]


def test_every_package_keeps_to_its_budget_of_lines():
    paths = [path for room in ("monitor", "schemas", "stats") for path in sorted((ROOT / room).rglob("*.py"))]
    paths += [path for kind in ("js", "css", "html") for path in sorted((ROOT / PAGE).rglob(f"*.{kind}"))]
    assert sum(BUDGETS.values()) <= MOST
    lines = Counter()
    for path in paths:
        lines[package(path)] += path.read_text("utf-8").count("\n")
    assert lines.keys() == BUDGETS.keys()
    over = {
        name: f"{count:,} lines, more than {BUDGETS[name]:,}" for name, count in lines.items() if count > BUDGETS[name]
    }
    assert not over
