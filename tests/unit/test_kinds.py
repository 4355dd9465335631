"""Conditions on a kind of score are few outside of `kinds`: a kind is a strategy, not a flag that everything asks for."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = {"battles", "binary", "graded", "repeats", "suite", "weighted"}
MOST = 56
"""Conditions in monitor/ now; 40 is the aim. Lower it when you cut."""


def conditions(source: str) -> list[str]:
    """Return the conditions on a kind of score, each with its line."""
    tests: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            tests.append(node.test)
        elif isinstance(node, ast.comprehension):
            tests += node.ifs
        elif isinstance(node, ast.match_case) and node.guard is not None:
            tests.append(node.guard)
    return [f"{test.lineno}: {ast.unparse(test)}" for test in tests if KINDS & names(test)]


def names(test: ast.expr) -> set[str]:
    """Return the names and attributes in an expression."""
    nodes = list(ast.walk(test))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_conditions_are_found():
    source = "x = 1 if board.binary else 2\nif weighted is None and y:\n    pass\nz = [k for k in y if k.battles]\nif other:\n    pass\n"
    found = {"1: board.binary", "2: weighted is None and y", "4: k.battles"}
    assert set(conditions(source)) == found


def test_conditions_on_a_kind_become_no_more():
    paths = [path for path in (ROOT / "monitor").rglob("*.py") if "kinds" not in path.parts]
    found = [
        f"{path.relative_to(ROOT)}:{each}" for path in sorted(paths) for each in conditions(path.read_text("utf-8"))
    ]
    print("\n".join(found))
    assert len(found) <= MOST, "let the module of the kind answer, in place of a condition"
