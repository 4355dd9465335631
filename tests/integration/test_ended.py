"""The end of runs, by each way in: the record in a file, `--ended`, HTTP and `send`; afterwards a run takes no new score."""

import json

import pytest

from tests.commands import Watch, get, letters, rankwatch, until, watch_once, write

ITEMS = 40
REFUSED = "the run of a has ended; send changed scores under a new epoch"


def board(models="ab", items=ITEMS, **more):
    return [
        {"benchmark": "bench", "item_id": f"i{k}", "model": model, "score": int((model == "a") == (k % 10 > 0)), **more}
        for model in models
        for k in range(items)
    ]


def runs(text):
    """Whether each run has ended, and the status of the pairs."""
    benchmarks = json.loads(text)["benchmarks"]
    ended = {m["model"]: m["run_ended"] for b in benchmarks for m in b["models"]}
    return ended, {p["status"] for b in benchmarks for p in b["pairs"]}


def log_ends(data):
    """The ends of runs in a log."""
    found = (json.loads(line) for line in (data / "log.jsonl").read_text().splitlines())
    return [record for record in found if record.get("ended")]


def served(watch):
    return get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1]


def test_watch_ends_every_run_once_its_files_are_read(tmp_path):
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    path = write(folder / "a.jsonl", board("a", 30))
    write(folder / "b.jsonl", board("b"))
    watch_once(data, folder, "--items", ITEMS)
    assert log_ends(data) == []
    first = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data)
    assert "rankwatch: 2 runs ended\n" in first.stderr
    assert log_ends(data) == [{"ended": "bench", "model": "a"}, {"ended": "bench", "model": "b"}]
    log = (data / "log.jsonl").read_bytes()
    again = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data)
    assert "rankwatch: 0 runs ended; 2 had ended before\n" in again.stderr
    assert (data / "log.jsonl").read_bytes() == log

    write(path, board("a")[30:], mode="a")
    write(folder / "c.jsonl", board("c"))
    later = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data, "--format", "json")
    assert "rankwatch: 1 run ended; 2 had ended before\n" in later.stderr
    assert "10 records could not be read" in later.stderr
    assert {letter["reason"] for letter in letters(data)} == {REFUSED}
    assert runs(later.stdout)[0] == {"a": True, "b": True, "c": True}


def test_watch_ends_the_runs_of_the_epoch_that_it_gives(tmp_path):
    path, data = write(tmp_path / "a.jsonl", board()), tmp_path / "data"
    new = write(tmp_path / "b.jsonl", board("a"))
    watch_once(data, path, "--items", ITEMS)
    rankwatch("watch", new, "--once", "--ended", "--epoch", "next", "--data-dir", data)
    rankwatch("watch", new, "--once", "--ended", "--epoch", "next", "--data-dir", data)
    assert log_ends(data) == [{"ended": "bench", "model": "a", "epoch": 1}]


def test_aliases_end_the_run_of_the_model(tmp_path):
    path, data = write(tmp_path / "a.jsonl", [*board("a", 20), *board("x")[20:], *board("b")]), tmp_path / "data"
    rankwatch("watch", path, "--once", "--ended", "--data-dir", data, "--items", ITEMS, "--alias", "x=a")
    assert [record["model"] for record in log_ends(data)] == ["a", "b"]


def test_watch_ends_the_runs_while_it_follows(tmp_path):
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    records = board(items=30)
    path = write(folder / "a.jsonl", records[:-1])
    with path.open("a") as file:
        file.write(json.dumps(records[-1]))  # complete, but for its newline
    with Watch(
        data, folder, "--items", ITEMS, "--ended", "--missing", "ignorable", RANKWATCH_POLL_SECONDS="0.05"
    ) as watch:
        until(lambda: runs(served(watch)) == ({"a": True, "b": True}, {"decided"}), "the end of both runs")
        write(folder / "c.jsonl", board("c"))
        until(lambda: runs(served(watch))[0].get("c") is False, "a run that comes later")
        write(path, ["", *board("a")[30:]], mode="a")
        until(lambda: (data / "dead-letters.jsonl").exists() and len(letters(data)) == 10, "the refused scores")
        assert {letter["reason"] for letter in letters(data)} == {REFUSED}
        assert watch.stop() == 0
    assert len(log_ends(data)) == 2
    assert log_ends(data)[0] == {"ended": "bench", "model": "a"}


def test_ended_needs_files(tmp_path):
    refused = rankwatch("watch", "--ended", "--data-dir", tmp_path, code=2)
    assert "give the files or folders whose runs end" in refused.stderr


@pytest.mark.parametrize("how", ["record", "flag"])
def test_send_ends_runs_over_http(tmp_path, how):
    ends = [{"ended": "bench", "model": model} for model in "ab"] if how == "record" else []
    path, data = write(tmp_path / "a.jsonl", [*board(items=30), *ends]), tmp_path / "data"
    flags = ["--ended"] if how == "flag" else []
    with Watch(data) as watch:
        command = ["send", path, "--to", watch.url, "--items", ITEMS, "--data-dir", tmp_path / "sent", *flags]
        first = rankwatch(*command).stdout
        assert first.startswith(f"60 events of 1 benchmark sent to {watch.url}")
        assert ("; 2 runs ended" in first) == (how == "flag")
        until(lambda: runs(served(watch)) == ({"a": True, "b": True}, {"exhausted"}), "the end of both runs")
        assert rankwatch(*command).stdout == f"nothing new sent to {watch.url}\n"
        write(path, board("a")[30:], mode="a")
        told = rankwatch(*command)
        if how == "flag":
            assert "bench: the run of a (epoch 0) has ended there, so new scores of it are refused" in told.stderr
        until(lambda: (data / "dead-letters.jsonl").exists() and len(letters(data)) == 10, "the refused scores")
        assert {letter["reason"] for letter in letters(data)} == {REFUSED}
