"""`rankwatch board` against a server: what it prints, its exit codes, and what to do after an error."""

import json

import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.serve.api.writing import appending
from tests.served import Served

SCORES = [
    {"benchmark": "physics", "item_id": str(k), "model": model, "score": int(model == "ash")}
    for k in range(30)
    for model in ("ash", "birch")
]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(appending, "FOLD_SECONDS", 0.1)


@pytest.fixture(scope="module")
def server():
    with Served(token="secret") as server:
        server.post([{"declare": "physics", "items": 30}, *SCORES], authorization="Bearer secret")
        yield server


@pytest.fixture
def run(server, monkeypatch):
    monkeypatch.setenv("RANKWATCH_TOKEN", "secret")

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, ["board", *arguments, "--server", server.url])
        assert result.exit_code == code, result.output
        return result.output

    return run


def rows(run):
    return {each["benchmark"]: each for each in json.loads(run("list", "--format", "json"))["boards"]}


def test_the_life_of_a_board(run, tmp_path):
    assert "physics" in run("list")
    assert '"items": 30' in run("show", "physics")
    assert json.loads(run("show", "physics", "--format", "json"))["spec"]["items"] == 30
    assert run("archive", "physics") == "physics: archived; later records of it are refused\n"
    assert "archived: no record from offset" in run("list")
    assert "cannot archive the board: " in run("archive", "physics", code=1)
    run("restore", "physics")
    run("rename", "physics", "Physics, [June]")
    assert rows(run)["physics"]["title"] == "Physics, [June]"
    assert "Physics, [June]" in run("list")
    file = tmp_path / "physics.jsonl"
    assert "61 lines written" in run("export", "physics", "--output", str(file))
    assert [json.loads(line) for line in file.read_text().splitlines()][1:] == SCORES
    assert file.stat().st_mode & 0o077 == 0
    assert run("export", "physics") == file.read_text()
    assert "give --yes" in run("delete", "physics", code=2)
    assert rows(run)["physics"]["state"] == "open"
    run("delete", "physics", "--yes")
    assert rows(run)["physics"]["state"] == "deleted"
    assert "has no events here" in run("export", "physics", code=1)
    run("reopen", "physics")
    assert "generation 2" in run("list")


def test_what_a_producer_sent_is_withdrawn(run, server):
    server.post([{"declare": "chemistry", "items": 30}], authorization="Bearer secret")
    server.post([each | {"benchmark": "chemistry"} for each in SCORES], authorization="Bearer secret")
    assert "give --producer" in run("undo", "chemistry", code=2)
    assert "give --yes" in run("undo", "chemistry", "--producer", "operator", code=2)
    assert "give --yes" in run("delete-model", "chemistry", "ash", code=2)
    assert "is not a time" in run("undo", "chemistry", "--producer", "operator", "--since", "noon", "--yes", code=2)
    assert "none of the events of producer ci" in run("undo", "chemistry", "--producer", "ci", "--yes", code=1)
    done = run("delete-model", "chemistry", "ash", "--yes")
    assert done.endswith("chemistry: 30 events withdrawn, 30 stay; it is the next generation, which its report names\n")
    assert rows(run)["chemistry"]["events"] == 30
    assert run("rename-model", "chemistry", "birch", "Birch 7B") == "chemistry: birch is shown as Birch 7B\n"
    report = server.get("benchmarks/chemistry", authorization="Bearer secret").json["benchmarks"][0]
    assert (report["models"][0]["model"], report["models"][0]["title"]) == ("birch", "Birch 7B")
    assert "generation 2: the events of model ash were withdrawn at offset" in report["board"]["note"]
    server.post([SCORES[0] | {"benchmark": "chemistry", "model": "cedar"}], authorization="Bearer secret")
    assert "is the name of another model" in run("rename-model", "chemistry", "cedar", "birch", code=1)
    assert "is the title of birch" in run("rename-model", "chemistry", "cedar", "Birch 7B", code=1)
    assert "has no model elm" in run("rename-model", "chemistry", "elm", "x", code=1)
    done = run("undo", "chemistry", "--producer", "operator", "--since", "2026-01-01T00:00Z", "--yes")
    assert "chemistry: 31 events withdrawn, 0 stay" in done
    assert "generation 3: the events of producer operator since 2026-01-01T00:00:00Z were withdrawn" in run("list")


def test_what_is_wrong_is_named(run, monkeypatch, tmp_path):
    assert "nobody has no board" in run("delete", "nobody", "--yes", code=1)
    assert "is not the address of a server" in CliRunner().invoke(app, ["board", "list", "--server", "x"]).output
    assert "give --server http://host:port" in CliRunner().invoke(app, ["board", "list"]).output
    away = CliRunner().invoke(app, ["board", "list", "--server", "http://127.0.0.1:9"])
    assert (away.exit_code, "no answer; check that it runs" in away.output) == (1, True)
    assert "does not exist" in run("list", "--token-file", str(tmp_path / "none"), code=2)
    monkeypatch.setenv("RANKWATCH_TOKEN", "wrong")
    assert "RANKWATCH_TOKEN" in run("list", code=1)
