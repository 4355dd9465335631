"""`rankwatch watch --once`: the same report as `report`, the same latches as an event-by-event fold, and nothing twice."""

import gzip
import json
import random

import pytest

from tests.commands import (
    Counted,
    as_latches,
    by_oracle,
    changes,
    events,
    feed_latches,
    in_order,
    letters,
    pairs_of,
    rankwatch,
    watch_once,
    write,
)
from tests.oracle import log_exact

SKILLS = {"delta": 0.95, "alpha": 0.8, "charlie": 0.5, "bravo": 0.2}
ITEMS = 120
COMPLETE = "assumes that the files are complete: a later run that reads more may show another decision"


def report_of(*paths):
    return rankwatch("report", *paths, "--format", "json").stdout


def pairs_in(text):
    """What is counted of each benchmark."""
    return {
        b["benchmark"]: (b["events"], b["duplicates"], b["conflicts"], pairs_of(b))
        for b in json.loads(text)["benchmarks"]
    }


def counted(records):
    counts = Counted(records)
    return (counts.events, counts.duplicates, counts.conflicts, counts.pairs())


@pytest.fixture(scope="module")
def records():
    """One benchmark with duplicates, conflicts and skips in it."""
    rng = random.Random(11)
    made = events(rng, SKILLS, ITEMS)
    for event in list(made):
        if rng.random() < 0.04:
            made.insert(rng.randrange(len(made)), event | {"score": rng.choice([0, 1])})
        if rng.random() < 0.02:
            event["score"] = None
    return made


@pytest.mark.smoke
def test_it_prints_the_report_and_reads_nothing_twice(tmp_path, records):
    folder = tmp_path / "results"
    folder.mkdir()
    write(
        folder / "a.jsonl",
        [
            *records[:300],
            json.dumps(records[0] | {"score": "?"}),
            *records[300:],
            json.dumps(records[0] | {"score": 1.7}),
        ],
    )
    with gzip.open(folder / "b.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(e | {"benchmark": "other", "cluster": e["item_id"][-1]}) + "\n" for e in records)
    expected = report_of(folder)
    assert pairs_in(expected) == {"bench": counted(records), "other": counted(records)}

    data = tmp_path / "data"
    first = rankwatch("watch", folder, "--once", "--format", "json", "--data-dir", data)
    assert first.stdout == expected
    assert f"2 records rejected; {data}/dead-letters.jsonl has each with the reason" in first.stderr
    log, dead = (data / "log.jsonl").read_bytes(), (data / "dead-letters.jsonl").read_bytes()
    path = folder / "a.jsonl"
    path.write_bytes(path.rename(tmp_path / "away").read_bytes())  # another file with the same bytes
    assert watch_once(data, folder) == expected
    assert (data / "log.jsonl").read_bytes() == log
    assert (data / "dead-letters.jsonl").read_bytes() == dead
    assert changes(data) == []  # without a declared order nothing is decided
    assert (data.stat().st_mode & 0o777, (data / "log.jsonl").stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_table_is_the_table_of_report(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    once = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data").stdout
    assert once == rankwatch("report", path).stdout


def test_files_that_grow_come_and_are_replaced(tmp_path, records):
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    path = write(folder / "m.jsonl", records[:200])
    with path.open("a") as file:
        file.write(json.dumps(records[200])[:30])  # the line is still being written
    follow_on = json.dumps(records[200])[30:] + "\n"
    before = json.loads(watch_once(data, folder))["benchmarks"][0]
    assert (before["events"], before["rejected"]) == (200, 0), "half a line is left alone"

    with path.open("a") as file:
        file.write(follow_on)
    write(path, records[201:330], mode="a")
    write(folder / "second.jsonl", records[330:])
    grown = json.loads(watch_once(data, folder))["benchmarks"][0]
    assert (grown["rejected"], grown["duplicates"]) == (0, Counted(records).duplicates)
    rest = list(records)
    assert grown["events"] == len(rest)
    assert pairs_of(grown) == Counted(rest).pairs()

    # The second file is replaced: it is read again from its start, and keys that are known are duplicates.
    changed = [event | {"item_id": f"new {event['item_id']}"} for event in records[330:]]
    write(folder / "second.jsonl", [*records[330:340], *changed])
    replaced = json.loads(watch_once(data, folder))["benchmarks"][0]
    rest += records[330:340] + changed
    assert replaced["events"] == len(rest)
    assert replaced["duplicates"] + replaced["conflicts"] == Counted(rest).duplicates + Counted(rest).conflicts
    assert pairs_of(replaced) == Counted(rest).pairs()


def test_a_file_under_another_name_is_read_again_by_key(tmp_path, records):
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    watch_once(data, path)
    (moved,) = json.loads(watch_once(data, path.rename(tmp_path / "b.jsonl")))["benchmarks"]
    assert moved["events"] == 2 * len(records)
    assert moved["items"] == ITEMS
    assert pairs_of(moved) == Counted(records).pairs()


def check_latches(benchmark, latches, records, **declared):
    """The changes, and the report that rests on them, are those of the event-by-event fold."""
    expected = by_oracle(records, **declared)
    assert len(expected) > 5
    assert as_latches(latches) == expected
    assert len(latches) == len(expected)
    order = benchmark["order"]
    assert (order["policy"], order["suspect"]) == (declared["policy"], False)
    assert order["reason"] is None or order["reason"].startswith(COMPLETE)
    early = 0
    for pair in benchmark["pairs"]:
        low, high = sorted([pair["model_a"], pair["model_b"]])
        for procedure in ("anytime", "anytime_family"):
            latch = expected.get((low, high, procedure, "decided"))
            side = pair["decided"][procedure]
            assert latch is None if side is None else latch[0] == pair[f"model_{side}"]
        assert pair["decided_at_n"] == (expected.get((low, high, "anytime_family", "decided")) or (None, None))[1]
        early += pair["decided_at_n"] is not None and pair["decided_at_n"] < ITEMS - 20
    assert early


def test_latches_of_a_declared_item_count_equal_an_event_by_event_fold(tmp_path, records):
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    text = watch_once(data, path, "--items", ITEMS)
    latches = in_order(changes(data))
    check_latches(json.loads(text)["benchmarks"][0], latches, records, policy="completion", items=ITEMS)
    for change in latches:
        evidence = change["evidence"]
        assert (change["benchmark"], change["order_policy"]) == ("bench", "completion")
        assert change["model_a"] < change["model_b"]
        assert evidence["missing"] <= ITEMS - evidence["n"], "those that the score of the other model lets it lose"
        assert evidence["gap"] == pytest.approx((evidence["b"] - evidence["c"]) / evidence["n"])
        better = change["model_a"] if change["after"] == "a" else change["model_b"]
        if change["kind"] == "settled":
            assert (evidence["log_e"], evidence["log_threshold"]) == (None, None)
            assert change["sentence"].startswith(f"{better} leads ")
        else:
            assert evidence["log_e"] == pytest.approx(log_exact(*(evidence[name] for name in ("b", "c", "missing"))))
            assert evidence["log_e"] >= evidence["log_threshold"]
            assert change["sentence"].startswith(f"{better} is better than ")
    assert watch_once(data, path) == text  # the flag is not needed again
    assert watch_once(data, path, "--items", f"bench={ITEMS}") == text
    assert changes(data) == latches


def test_more_items_than_declared_withdraw_what_was_decided(tmp_path, records):
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    (benchmark,) = json.loads(watch_once(data, path, "--items", 100))["benchmarks"]
    assert "120 items arrived and 100 were declared" in benchmark["order"]["reason"]
    latched = feed_latches(data)
    assert latched == by_oracle(records, policy="completion", items=100)
    statuses = {}
    for pair in benchmark["pairs"]:
        key = (*sorted([pair["model_a"], pair["model_b"]]), "anytime_family", "decided")
        statuses[pair["status"]] = key in latched
        assert pair["decided"]["anytime_family"] is None
    assert statuses == {"invalidated": True, "held": False}


def test_an_order_declared_too_late_is_refused(tmp_path, records):
    path, data = write(tmp_path / "a.jsonl", records[:40]), tmp_path / "data"
    watch_once(data, path)
    write(path, [{"declare": "bench", "items": ITEMS}, *records[40:]], mode="a")
    (benchmark,) = json.loads(watch_once(data, path))["benchmarks"]
    assert benchmark["rejected"] == 1
    assert benchmark["order"]["reason"].startswith("asserted")
    (letter,) = letters(data)
    assert letter["field"] in {"items", "order"}  # both would change
    assert "can no longer be declared" in letter["reason"]
    assert changes(data) == []


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--items", "many"], "--items many: give an item count from 1"),
        (["--items", "bench=0"], "--items bench=0"),
        (["--order", "completion"], "needs the item count"),
        (["--order", "committed"], "needs a seed"),
        (["--port", "70000"], "--port"),
    ],
)
def test_flags_that_cannot_be_right(tmp_path, flags, reason):
    path, data = write(tmp_path / "a.jsonl", ["{}"]), tmp_path / "data"
    ended = rankwatch("watch", path, "--once", "--data-dir", data, *flags, code=2)
    assert reason in ended.stderr
    assert not data.exists()


def test_flags_and_declarations_each_hold_for_their_benchmark(tmp_path, records):
    free, flagged, sure = ([e | {"benchmark": name} for e in records] for name in ("free", "b=c", "sure"))
    in_turn = [event for events_of_all in zip(free, flagged, sure, strict=True) for event in events_of_all]
    path = write(tmp_path / "a.jsonl", [{"declare": "sure", "order": "trusted", "alpha": 0.01}, *in_turn])
    data = tmp_path / "data"
    text = watch_once(data, path, "--items", f"b=c={ITEMS}", "--items", "sure=500")
    benchmarks = {b["benchmark"]: b for b in json.loads(text)["benchmarks"]}
    latched = in_order(changes(data))
    check_latches(
        benchmarks["b=c"], [c for c in latched if c["benchmark"] == "b=c"], records, policy="completion", items=ITEMS
    )
    check_latches(
        benchmarks["sure"], [c for c in latched if c["benchmark"] == "sure"], records, policy="trusted", alpha=0.01
    )
    assert benchmarks["sure"]["rejected"] == 0  # what the file declares goes before the flag
    assert benchmarks["free"]["order"]["reason"].startswith("asserted")
    assert {c["benchmark"] for c in latched} == {"b=c", "sure"}


def test_dead_letters_hold_what_is_needed_to_mend_them(tmp_path, records):
    lines = [json.dumps(event) for event in records]
    lines[7:7] = ['{"benchmark": "bench"', b'{"benchmark":"bench","item_id":"\xff","model":"m","score":1}']
    lines[50:50] = [json.dumps(records[0] | {"score": 1.2, "attributes": {"note": "x" * 5_000}})]
    lines.append(json.dumps({"benchmark": "never seen", "item_id": "1", "model": "m", "score": "high"}))
    path, data = write(tmp_path / "a.jsonl", lines), tmp_path / "data"
    watch_once(data, path)
    dead_letters = letters(data)
    assert [(letter["line"], letter["field"]) for letter in dead_letters] == [
        (8, "record"),
        (9, "record"),
        (51, "score"),
        (len(lines), "score"),
    ]
    assert all(letter["source"] == str(path) for letter in dead_letters)
    assert [letter["benchmark"] for letter in dead_letters] == ["bench", "bench", "bench", "never seen"]
    assert dead_letters[0]["raw"] == lines[7]
    assert dead_letters[2]["raw"] == lines[50][:2_000]
    assert all("; use " in letter["reason"] or "; write " in letter["reason"] for letter in dead_letters)
    places = [(letter["offset"], letter["index"]) for letter in dead_letters]
    assert places == sorted(set(places))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "the file is empty; write one JSON object a line"), ("{\n" * 25, "stopped at 25 rejected")],
    ids=["empty", "too many bad"],
)
def test_what_report_refuses_is_refused(tmp_path, text, reason):
    path, data = tmp_path / "a.jsonl", tmp_path / "data"
    path.write_text(text)
    ended = rankwatch("watch", path, "--once", "--data-dir", data, "--format", "json", code=1)
    assert ended.stdout == ""
    assert reason in ended.stderr
    assert len(letters(data)) == text.count("\n")


def test_scores_that_are_all_refused_are_counted_and_not_called_no_results(tmp_path):
    rows = [
        {"benchmark": "b", "item_id": str(i), "model": m, "score": 1, "cluster": "c"} for i in range(9) for m in "xy"
    ]
    path, flags = write(tmp_path / "a.jsonl", rows), ("--weights", "equal-clusters", "--clusters", "other:9")
    watched = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", *flags, code=1).stderr
    assert "18 records rejected; " in watched
    reported = rankwatch("report", path, *flags, code=1).stderr
    assert "no result is left (rejected: 18); fix the files, or the flags" in reported
    assert "no results; write" not in watched + reported


def test_a_second_look_at_bad_lines_alone_fails_too(tmp_path):
    path = write(tmp_path / "a.jsonl", ["{"] * 3)
    first = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", code=1)
    assert "no line can be read (rejected: 3)" in first.stderr
    again = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", code=1)
    assert "no results; write one JSON object a line" in again.stderr


def test_a_missing_path_leaves_no_data_directory(tmp_path):
    ended = rankwatch("watch", tmp_path / "missing", "--once", "--data-dir", tmp_path / "data", code=2)
    assert "missing does not exist" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_the_data_directory_inside_the_watched_folder_is_not_watched(tmp_path):
    write(tmp_path / "results.jsonl", events(random.Random(3), SKILLS, 40))
    expected = report_of(tmp_path / "results.jsonl")
    for _ in range(3):
        once = watch_once(tmp_path / "deep" / "rankwatch-data", tmp_path)
        assert pairs_in(once) == pairs_in(expected)
    assert report_of(tmp_path) == expected


def gapped(missing=0, wrong=2, repeats=1, items=ITEMS):
    """Two models; the last items of the worse one are missing."""
    return [
        {
            "benchmark": "bench",
            "item_id": f"i{k}",
            "model": model,
            "score": int((model == "a") == (k >= wrong)),
            "repeat": r,
        }
        for model in "ab"
        for k in range(items - missing * (model == "b"))
        for r in range(repeats - (k == 0))
    ]


@pytest.mark.parametrize(
    ("records", "flags", "rests"),
    [
        (gapped(), ["--items", ITEMS], False),
        (gapped(missing=3), ["--items", ITEMS], False),  # decided, whatever the missing items bring
        (gapped(missing=3, wrong=55), ["--items", ITEMS], True),
        (gapped(missing=60, wrong=70), ["--items", ITEMS], True),
        (gapped(missing=60, wrong=70), ["--items", ITEMS, "--missing", "ignorable"], True),
        (gapped(missing=60, wrong=10), ["--items", ITEMS], False),  # b can win none of them: a has them right,
        (gapped(missing=3), ["--items", ITEMS, "--missing", "ignorable"], False),
        (gapped(repeats=2), ["--items", ITEMS, "--repeats", "all"], True),
        (gapped(repeats=2), ["--items", ITEMS, "--repeats", 2], True),  # the first item has one
        (gapped(repeats=2)[1:], ["--items", ITEMS, "--repeats", 1], False),  # held
        (random.Random(2).sample(gapped(wrong=58), 2 * ITEMS - 2), ["--order", "trusted"], True),
        (gapped(), ["--order", "trusted"], False),
        (gapped(missing=3), [], False),  # names the items read as the whole benchmark
    ],
)
def test_what_rests_on_the_end_of_the_files_is_named(tmp_path, records, flags, rests):
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    for form in ("table", "markdown", "csv", "json"):
        done = rankwatch("watch", path, "--once", "--data-dir", data, "--format", form, *flags)
        text = done.stderr if form == "csv" else done.stdout
        assert (COMPLETE in " ".join(text.split())) == rests, form
    assert '"collecting"' not in done.stdout
    ended = rankwatch("watch", path, "--once", "--ended", "--data-dir", data, "--format", "json")
    assert COMPLETE not in ended.stdout
    assert pairs_of(json.loads(ended.stdout)["benchmarks"][0]) == pairs_of(json.loads(done.stdout)["benchmarks"][0])


def test_undeclared_repeats_are_reported_with_what_holds_the_stored_state(tmp_path):
    path, data = write(tmp_path / "a.jsonl", gapped(repeats=2)), tmp_path / "data"
    for _ in range(2):
        done = rankwatch("watch", path, "--once", "--data-dir", data, "--items", ITEMS, "--format", "json")
        (benchmark,) = json.loads(done.stdout)["benchmarks"]
        assert "repeats an item on average, 1 to 2: a score is their mean" in benchmark["order"]["reason"]
        assert benchmark["pairs"][0]["decided"]["anytime_family"] == "a"
        assert (
            "rankwatch: bench: the report takes the mean of all repeats; live, no pair is decided: a has 2 repeats of item i1, and 1 is "
            "declared; declare as many as the items have (--repeats R), or all (--repeats all)" in done.stderr
        )
    assert "live, no pair" not in rankwatch("report", path, "--items", ITEMS).stderr
