"""`rankwatch state`: what is exported and imported is the same state, on another server and in another number of partitions."""

import asyncio
import json
import os
import random
import shutil
import signal
import struct
import subprocess
from hashlib import blake2b

import pytest

from monitor.render.terminal.state_comparison import as_json
from monitor.retries import RetryPolicy
from monitor.store.errors import StateRefused
from monitor.store.latches import LATCH_BYTES
from monitor.store.redis_store import RedisStore
from monitor.store.seal import field_hash
from monitor.store.transfer import stored_verdicts
from monitor.store.transfer.transfer import Transfer
from tests import forked
from tests.commands import RANKWATCH, environment, events, rankwatch, until, watch_once, write
from tests.redis_server import RedisServer
from tests.stored_state import MODELS, drain, fold, records, runs_and_repeats, state_of, stored


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Two servers; each test uses topics of its own."""
    folders = [tmp_path_factory.mktemp(name) for name in ("from", "to")]
    with RedisServer(folders[0]) as one, RedisServer(folders[1]) as other:
        yield one, other


@pytest.fixture(scope="module")
def exported(servers, tmp_path_factory):
    """A state of three partitions whose changes are all published, and its export."""
    source, _ = servers
    asyncio.run(fold(source.url, "evals", 3, records(random.Random(7), 0, 60)))
    asyncio.run(drain(source.url, "evals", 3))
    file = tmp_path_factory.mktemp("export") / "state.jsonl"
    rankwatch("state", "export", file, "--redis-url", source.url, "--topic", "evals")
    return file


async def test_the_same_topic_on_another_server_holds_the_same_in_every_key(servers, exported):
    source, target = servers
    assert rankwatch("state", "import", exported, "--redis-url", target.url, "--topic", "evals").stderr == (
        "imported 5 benchmarks\n"
    )

    def lasting(server):
        contents = {key: value for key, value in server.contents("{evals:*").items() if b":pairs:" not in key and value}
        passing = {b"writer", b"seq"}
        return {
            key: {k: v for k, v in value.items() if k not in passing} if key.endswith(b":meta") else value
            for key, value in contents.items()
        }

    assert lasting(target) == lasting(source)
    report, changes = await state_of(target.url, "evals", 3)
    assert (report, changes) == await state_of(source.url, "evals", 3)
    assert len(changes) > 10
    # Both go on, and stay the same.
    more = records(random.Random(8), 60, 80)
    for server in servers:
        await fold(server.url, "evals", 3, more)
    assert await state_of(target.url, "evals", 3) == await state_of(source.url, "evals", 3) != (report, changes)


@pytest.mark.parametrize("partitions", [1, 5])
async def test_another_number_of_partitions_has_the_same_reports_latches_and_ids(servers, exported, partitions):
    source, target = servers
    topic = f"evals.{partitions}"
    await fold(source.url, topic, 3, records(random.Random(7), 0, 60))
    command = ("state", "import", exported, "--redis-url", target.url, "--topic", topic, "--partitions", partitions)
    rankwatch(*command)
    assert await state_of(target.url, topic, partitions) == await state_of(source.url, topic, 3)
    counted = [p.counters for p in await stored(target.url, topic, partitions)]
    assert sum(each["rejected"] for each in counted) == 3
    more = records(random.Random(9), 60, 120)
    await fold(source.url, topic, 3, more)
    await fold(target.url, topic, partitions, more)
    (ours, our_changes), (theirs, their_changes) = (
        await state_of(target.url, topic, partitions),
        await state_of(source.url, topic, 3),
    )
    assert ours == theirs
    assert our_changes.keys() == their_changes.keys()


@pytest.mark.parametrize("partitions", [3, 5])
async def test_ended_runs_undeclared_repeats_and_gaps_move_with_the_state(servers, tmp_path, partitions):
    source, target = servers
    topic, file = f"runs.{partitions}", tmp_path / "state.jsonl"
    await fold(source.url, topic, 3, runs_and_repeats(random.Random(3)))
    await drain(source.url, topic, 3)
    async with await RedisStore.open(source.url, topic) as store:
        for number, partition in enumerate(await stored(source.url, topic, 3)):
            await store.commit(partition.skip(partition.off + 1 + number))
    rankwatch("state", "export", file, "--redis-url", source.url, "--topic", topic)
    rankwatch("state", "import", file, "--redis-url", target.url, "--topic", topic, "--partitions", partitions)
    reports, changes = await state_of(target.url, topic, partitions)
    assert (reports, changes) == await state_of(source.url, topic, 3)
    assert all("were lost before they were folded" in report["partial"] for report in reports.values())
    assert {m["model"]: m["run_ended"] for m in reports["runs"]["models"]} == {model: model != "cy" for model in MODELS}
    assert {m["items"] > 0 for m in reports["runs"]["models"] if m["run_ended"]} == {True}
    assert any("ignored" in pair["reason"] for pair in reports["runs"]["pairs"])
    assert (
        "and 1 is declared; declare as many as the items have (repeats: R), or all (repeats: all)"
        in reports["held"]["order"]["reason"]
    )
    # New scores of ended runs are refused on both sides, and the held benchmark stays held.
    more = [e | {"repeat": 9} for name in ("runs", "held") for e in events(random.Random(4), MODELS, 2, benchmark=name)]
    await fold(source.url, topic, 3, more)
    await fold(target.url, topic, partitions, more)
    later, later_changes = await state_of(target.url, topic, partitions)
    assert (later, later_changes) == await state_of(source.url, topic, 3)
    assert later["runs"]["rejected"] == reports["runs"]["rejected"] + 2 * (len(MODELS) - 1)
    assert (later["held"]["order"], later["held"]["rejected"]) == (reports["held"]["order"], 0)


async def test_a_new_log_is_read_from_where_it_is_said(servers, exported):
    _, target = servers
    to = ("--redis-url", target.url, "--topic", "offsets")
    rankwatch("state", "import", exported, *to, "--offset", "1=77")
    assert [p.off for p in await stored(target.url, "offsets", 3)] == [0, 77, 0]
    shown = json.loads(rankwatch("state", "show", *to, "--format", "json").stdout)["partitions"]
    assert [(each["partition"], each["off"], each["log"]) for each in shown] == [(0, 0, ""), (1, 77, ""), (2, 0, "")]
    assert "P=N" in rankwatch("state", "import", exported, *to, "--offset", "x", code=2).stderr
    ended = rankwatch(
        "state", "import", exported, "--redis-url", target.url, "--topic", "o2", "--offset", "3=1", code=1
    )
    assert "partition 3" in ended.stderr
    assert target.contents("{o2:*") == {}


def test_a_state_is_not_written_over(servers, exported):
    source, _ = servers
    before = source.contents("{evals:*")
    ended = rankwatch("state", "import", exported, "--redis-url", source.url, "--topic", "evals", code=1)
    assert "there is a state {evals:0}" in ended.stderr
    assert source.contents("{evals:*") == before


def signed(lines):
    """An archive of these lines with its right last one, which anyone can compute."""
    end = {"end": len(lines), "blake2b": blake2b(b"".join(lines), digest_size=16).hexdigest()}
    return b"".join([*lines, json.dumps(end).encode() + b"\n"])


def falsified(lines):
    """The lines of an archive in which a benchmark counts one event more than it has scores, with its right digest."""
    at, data = next((k, json.loads(line)) for k, line in enumerate(lines) if b'"benchmark":' in line)
    fields, counters = data["spec"], json.loads(data["spec"]["counters"])
    more, seal = json.dumps(counters | {"events": counters["events"] + 1}), json.loads(fields["seal"])
    seal["fields"] += field_hash("counters", more) - field_hash("counters", fields["counters"])
    data["spec"] = fields | {"counters": more, "seal": json.dumps(seal | {"fields": seal["fields"] % 2**64})}
    return [*lines[:at], json.dumps(data).encode() + b"\n", *lines[at + 1 : -1]]


@pytest.mark.parametrize("how", ["cut", "changed", "longer", "empty", "other", "version", "counters", "false", "twice"])
def test_a_damaged_file_changes_nothing(servers, exported, tmp_path, how):
    _, target = servers
    whole = exported.read_bytes()
    lines = whole.splitlines(keepends=True)
    odd = [json.loads(line) for line in lines[:-1]]
    for each in odd:
        for fields in (each.get("meta"), each.get("spec")):
            if fields and "counters" in fields:
                fields["counters"] = "odd"
    bad = {
        "counters": signed([json.dumps(each).encode() + b"\n" for each in odd]),
        "false": signed(falsified(lines)),
        "twice": signed([*lines[:-1], next(line for line in lines if b'"benchmark":' in line)]),
        "cut": whole[: len(whole) * 2 // 3],
        "changed": whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :],
        "longer": whole + lines[1],
        "empty": b"",
        "other": b'{"benchmark": "b", "item_id": "1", "model": "m", "score": 1}\n',
        "version": b"".join([lines[0].replace(b'"rankwatch_state":1', b'"rankwatch_state":2'), *lines[1:]]),
    }[how]
    assert bad != whole
    file = tmp_path / "bad.jsonl"
    file.write_bytes(bad)
    ended = rankwatch("state", "import", file, "--redis-url", target.url, "--topic", "bad", "--partitions", 4, code=1)
    found = {
        "counters": "cannot be read: the file was changed",
        "false": "line 3: a field of ",
        "twice": "comes twice: the file was changed",
    }
    assert how != "false" or "events count, and there are" in ended.stderr
    assert found.get(how, "line ") in ended.stderr
    assert target.contents("{bad:*") == {}


async def test_changes_that_wait_go_with_their_log_and_not_to_another(servers, tmp_path):
    source, target = servers
    await fold(source.url, "waiting", 2, records(random.Random(7), 0, 60))
    file, to = tmp_path / "state.jsonl", ("--redis-url", target.url)
    rankwatch("state", "export", file, "--redis-url", source.url, "--topic", "waiting")
    ended = rankwatch("state", "import", file, *to, "--topic", "waiting", "--new-log", code=1)
    assert "not published yet" in ended.stderr
    assert target.contents("{waiting:*") == {}
    rankwatch("state", "import", file, *to, "--topic", "waiting")
    for number in range(2):
        key = f"{{waiting:{number}}}:outbox".encode()
        assert target.contents().get(key) == source.contents().get(key)
    assert target.contents().get(b"{waiting:0}:outbox") or target.contents().get(b"{waiting:1}:outbox")


async def test_an_import_that_was_killed_is_no_state(servers, exported):
    _, target = servers
    whole = exported.read_bytes()
    command = [RANKWATCH, "state", "import", "-", "--redis-url", target.url, "--topic", "killed"]
    with forked.start(command, env=environment(), stdin=subprocess.PIPE) as process:
        process.stdin.write(whole[: len(whole) // 2])
        process.stdin.flush()
        until(lambda: target.contents("{killed:*:rows:*"), "the import to begin")
        process.kill()
    assert process.returncode == -signal.SIGKILL
    (marked,) = (
        (int(tag[8:-6]) for tag in target.contents("{killed:*}:meta") if tag.endswith(b"}:meta"))
        if len(target.contents("{killed:*}:meta")) == 1
        else (0,)
    )
    with pytest.raises(StateRefused, match="is unfinished; wait for it"):
        await load(target.url, "killed", marked)
    shown = rankwatch("state", "import", exported, "--redis-url", target.url, "--topic", "killed", code=1)
    assert "not overwritten" in shown.stderr


async def load(url, topic, number):
    async with await RedisStore.open(url, topic) as store:
        await store.load(number)


def test_a_data_directory_goes_on_in_another_one_and_in_a_server(servers, tmp_path):
    source, target = tmp_path / "one", tmp_path / "two"
    made = events(random.Random(3), MODELS, 100)
    file = write(tmp_path / "results.jsonl", made[:300])
    watch_once(source, file, "--order", "trusted")
    shown = rankwatch("state", "show", "--data-dir", source).stdout.splitlines()
    assert shown[0].split()[:3] == ["partition", "off", "benchmarks"]
    assert shown[1].split()[2:6] == ["1", "75", "4", "300"]
    archive = rankwatch("state", "export", "-", "--data-dir", source).stdout
    moved = tmp_path / "state.jsonl"
    moved.write_text(archive)
    assert rankwatch("state", "import", moved, "--data-dir", target, "--new-log").stderr == "imported 1 benchmark\n"
    write(file, made[300:], "a")
    ours, theirs = (watch_once(folder, file, "--order", "trusted") for folder in (target, source))
    assert json.loads(ours) == json.loads(theirs)
    (benchmark,) = json.loads(ours)["benchmarks"]
    assert (benchmark["events"], benchmark["duplicates"]) == (400, 0)
    rankwatch("state", "import", moved, "--redis-url", servers[1].url, "--topic", "from.files", "--partitions", 2)
    assert "imported" not in rankwatch("state", "export", os.devnull, "--data-dir", tmp_path / "none", code=1).stderr
    assert not (tmp_path / "none").exists()


def test_an_import_says_what_log_has_to_come_with_it(tmp_path):
    made = events(random.Random(4), MODELS, 60)
    file = write(tmp_path / "results.jsonl", made[:200])
    source, target, archive = (tmp_path / name for name in ("one", "two", "state.jsonl"))
    watch_once(source, file, "--order", "trusted")
    rankwatch("state", "export", archive, "--data-dir", source)
    messages = rankwatch("state", "import", archive, "--data-dir", target).stderr
    assert f"copy its log.jsonl into {target} before you start `watch`" in messages
    assert "--new-log" in messages
    shutil.copy(source / "log.jsonl", target)
    write(file, made[200:], "a")
    ours, theirs = (watch_once(folder, file, "--order", "trusted") for folder in (target, source))
    assert json.loads(ours) == json.loads(theirs)


def test_an_export_into_a_closed_pipe_ends_quietly(tmp_path):
    data = tmp_path / "data"
    watch_once(data, write(tmp_path / "results.jsonl", events(random.Random(5), MODELS, 3)))
    command = [RANKWATCH, "state", "export", "-", "--data-dir", str(data)]
    with forked.start(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.full
def test_two_states_of_a_topic_are_compared_and_times_are_kept(servers):
    here, there = servers
    place = "--redis-url", here.url, "--topic", "both"
    assert "there is no state of topic both" in rankwatch("state", "prepare", there.url, *place, code=1).stderr
    there.client().hset("{both:0}:meta", mapping={"off": 1})  # of a version that signs nothing
    assert "The other state has no signing key" in rankwatch("state", "prepare", there.url, *place).stderr
    assert not here.client().keys("*both*")
    there.client().delete("{both:0}:meta")
    there.client().set("{both:origins}:key", "ab" * 32)
    assert "signing key" not in rankwatch("state", "prepare", there.url, *place).stderr
    assert here.client().get("{both:origins}:key") == b"ab" * 32
    assert "there is no state of topic both" in rankwatch("state", "compare", there.url, *place, code=1).stderr

    made = records(random.Random(9), 0, 60)
    asyncio.run(fold(there.url, "both", 2, made))
    asyncio.run(fold(here.url, "both", 2, made[: len(made) * 9 // 10], limit=75))
    latches = {key: there.client().strlen(key) // LATCH_BYTES for key in there.client().scan_iter("{both:*}:latches:*")}
    for key, count in latches.items():
        there.client().set(key.replace(b":latches:", b":latched_at:"), struct.pack("<d", 1_000.0) * count)

    def compare(*more, code=0):
        answer = rankwatch("state", "compare", there.url, *place, "--format", "json", *more, code=code)
        boards = json.loads(answer.stdout)["boards"]
        return {name: sum(board[name] for board in boards) for name in ("same", "same_times", "later")}, boards

    before, _ = compare()
    assert before["same"] > 10
    assert before["later"] > 0
    assert (before["same"] + before["later"], before["same_times"]) == (sum(latches.values()), 0)
    kept, _ = compare("--keep-times")
    assert kept == compare()[0] == before | {"same_times": before["same"]}

    # The first verdict of the other state gets another leader, and the second one is missing.
    key = max(latches, key=latches.get)
    first, rest = (stored := there.client().get(key))[:LATCH_BYTES], stored[2 * LATCH_BYTES :]
    there.client().set(key, first[:-1] + bytes([256 - first[-1]]) + rest)
    _, boards = compare(code=3)
    (board,) = (each for each in boards if any(each["differ"].values()))
    assert board["differ"] == {"other outcome": 1, "other record": 0, "only here": 1, "only there": 0}
    assert {each["what"] for each in board["differences"]} == {"other outcome", "only here"}
    text = rankwatch("state", "compare", there.url, *place, code=3).stdout
    assert f"{before['same'] - 2} verdicts with the same leader and id" in text
    assert "1 other leader, 1 only in this state" in text

    asyncio.run(compared_in_parts(here.url, there, boards))
    here.client().set("{both:origins}:key", "cd" * 32)
    assert "has another signing key" in rankwatch("state", "prepare", there.url, *place, code=1).stderr


async def compared_in_parts(url, there, boards):
    """A comparison reads few verdicts at once, and comes to the same."""

    async def compare():
        async with (
            Transfer.open(url, "both", RetryPolicy()) as one,
            Transfer.open(there.url, "both", RetryPolicy()) as two,
        ):
            return as_json(await one.compare(two))["boards"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_verdicts, "_LATCHES_AT_ONCE", 7)
        patch.setattr(stored_verdicts, "_BYTES_AT_ONCE", 100)
        assert await compare() == boards
