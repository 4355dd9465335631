"""Sections of docstrings are for those who call a function without reading it: in `stats`, and in what plug-ins are written against."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = {
    "monitor/notify/targets.py",
    "monitor/publish/relay.py",
    "monitor/render/board/contract.py",
    "monitor/render/board/exporters.py",
    "monitor/render/board/standings.py",
}
SECTION = re.compile(r"^ *[A-Z]\w+( \w+)?\n *-{3,}$", re.MULTILINE)


def sectioned(source):
    """Return the lines of the definitions with sections in their docstring."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [getattr(node, "lineno", 1) for node in found if SECTION.search(ast.get_docstring(node) or "")]


def test_a_section_is_found():
    assert sectioned('def f(x):\n    """Do.\n\n    Parameters\n    ----------\n    x : int\n    """\n') == [1]


@pytest.mark.parametrize("package", ["monitor", "schemas"])
def test_only_contracts_have_sections(package):
    paths = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / package).rglob("*.py")}
    found = {name: lines for name, path in paths.items() if (lines := sectioned(path.read_text()))}
    assert set(found) <= CONTRACTS, "say it in one sentence, by better names, or in a comment that says why"
