"""The examples in docstrings give what is written there."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for package in ("stats", "schemas", "monitor") for path in sorted((ROOT / package).rglob("*.py"))]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
