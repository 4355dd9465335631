"""Kill `watch` and its server, really, at named points and at random, and start it again: the outcome is that of a run without a kill.

Every kill is printed. RANKWATCH_SLOW=1 raises the number of random kills from 10 to 200; RANKWATCH_SEED chooses other moments.
"""

import contextlib
import gzip
import json
import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from monitor.crash_points import POINTS, VARIABLE
from tests import forked
from tests.commands import (
    PATIENCE,
    RANKWATCH,
    Counted,
    Watch,
    as_latches,
    by_oracle,
    changes,
    environment,
    events,
    in_order,
    letters,
    pairs_of,
    until,
    watch_once,
    write,
)

SKILLS = {"alpha": 0.95, "bravo": 0.8, "charlie": 0.5, "delta": 0.2}
FILES, ITEMS = 24, 20
RANDOM_KILLS = 200 if os.environ.get("RANKWATCH_SLOW") == "1" else 10
KILLS_A_DIRECTORY = 5
SEED = int(os.environ.get("RANKWATCH_SEED", "32"))
FLAGS = ("--items", f"complete={FILES * ITEMS}")
OFTEN = {"RANKWATCH_SNAPSHOT_SECONDS": "0.01"}
"""Pair sums are saved so often that a kill finds them in any state."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Many short files of two benchmarks, with duplicates, conflicts, bad lines and refused declarations in them, and a refused file.

    Returned with the events of each benchmark.
    """
    folder = tmp_path_factory.mktemp("results")
    rng = random.Random(31)
    records = {"complete": [], "trusted": []}
    for k in range(FILES):
        some = {name: events(rng, SKILLS, ITEMS, benchmark=name, start=k * ITEMS) for name in records}
        for name, new in some.items():
            new += [event | {"score": rng.choice([0, 1])} for event in rng.sample(new, 3)]
            records[name] += new
        lines = [*some["complete"], *some["trusted"]]
        lines[k:k] = ["{", {"benchmark": "trusted", "item_id": f"bad {k}", "model": "m", "score": 1.5}]
        if k == 0:
            lines.insert(0, {"declare": "trusted", "order": "trusted"})
            lines.append({"declare": "trusted", "items": 9})
        if k % 5:
            write(folder / f"part-{k:02d}.jsonl", lines)
        else:
            with gzip.open(folder / f"part-{k:02d}.jsonl.gz", "wt") as file:
                file.writelines((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    (folder / "part-05b.jsonl").write_text("not JSON\n")
    return folder, records


def outcome(data, text):
    """Everything that a kill must not change: the report with its counters, the feed, the dead letters."""
    return text, (data / "verdicts.jsonl").read_bytes(), (data / "dead-letters.jsonl").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(results, tmp_path_factory):
    """The outcome of a run without a kill; itself checked against an event-by-event fold."""
    folder, records = results
    data = tmp_path_factory.mktemp("undisturbed") / "data"
    text = watch_once(data, folder, "--pairs", "all", *FLAGS)
    for benchmark in json.loads(text)["benchmarks"]:
        name = benchmark["benchmark"]
        assert pairs_of(benchmark) == Counted(records[name]).pairs()
        assert benchmark["conflicts"] == Counted(records[name]).conflicts > 0
        policy = {"policy": "trusted"} if name == "trusted" else {"policy": "completion", "items": FILES * ITEMS}
        mine = [change for change in in_order(changes(data)) if change["benchmark"] == name]
        assert as_latches(mine) == by_oracle(records[name], **policy)
        assert [Path(file["path"]).name for file in benchmark["refused"]] == ["part-05b.jsonl"]
    assert sum(benchmark["unread_items"] for benchmark in json.loads(text)["benchmarks"]) == 2 * FILES
    assert [len(benchmark["refused_declarations"]) for benchmark in json.loads(text)["benchmarks"]] == [0, 1]
    assert len(changes(data)) > 12
    assert len(letters(data)) == 2 * FILES + 2
    return outcome(data, text)


def command(data, folder):
    return [
        RANKWATCH,
        "watch",
        str(folder),
        "--once",
        "--format",
        "json",
        "--pairs",
        "all",
        "--data-dir",
        str(data),
        *FLAGS,
    ]


def finished(data, folder):
    """Start it again, with nothing armed, and let it come to its end."""
    return outcome(data, watch_once(data, folder, "--pairs", "all", *FLAGS))


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def test_killed_while_it_checks_what_was_folded(results, undisturbed, tmp_path):
    """The check reads the log while files are read: a kill in it is a kill at any point of the reading."""
    folder, _ = results
    data, part = tmp_path / "data", sorted(folder.iterdir())[: FILES // 2]
    watch_once(data, *part, "--pairs", "all", *FLAGS)
    for _ in range(2):
        ended = forked.run(command(data, folder), env=environment(**{VARIABLE: "check"}, **OFTEN), timeout=PATIENCE)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert finished(data, folder) == undisturbed


@pytest.mark.fault(
    "processes",
    "`watch` killed at each named point, three times a data directory",
    "after a restart, report, feed and dead letters are as in a run without a kill",
)
@pytest.mark.parametrize("point", [point for point in POINTS if point != "check"])
def test_killed_at_a_named_point(results, undisturbed, tmp_path, point):
    """Three kills of one data directory, each later in the run that it ends, then a run to the end."""
    folder, _ = results
    # A reader that is far ahead of the fold leaves it few chunks: a run may end before its fourth one. Then a new directory begins.
    for data in (tmp_path / f"data{k}" for k in range(5)):
        if all(killed(data, folder, point, passing) for passing in (1, 2, 4)):
            break
        assert finished(data, folder) == undisturbed
    else:
        pytest.fail("no directory was killed three times")
    assert finished(data, folder) == undisturbed


def killed(data, folder, point, passing):
    """Whether a run was killed where it passes a point, and not at its end before."""
    env = environment(**{VARIABLE: f"{point}:{passing}"}, **OFTEN)
    ended = forked.run(command(data, folder), env=env, timeout=PATIENCE)
    print(f"killed at {point}, passing {passing}: exit {ended.returncode}, log {size_of(data / 'log.jsonl'):,} bytes")
    assert ended.returncode == -signal.SIGKILL or (ended.returncode == 0 and passing > 1), ended.stderr
    assert ended.returncode == 0 or ended.stdout == ""
    return ended.returncode != 0


@pytest.mark.fault("processes", "`watch` and its server killed at random moments", "the same; the seed is printed")
def test_killed_at_random_moments(results, undisturbed, tmp_path):
    """Kills of one data directory, one after the other; a new directory once it has come to its end."""
    folder, records = results
    kills, ends = 0, 0
    rng = random.Random(SEED)
    data = tmp_path / "data0"
    whole = sum(len(json.dumps(event)) for some in records.values() for event in some)
    while kills < RANDOM_KILLS:
        with forked.start(
            command(data, folder), env=environment(**OFTEN), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            # From opening the log on there is something to lose; before that a kill is a run that never was.
            until(partial(opened_or_ended, process, data / "log.jsonl"), "the log to be opened", 3 * PATIENCE)
            # Some while it starts, loads and reads again; most while it folds, however slow the machine is.
            target = 0 if rng.random() < 0.3 else rng.uniform(size_of(data / "log.jsonl"), whole)
            until(partial(grown_or_ended, process, data / "log.jsonl", target), "the log to grow")
            delay = rng.uniform(0, 0.1 if target else 0.6)
            time.sleep(delay)
            process.kill()
            errors = process.stderr.read().decode()
        killed = process.returncode == -signal.SIGKILL
        assert killed or process.returncode == 0, errors
        kills += killed
        print(
            f"seed {SEED}: {f'kill {kills}' if killed else 'it was faster'}, {delay * 1000:.0f} ms after {target:,.0f} bytes, "
            f"log {size_of(data / 'log.jsonl'):,} bytes, feed {size_of(data / 'verdicts.jsonl'):,} bytes"
        )
        if not killed or kills % KILLS_A_DIRECTORY == 0:
            assert finished(data, folder) == undisturbed
            ends += 1
            data = tmp_path / f"data{ends}"


def opened_or_ended(process, path):
    """Whether a process has opened a file, or has ended."""
    if process.poll() is not None:
        return True
    with contextlib.suppress(OSError):
        return any(link.readlink() == path for link in Path(f"/proc/{process.pid}/fd").iterdir())
    return False


def grown_or_ended(process, path, size):
    """Whether a file is longer than that, or the process has ended."""
    return process.poll() is not None or size_of(path) >= size


@pytest.mark.fault(
    "store",
    "embedded server killed, the end of its file cut off or all of it",
    "exit 1 with the reason; right after a restart, no change delivered twice",
)
def test_a_server_that_is_killed_and_loses_the_end_of_its_file(results, undisturbed, tmp_path):
    """The log is the truth: everything that the server has lost is folded again, and no change is delivered twice."""
    folder, _ = results
    data = tmp_path / "data"
    feed = data / "verdicts.jsonl"
    reached = 0
    for lost in (1, 3_000, 10**9):
        with Watch(data, folder, *FLAGS, **OFTEN) as watch:
            server = watch.server
            until(lambda least=reached: size_of(feed) > least, "the feed to grow")
            os.kill(server, signal.SIGKILL)
            begin = time.monotonic()
            code = watch.ended()
            took = time.monotonic() - begin
        (aof,) = (data / "valkey/appendonlydir").glob("*.incr.aof")
        size = size_of(aof)
        os.truncate(aof, max(0, size - lost))
        print(
            f"server killed with {size:,} bytes in its file, {min(lost, size):,} of them cut off then; the feed had "
            f"{size_of(feed):,} bytes; watch ended {took:.1f} s later with {code}"
        )
        assert code == 1
        message = "".join(watch.errors)
        assert message.count("\n") == 1, message
        assert "the embedded Valkey has ended" in message
        assert "start again" in message
        reached = min(size_of(feed), len(undisturbed[1]) - 1)
    assert finished(data, folder) == undisturbed
