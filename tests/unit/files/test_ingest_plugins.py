"""Importers of other distributions: the template, plugins that fail, and the contract that ours keep too."""

import importlib.util
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from monitor.files.formats import contract, detect
from monitor.files.formats.plugins import GROUP, plugins
from monitor.files.formats.registry import Format
from monitor.files.formats.results import Tool
from tests.unit.files.native_logs import Read
from tests.unit.files.tool_files import BFCL, TOOLS

EXAMPLE = Path(__file__).parents[3] / "examples" / "importer"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def install(monkeypatch):
    """Install entry points, as packages would."""
    holder = type(sys)("rankwatch_installed")
    monkeypatch.setitem(sys.modules, "rankwatch_installed", holder)

    def clear():
        plugins.cache_clear()
        detect._json_format_of.cache_clear()
        monkeypatch.setattr("monitor.files.formats.plugins._problems", {})

    def add(**formats):
        for name, value in formats.items():
            setattr(holder, name, value)
        points = [metadata.EntryPoint(name, f"rankwatch_installed:{name}", GROUP) for name in formats]
        missing = [metadata.EntryPoint("gone", "no_such_module_of_rankwatch:FORMAT", GROUP)]
        monkeypatch.setattr(metadata, "entry_points", lambda group: points + missing if group == GROUP else [])
        clear()

    yield add
    plugins.cache_clear()
    detect._json_format_of.cache_clear()


@pytest.mark.parametrize("made", TOOLS.values(), ids=TOOLS)
def test_our_importers_keep_the_contract(tmp_path, made):
    path = made.write(tmp_path)
    events = contract.read_one(path)[0]
    expected = [(b, item, model, repeat, score) for b, item, model, score, _, repeat in made.events]
    if made is not BFCL:  # its events of two models are in two files
        expected = [row for row in expected if row[:4] in {(e.benchmark, e.item_id, e.model, e.repeat) for e in events}]
    else:
        expected = [row for row in expected if row[2] == "a"]
    contract.check_importer(path, expected, lines=made.lines)


def test_the_template_is_an_importer(tmp_path, install):
    install(acme=load("rankwatch_acme").FORMAT)
    load("test_rankwatch_acme").test_the_importer_keeps_the_contract(tmp_path)
    (tmp_path / "results.json").write_text(
        json.dumps(
            {
                "acme_version": 1,
                "system": "a",
                "suite": "s",
                "answers": [{"q": "1", "grade": 1}, {"q": "2", "crashed": True}],
            }
        )
    )
    read = Read(tmp_path, failed="zero")
    assert [e.score for e in read.events] == [1, 0]
    assert any(
        "the importer gone is not used: it cannot be loaded (ModuleNotFoundError)" in note for note in read.notes
    )


def fail(*_):
    raise TypeError("a bug")
    yield


@pytest.mark.parametrize("tool", [Tool("x", read=fail), Tool("x", lines=lambda _: fail)], ids=["document", "lines"])
def test_an_importer_that_fails_costs_its_file_only(tmp_path, install, tool):
    paths = {"document": ("zzz",)} if tool.read else {"lines": ("zzz",)}
    install(bad=Format("bad", tool=tool, **paths), worse=3)
    (tmp_path / "a.json").write_text('{"zzz": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"benchmark":"x","item_id":"1","model":"m","score":1}\n')
    read = Read(tmp_path)
    assert len(read.events) == 1
    assert [(fault[1], fault[2]) for fault in read.faults] == [("importer", "bad")]
    assert "failed (TypeError)" in read.faults[0][3]
    assert any("the importer worse is not used: it names no Format" in note for note in read.notes)


def test_a_contract_that_is_not_kept_is_named(tmp_path):
    path = TOOLS["SWE_BENCH_PRO"].write(tmp_path)
    with pytest.raises(AssertionError, match="the file gives other events"):
        contract.check_importer(path, [], lines=False)
