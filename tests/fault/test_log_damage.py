"""A log that the disk or another program has changed: refused in one line, never folded into another report."""

import json
import random
import shutil

import pytest

from monitor.log.file.lines import Lines
from tests.commands import Watch, rankwatch, watch_once

SEED = 18


def board(path):
    rng = random.Random(SEED)
    events = [
        {"benchmark": "bench", "item_id": f"{item}", "model": model, "score": int(rng.random() < p)}
        for item in range(300)
        for model, p in (("a", 0.9), ("b", 0.5), ("c", 0.5))
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.fixture
def watched(tmp_path):
    """A data directory, the file that it watched, and its log."""
    data, path = tmp_path / "data", board(tmp_path / "results.jsonl")
    watch_once(data, path, "--items", "300")
    return data, path, data / "log.jsonl"


def refused(*arguments):
    """The one line with which a command ends."""
    ended = rankwatch(*arguments, code=1)
    assert not ended.stdout
    (line,) = [line for line in ended.stderr.splitlines() if "warning" not in line]
    return line


@pytest.mark.fault(
    "log",
    "a score changed in the log, the state deleted",
    "exit 1 in one line with file, byte and remedy; `doctor` names it too",
)
def test_a_score_that_was_flipped_is_no_other_report(watched):
    """Before there were checksums: another report with exit 0, after the state was deleted as a refusal of the state advises."""
    data, path, log = watched
    whole = log.read_bytes()
    at = whole.index(b'"score": 1', len(whole) // 2) + len(b'"score": ')
    log.write_bytes(whole[:at] + b"0" + whole[at + 1 :])
    shutil.rmtree(data / "valkey")
    line = refused("watch", path, "--once", "--data-dir", data)
    start = whole.rindex(b"\n", 0, at) + 1
    assert f"{log} is damaged at byte {start}: the line there does not match its checksum" in line
    assert "restore the file from a backup, or keep the rest of it with `rankwatch state salvage`" in line
    doctor = rankwatch("doctor", "--data-dir", data, code=1).stdout
    assert f"{log} is damaged at byte {start}" in doctor
    log.write_bytes(whole)
    watch_once(data, path, "--items", "300")
    assert "every record matches its checksum" in rankwatch("doctor", "--data-dir", data).stdout


def board_of(data, path):
    """The report of the board, once a file is read and the log is folded."""
    return json.loads(watch_once(data, path, "--items", "300"))["benchmarks"][0]


def flip(log):
    """Change a score in the middle of a log; return where its line begins."""
    whole = log.read_bytes()
    at = whole.index(b'"score": 1', len(whole) // 2) + len(b'"score": ')
    log.write_bytes(whole[:at] + b"0" + whole[at + 1 :])
    return whole.rindex(b"\n", 0, at) + 1


@pytest.mark.fault("log", "a score changed in the log, the state kept", "the same")
def test_a_score_that_was_flipped_is_noticed_while_the_state_is_kept(watched):
    """Only the last folded record was compared, so nobody would have known before the state was lost."""
    data, path, log = watched
    start = flip(log)
    line = refused("watch", path, "--once", "--data-dir", data)
    assert f"{log} is damaged at byte {start}" in line
    watch = Watch(data, path)  # one that goes on
    assert watch.ended() == 1


@pytest.mark.fault(
    "log",
    "a damaged byte, then `state salvage`",
    "the rest counts; each benchmark is partial permanently, with what was lost",
)
def test_the_rest_of_a_damaged_log_is_folded_and_names_what_is_lost(tmp_path):
    """A watched file, whose later parts do not follow the lost one, and posted events: the file is gone, and so is the state."""
    data, path = tmp_path / "data", board(tmp_path / "results.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    log = data / "log.jsonl"
    for end in (300, 500, 900):
        path.write_text("".join(lines[:end]))
        watch_once(data, path, "--items", "300")
    before = board_of(data, path)
    whole = log.read_bytes()
    starts = [k + 1 for k, byte in enumerate(whole) if byte == 10 and k + 1 < len(whole)]
    at = starts[-2]  # the record of the lines from 301 to 500
    log.write_bytes(whole[: at + 60] + bytes([whole[at + 60] ^ 1]) + whole[at + 61 :])
    shutil.rmtree(data / "valkey")
    path.unlink()
    printed = rankwatch("state", "salvage", "--data-dir", data).stderr
    assert f"lost: bytes {at:,} to {starts[-1] - 1:,} of the log" in printed
    assert "1 damaged part given up" in printed
    nothing = tmp_path / "nothing.jsonl"
    nothing.write_text("")
    after = board_of(data, nothing)
    assert (before["events"], after["events"]) == (900, 700)
    assert before["partial"] is None
    assert f"records {at:,} to {starts[-1] - 1:,} of partition 0 of the log were lost" in after["partial"]
    assert "given up by `state salvage`" in rankwatch("doctor", "--data-dir", data).stdout
    # Sent again, nothing counts twice, and what was lost counts.
    path.write_text("".join(lines))
    again = board_of(data, path)
    assert (again["events"] - again["duplicates"], again["conflicts"]) == (900, 0)
    assert again["partial"] == after["partial"], "permanently"


@pytest.mark.fault("log", "the last line of the log changed, or an older copy extended", "refused at the start")
def test_a_state_that_is_ahead_notices_a_changed_last_line_and_another_history(watched):
    data, path, log = watched
    whole = log.read_bytes()
    for changed, message in (
        (whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:], "is damaged at byte"),
        (whole[:-1] + b" ", "is damaged at byte"),
        (whole[: whole.rindex(b"\n", 0, -1) + 1], "has lost its end"),
        (rewritten(whole), "holds another record at byte"),
    ):
        log.write_bytes(changed)
        assert message in refused("watch", path, "--once", "--data-dir", data)
        assert log.read_bytes() == changed, "a refusal changes nothing"


def rewritten(whole):
    """The log with another last record of the same length, as an older copy that was extended would have it."""
    header, *lines = whole.splitlines(keepends=True)
    start = len(whole) - len(lines[-1])
    record = lines[-1][23:-2].replace(b'"score": 1', b'"score": 0', 1)
    return whole[:start] + Lines(json.loads(header)[2]["log"]).encode([record], start)
