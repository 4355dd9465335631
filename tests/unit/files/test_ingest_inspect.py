"""Logs of Inspect: documents and archives, of runs that ended, run, failed or broke off."""

import gzip
import json

import pytest

from monitor.files.reject_limit import RejectLimit
from monitor.files.streams.regular import Broken
from monitor.files.streams.zip_archive import Archive
from monitor.view.build import benchmark_report
from monitor.view.from_files.fold import fold_files
from monitor.view.from_state import board_view
from tests.unit.files.memory_log import Log, look, once
from tests.unit.files.native_logs import (
    DEFLATED,
    STORED,
    ZSTANDARD,
    Choices,
    Importer,
    Read,
    inspect_eval,
    inspect_header,
    inspect_json,
    inspect_sample,
    zipped,
)

VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, True: 1.0, 0.25: 0.25, "0.75": 0.75, "yes": 1.0}


def scored(count, *, epochs=1, start=0):
    return [
        inspect_sample(f"q{k}", "CI"[(k + epoch) % 2], epoch=epoch, done=start + (epoch - 1) * count + k)
        for epoch in range(1, epochs + 1)
        for k in range(count)
    ]


def expected(samples, model="m", task="quiz"):
    return {
        (task, str(s["id"]), s["epoch"] - 1, model): VALUES[s["scores"]["match"]["value"]]
        for s in samples
        if s["scores"]
    }


def write(path, samples, **more):
    return inspect_json(path, samples, **more) if path.suffix == ".json" else inspect_eval(path, samples, **more)


@pytest.fixture(params=["a.json", "a.eval"])
def path(request, tmp_path):
    return tmp_path / request.param


def test_values_are_counted_as_inspect_counts_them(path):
    samples = [inspect_sample(k, value) for k, value in enumerate(VALUES)]
    read = Read(write(path, samples))
    assert read.scores == expected(samples)
    assert read.notes == ["quiz: scorer match; clusters by category"]
    assert {e.cluster for e in read.events} == {"b"}
    assert not read.rejects


def test_epochs_are_repeats_and_the_items_are_declared(path):
    samples = scored(4, epochs=2)
    read = Read(write(path, samples, items=4))
    assert read.scores == expected(samples)
    assert {e.repeat for e in read.events} == {0, 1}
    assert read.declared == [("quiz", 4)]


@pytest.mark.parametrize(
    ("spec", "items"), [({}, 100), ({"config": {"limit": 3}}, None), ({"config": {"sample_id": "q1"}}, None)]
)
def test_without_ids_the_items_are_those_of_the_data_set_unless_it_was_cut(tmp_path, spec, items):
    read = Read(inspect_json(tmp_path / "a.json", scored(3), **spec))
    assert read.declared == ([("quiz", items)] if items else [])


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_archives_are_read_however_they_are_compressed(tmp_path, method):
    samples = scored(5, epochs=2)
    assert Read(inspect_eval(tmp_path / "a.eval", samples, method=method)).scores == expected(samples)


def test_a_scorer_is_chosen_by_name_and_key(path):
    several = {"a": 1, "b": 0.25}
    write(path, [inspect_sample("q", "C", multi=several, other=0.5)], scorers=[{"name": "other"}, {"name": "match"}])
    read = Read(path)
    assert [e.score for e in read.events] == [0.5]
    assert read.notes == ["quiz: scorer other (also available: match, multi.a, multi.b); clusters by category"]
    assert [e.score for e in Read(path, scorer=["match"]).events] == [1.0]
    assert [e.score for e in Read(path, scorer=["quiz=multi.b"]).events] == [0.25]
    for wrong in ("multi", "multi.c", "nope"):
        refused = Read(path, scorer=[wrong])
        assert not refused.events
        ((_, field, found, reason),) = refused.faults
        assert (field, found) == ("scorer", wrong)
        assert (
            f"there is no scorer {wrong} with one value; choose one of other, match, multi.a, multi.b with --scorer quiz=SCORER"
            == reason
        )


def test_scorers_with_several_values_need_a_choice(path):
    write(path, [inspect_sample("q", {"a": 1, "b": 0})])
    ((_, field, found, reason),) = Read(path).faults
    assert (field, found) == ("scorer", "several values")
    assert reason == "every scorer gives several values; choose one of match.a, match.b with --scorer quiz=SCORER"


def test_what_is_no_score_is_named_with_its_sample(path):
    write(
        path,
        [inspect_sample("a", "C"), inspect_sample("b", 7), inspect_sample("c", "maybe"), inspect_sample("d", 10**400)],
    )
    read = Read(path)
    assert [e.item_id for e in read.events] == ["a"]
    assert [(line, field, found[:5]) for line, field, found, _ in read.faults] == [
        (2, "match", "7"),
        (3, "match", "maybe"),
        (4, "match", "10000"),
    ]
    assert all("--scorer" in reason for *_, reason in read.faults)


def test_a_finished_run_skips_what_failed(path):
    samples = [inspect_sample("a", "C"), inspect_sample("b", None, error="out of memory"), inspect_sample("c", None)]
    samples += [inspect_sample("d", float("nan")), inspect_sample("e", "I", error="late")]
    read = Read(write(path, samples))
    assert [(e.item_id, e.score) for e in read.events] == [
        ("a", 1.0),
        ("b", None),
        ("c", None),
        ("d", None),
        ("e", None),
    ]
    assert Read(write(path, samples, config={"score_on_error": True})).scores["quiz", "e", 0, "m"] == 0.0


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_a_run_that_did_not_finish_leaves_open_what_failed(path, status):
    samples = [inspect_sample("a", "C"), inspect_sample("b", None, error="out of memory"), inspect_sample("c", None)]
    read = Read(write(path, samples, status=status))
    assert [(e.item_id, e.score) for e in read.events] == [("a", 1.0)]
    assert any("2 of 3 samples failed or have no score; the run did not finish" in text for text in read.notes)


def test_a_log_without_scores_is_refused_once_it_is_finished(path):
    samples = [inspect_sample(k, None) for k in range(3)]
    ((_, field, found, _),) = Read(write(path, samples)).faults
    assert (field, found) == ("samples", "3 samples without a score")
    ((_, field, found, _),) = Read(write(path, [])).faults
    assert (field, found) == ("samples", "no samples")
    running = Read(write(path, samples, status="started"))
    assert (running.events, running.faults, running.declared) == ([], [], [])


def test_an_early_log_has_one_score_without_a_name(tmp_path):
    old = inspect_sample("a", None) | {"score": {"value": "C"}}
    del old["scores"]
    read = Read(inspect_json(tmp_path / "a.json", [old]))
    assert [e.score for e in read.events] == [1.0]
    assert "scorer score" in read.notes[0]


def test_samples_that_no_summary_knows_are_read_themselves(tmp_path):
    samples = scored(5)
    read = Read(inspect_eval(tmp_path / "a.eval", samples, running=True, summarized=2))
    assert read.scores == expected(samples)


def test_a_sample_that_was_done_again_counts_as_it_was_last(tmp_path):
    first = inspect_sample("a", "I", done=1)
    again = inspect_sample("a", "C", done=9)
    read = Read(inspect_eval(tmp_path / "a.eval", [first, inspect_sample("b", "C", done=2), again]))
    assert [(e.item_id, e.score) for e in read.events] == [("b", 1.0), ("a", 1.0)]


def test_a_log_that_is_written_anew_while_it_grows_is_read_exactly_once(path):
    """Documents are sorted by id each time they are written, archives get their header at the end."""
    samples = [inspect_sample(f"q{(7 * k) % 12:02d}", "CI"[k % 2], done=k) for k in range(12)]
    log, importer = Log(), Importer(Choices())
    for count in (1, 4, 4, 9, 12):
        some = samples[:count]
        write(path, sorted(some, key=lambda s: s["id"]) if path.suffix == ".json" else some, **_running(path))
        tailer = log.tailer(path, importer=importer)
        look(tailer, 2)
        tailer._reader.close()
    failed = inspect_sample("z", None, error="no")
    write(path, [*sorted(samples, key=lambda s: s["id"]), failed] if path.suffix == ".json" else [*samples, failed])
    once(log, path, importer=Importer(Choices()))
    assert {(e["item_id"], e["score"]) for e in log.events} == {
        *((s["id"], VALUES[s["scores"]["match"]["value"]]) for s in samples),
        ("z", None),
    }
    counters = log.counters()
    assert (counters["events"], counters["duplicates"], counters["conflicts"]) == (13, 0, 0)


def _running(path):
    return {"status": "started"} if path.suffix == ".json" else {"running": True}


def test_a_log_that_changes_under_an_open_tailer_is_read_again(path):
    samples = scored(6)
    log = Log()
    write(path, samples[:2], **_running(path))
    tailer = log.tailer(path, importer=Importer(Choices()))
    for count in (2, 3, 6):
        write(path, samples[:count], **_running(path))
        look(tailer, 2)
    tailer._reader.close()
    assert [e["item_id"] for e in log.events] == [s["id"] for s in samples]


def test_a_log_that_is_just_being_written_is_waited_for(path):
    samples = scored(8)
    log = Log()
    write(path, samples[:4], **_running(path))
    tailer = log.tailer(path, importer=Importer(Choices()))
    look(tailer)
    whole = write(path, samples).read_bytes()
    for end in (10, len(whole) // 3, len(whole) - 2, len(whole)):
        path.write_bytes(whole[:end])
        look(tailer, 2)
    tailer._reader.close()
    assert [e["item_id"] for e in log.events] == [s["id"] for s in samples]
    assert not log.rejects
    assert log.counters()["duplicates"] == 0


def test_an_archive_that_breaks_off_is_read_as_far_as_it_goes(tmp_path):
    samples = scored(6)
    whole = inspect_eval(tmp_path / "a.eval", samples).read_bytes()
    path = tmp_path / "cut.eval"
    for share in (0.3, 0.6, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        read = Read(path)
        assert set(read.scores.items()) <= set(expected(samples).items())
        ((_, field, found, reason),) = read.faults
        assert field == "file"
        assert "the zip archive is cut off after" in found
        assert "copy the file again" in reason
    assert read.scores == expected(samples)


def test_a_mended_archive_goes_on_where_it_broke_off(tmp_path):
    samples, log = scored(6), Log()
    path = inspect_eval(tmp_path / "a.eval", samples)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 5])
    once(log, path, importer=Importer(Choices()))
    assert 0 < len(log.events) < 6
    path.write_bytes(whole)
    once(log, path, importer=Importer(Choices()))
    assert [e["item_id"] for e in log.events] == [s["id"] for s in samples]


def test_a_damaged_entry_is_named(tmp_path):
    path = inspect_eval(tmp_path / "a.eval", scored(3), method=STORED)
    data = path.read_bytes()
    place = data.rindex(b'"match"')
    path.write_bytes(data[:place] + b"X" + data[place + 1 :])
    read = Read(path)
    assert read.scores == expected(scored(3)), "the samples themselves are whole"
    ((_, field, found, _),) = read.faults
    assert field == "file"
    assert "entry summaries.json of the zip archive is damaged" in found


def test_an_entry_without_end_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"bomb": b"0" * 100_000}, DEFLATED))
    monkeypatch.setattr("monitor.files.streams.zip_archive.MAX_ENTRY_BYTES", 1_000)
    with Archive(path) as archive, pytest.raises(Broken, match="unpacks to 100,000 bytes, more than 1,000"):
        archive.read("bomb")


def test_an_entry_that_lies_about_its_size_is_not_unpacked(tmp_path):
    data = zipped({"bomb": b"0" * 100_000}, DEFLATED)
    path = tmp_path / "a.zip"
    path.write_bytes(data.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with Archive(path) as archive, pytest.raises(Broken, match="checksum"):
        archive.read("bomb")


def test_a_compression_that_is_not_known_is_named(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"x": b"data"}, 14))
    with Archive(path) as archive, pytest.raises(Broken, match="unknown compression method 14"):
        archive.read("x")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", b'{"results": {}}', "has a shape that no importer knows; `rankwatch map FILE` proposes"),
        ("a.json", b"[1, 2]", "has a shape that no importer knows"),
        ("a.json", b'{"version": 2, "eval": ', "the JSON document is cut off or damaged"),
        ("a.json", b"[" * 100_000, "has a shape that no importer knows"),
        (
            "a.json",
            b'{"version": 2, "eval": {"task": "t", "model": "m"}} {}',
            "ends, and more follows it, at character 53",
        ),
        ("a.json", b'{"version": 2, "status": "success", "eval": {}}', "its field eval.task is missing or wrong"),
        ("a.json", b"", "the file is empty, and nothing of it is read"),
        ("a.eval", b"", "the file is empty, and nothing of it is read"),
        (
            "a.eval.gz",
            gzip.compress(zipped({"header.json": b"{}"}, STORED), mtime=0),
            "is a gzip of another packed file",
        ),
        ("a.eval", zipped({"readme": b"x"}, STORED), "the zip archive is not an Inspect log"),
        (
            "a.xlsb",
            zipped({"xl/workbook.bin": b"<x/>"}, STORED),
            "a binary Excel workbook, which is not read; save it as .xlsx",
        ),
        ("a.eval", zipped({"header.json": b'{"eval": 3}'}, STORED), "is not an Inspect log"),
        ("a.eval", zipped({"header.json": b'{"eval"'}, STORED), "an entry of the archive is cut off or damaged"),
        ("a.eval", b"PK\x03\x04 and nothing else", "the zip archive is cut off after 0 whole entries"),
    ],
)
def test_what_is_no_log_is_named_and_all_else_is_read(tmp_path, name, data, problem):
    (tmp_path / name).write_bytes(data)
    good = inspect_json(tmp_path / "good.json", scored(2))
    read = Read(tmp_path / name, good)
    assert len(read.events) == 2
    assert len(read.rejects) == 1
    assert problem in read.rejects[0]["reason"]
    assert read.rejects[0]["source"] == str(tmp_path / name)


def test_an_epoch_out_of_range_is_no_log(tmp_path):
    ((_, _, _, reason),) = Read(inspect_json(tmp_path / "a.json", [inspect_sample("a", "C", epoch=0)])).faults
    assert "its field samples[0].epoch is missing or wrong" in reason


def test_versions_of_a_task_are_not_mixed(tmp_path):
    inspect_json(tmp_path / "a.json", scored(1), model="one")
    inspect_json(tmp_path / "b.json", scored(1), model="two", task_version=3)
    read = Read(tmp_path)
    assert {e.model for e in read.events} == {"one"}
    assert read.faults[0][:3] == (1, "version", "version 3 of quiz")


def test_other_questions_under_the_same_id_are_reported(tmp_path):
    inspect_json(tmp_path / "a.json", scored(2), model="one")
    inspect_json(tmp_path / "b.json", [s | {"input": "another"} for s in scored(2)], model="two")
    assert any("differs from the one in" in text for text in Read(tmp_path).notes)


def test_a_retry_is_no_second_run(tmp_path):
    inspect_json(tmp_path / "a.json", [*scored(2), inspect_sample("z", None, error="no")], status="error", task_id="t")
    inspect_json(tmp_path / "b.json", [*scored(2), inspect_sample("z", "C")], task_id="t")
    read = Read(tmp_path)
    assert read.scores["quiz", "z", 0, "m"] == 1.0
    assert len(read.events) == 5
    assert not any("both hold" in text for text in read.notes)


def test_only_logs_are_taken_from_a_folder(tmp_path):
    inspect_json(tmp_path / "a.json", scored(2))
    (tmp_path / "config.json").write_text('{"model": "m"}')
    (tmp_path / "results_1.json").write_text('{"results": {}}')
    (tmp_path / "compact.json").write_text(json.dumps({**inspect_header(model="other"), "samples": scored(2)}))
    read = Read(tmp_path)
    assert {e.model for e in read.events} == {"m", "other"}
    assert not read.rejects
    assert {text for text in read.notes if "is skipped" in text} == {
        f"{tmp_path / name} is skipped: it does not look like results; give its path to read it"
        for name in ("config.json", "results_1.json")
    }


def test_the_epochs_of_a_log_are_declared_as_repeats_and_their_mean_is_the_score(tmp_path):
    values = {1: "CCII", 2: "CCCC"}
    samples = [
        inspect_sample(f"q{k}", value, epoch=epoch) for epoch, row in values.items() for k, value in enumerate(row)
    ]
    inspect_json(tmp_path / "a.json", samples, items=4, config={"epochs": 2})
    importer = Importer(Choices.parse())
    partition = fold_files(
        importer.find([tmp_path]), None, RejectLimit(), open_file=importer.open, on_rejected=pytest.fail
    )
    benchmark = partition.benchmarks["quiz"]
    assert (benchmark.spec.items, benchmark.spec.repeats) == (4, 2)
    (model,) = benchmark_report(board_view(benchmark), assert_complete=True).models
    assert (model.items, model.mean) == (4, 0.75)


def test_failed_samples_count_as_zero_on_request(tmp_path):
    samples = [inspect_sample("a", "C"), inspect_sample("b", "C", error="timeout"), inspect_sample("c", None)]
    path = write(tmp_path / "a.json", samples)
    read = Read(path)
    assert read.scores["quiz", "b", 0, "m"] is None
    assert any("1 of 3 samples failed in the run and are skipped; --failed zero" in note for note in read.notes)
    read = Read(path, failed="zero")
    assert {key[1]: score for key, score in read.scores.items()} == {"a": 1.0, "b": 0.0, "c": None}
    assert any("1 of 3 samples failed in the run and count as 0; --failed skip" in note for note in read.notes)


def test_failed_samples_of_a_run_that_did_not_finish_may_still_get_their_scores(tmp_path):
    samples = [inspect_sample("a", "C"), inspect_sample("b", None, error="timeout")]
    read = Read(write(tmp_path / "a.json", samples, status="error"), failed="zero")
    assert [key[1] for key in read.scores] == ["a"]
