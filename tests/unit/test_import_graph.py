"""The generated parts of the documentation match the code."""

import ast
from graphlib import CycleError
from pathlib import Path

import pytest

from docs.generate import import_graph
from docs.generate.__main__ import PARTS
from docs.generate.pages import DOCS, with_part

LONGEST = 15
"""Modules of the longest chain of imports."""

MOST_WITHIN = 60
"""Imports inside functions: what few commands need, and what is slow to load."""


@pytest.mark.parametrize(("page", "name", "render"), PARTS, ids=[name for _, name, _ in PARTS])
def test_a_page_matches_the_code(page, name, render):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == with_part(text, name, render()), "run `python -m docs.generate`"


def test_a_room_is_one_level_above_the_rooms_that_it_imports():
    imports = {
        "monitor.a": {"monitor.b.inner", "stats"},
        "monitor.b": set(),
        "monitor.b.inner": {"monitor.b", "stats"},
        "stats": set(),
    }
    assert import_graph.room_levels(imports) == {"stats": 0, "monitor.b": 1, "monitor.a": 2}


def test_a_cycle_between_rooms_is_an_error():
    with pytest.raises(CycleError):
        import_graph.room_levels({"monitor.a": {"monitor.b"}, "monitor.b": {"monitor.a"}})


def test_the_longest_chain_of_imports_is_found():
    assert import_graph.longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == ["a", "b", "c"]


def test_no_chain_of_imports_is_longer_than_it_was():
    chain = import_graph.longest_chain(import_graph.module_imports())
    print("\n".join(chain))
    assert len(chain) <= LONGEST, "move what both ends need below them; lower the bound when you cut"


def test_few_imports_are_inside_functions():
    within = [
        f"{path}:{each.lineno}"
        for path in Path("monitor").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for each in ast.walk(function)
        if isinstance(each, ast.Import | ast.ImportFrom)
    ]
    assert within, "the folder of the code is not the current one"
    assert len(within) <= MOST_WITHIN, "\n".join(within)


def test_a_page_without_markers_is_an_error():
    with pytest.raises(ValueError, match="no markers"):
        with_part("text", "commands", "body")
