"""Result files of other harnesses: what each comes to, whole, damaged, doubled, empty and hostile."""

import json

import pytest

from monitor.files.batches import BatchReader
from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.formats.registry import FORMATS
from monitor.files.importer import Importer
from monitor.files.streams.event_lines import prompt_id
from tests.unit.files.native_logs import Read
from tests.unit.files.tool_files import (
    ALPACA_EVAL,
    BFCL,
    DEEPEVAL,
    EVALPLUS,
    EVERY_EVAL_EVER,
    HELM,
    LIVEBENCH,
    MT_BENCH,
    OPENAI_EVALS,
    PROMPTFOO,
    SWE_BENCH_PRO,
    TERMINAL_BENCH,
    TOOLS,
    answer,
    doc,
    eee,
    grade,
    jsonl,
)

every_tool = pytest.mark.parametrize("made", TOOLS.values(), ids=TOOLS)


def rows(read):
    return sorted(
        ((e.benchmark, e.item_id, e.model, e.score, e.cluster, e.repeat) for e in read.events),
        key=lambda row: row[:3] + row[5:],
    )


def expected(made):
    return sorted(made.events, key=lambda row: row[:3] + row[5:])


@every_tool
def test_a_folder_of_a_tool_gives_its_events(tmp_path, made):
    made.write(tmp_path)
    read = Read(tmp_path)
    assert read.rejects == []
    assert rows(read) == expected(made)
    text = "\n".join(read.notes)
    assert all(words in text for words in made.notes), text
    assert "does not look like results" not in text


@every_tool
def test_a_file_of_a_tool_is_recognised_by_its_content(tmp_path, made):
    path = made.write(tmp_path)
    renamed = path.with_name("renamed.txt")
    path.rename(renamed)
    read = Read(renamed)
    assert read.rejects == []
    keys = {(e.item_id, e.score) for e in read.events}
    assert keys
    assert {item.rpartition("/")[2] for item, _ in keys} <= {row[1].rpartition("/")[2] for row in made.events}


@every_tool
def test_a_name_and_a_benchmark_on_the_command_line_replace_those_of_the_file(tmp_path, made):
    path = made.write(tmp_path)
    read = Read(f"mine={path}", benchmark="own")
    models = {row[2] for row in rows(Read(path))}
    assert {e.benchmark for e in read.events} == {"own"}
    assert {e.model for e in read.events} == {"mine"}
    assert bool(read.rejects) == (len(models) > 1), "a second model is rejected"


@every_tool
def test_a_file_that_is_cut_off_is_answered_wherever_it_ends(tmp_path, made):
    path = made.write(tmp_path)
    whole, data = rows(Read(path)), path.read_bytes()
    for end in range(0, len(data), max(1, len(data) // 8)):
        path.write_bytes(data[:end])
        read = Read(path)
        if made.lines:
            assert set(rows(read)) <= set(whole)
        elif read.events:
            assert set(rows(read)) <= {*whole, *((*row[:3], 1.0, *row[4:]) for row in whole)}
        assert all(reason for *_, reason in read.faults)


@every_tool
def test_a_file_that_is_doubled_gives_no_other_scores(tmp_path, made):
    path = made.write(tmp_path)
    whole = set(rows(Read(path)))
    path.write_bytes(2 * path.read_bytes())
    read = Read(path)
    assert set(rows(read)) <= whole
    assert read.events or read.rejects


@every_tool
def test_an_empty_file_holds_nothing(tmp_path, made):
    path = made.write(tmp_path)
    path.write_bytes(b"")
    assert Read(path).events == []


DEEP = b"[" * 5_000 + b"]" * 5_000


@pytest.mark.parametrize("value", [DEEP, b"9" * 5_000, b"NaN", b"1e400", b'"\\ud800"'])
@pytest.mark.parametrize("made", [HELM, PROMPTFOO, EVALPLUS, OPENAI_EVALS, LIVEBENCH, DEEPEVAL])
def test_odd_values_in_a_field_that_is_not_read_cost_no_score(tmp_path, made, value):
    path = made.write(tmp_path)
    data = path.read_bytes()
    first, rest = data.split(b"{", 1) if b"{" in data else (b"", data)
    path.write_bytes(first + b'{"unread": ' + value + b"," + rest)
    read = Read(path)
    whole = expected(made)
    if value is DEEP and not read.events:
        assert read.rejects or read.events == [], "too deep for any decoder"
        return
    assert set(rows(read)) <= set(whole)
    assert len(read.events) >= len(whole) - 1


@every_tool
def test_a_file_is_read_by_its_content_whatever_its_extension(tmp_path, made):
    """Only names that are in the name of the file change: a benchmark or a model that the harness writes nowhere else."""
    path = made.write(tmp_path)
    for suffix in (".csv", ".eval", ".parquet"):
        other = path.rename(path.with_name(path.name.partition(".")[0] + suffix))
        read = Read(other)
        items = {row[1].rpartition("/")[2] for row in made.events}
        assert {e.item_id.rpartition("/")[2] for e in read.events} == items, (suffix, read.faults)
        path = other


def test_an_item_that_comes_twice_in_one_object_is_refused(tmp_path):
    path = SWE_BENCH_PRO.write(tmp_path)
    path.write_bytes(b'{"instance_a__b-1": true, "instance_a__b-1": false}')
    [(_, field, found, reason)] = Read(path).faults
    assert (field, found) == ("item_id", "instance_a__b-1")
    assert "comes twice" in reason
    path = EVALPLUS.write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"HumanEval/2", b"HumanEval/7"))
    assert [fault[1] for fault in Read(path).faults] == ["item_id"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"mteb_version": "1", "task_name": "STS", "scores": {"test": [{"main_score": 0.5}]}},
            "a score for each query",
        ),
        ({"schema_version": "0.3.0", "evaluation_results": [{"evaluation_name": "x"}]}, "*_samples.jsonl"),
        ({"id": "x", "n_total_trials": 3, "stats": {"evals": {}}}, "result.json of each trial"),
        ({"0": {"origin_prompt": "?", "prediction": "A", "gold": "A"}}, "--dump-eval-details"),
        ({"accuracy": 87.5}, "--dump-eval-details"),
        ({"name": "r", "dataset_name": "gsm8k", "model_name": "a", "metrics": []}, "folder reviews"),
        ({"config_general": {"model_name": "a"}, "results": {"t|0": {"acc": 0.5}}}, "--save-details"),
        ({"results": {"t": {"acc,none": 0.5}}, "configs": {}}, "--log_samples"),
    ],
)
def test_aggregates_are_refused_with_what_is_needed(tmp_path, content, words):
    path = tmp_path / "aggregate.json"
    path.write_bytes(doc(content))
    [(line, field, _, reason)] = Read(path).faults
    assert (line, field) == (1, "file")
    assert words in reason
    (tmp_path / "events.jsonl").write_bytes(jsonl({"benchmark": "x", "item_id": "1", "model": "m", "score": 1}))
    read = Read(tmp_path)
    assert len(read.events) == 1
    assert any(words in note for note in read.notes), "and skipped in a folder, with the same words"


@pytest.mark.parametrize("key", ["resourceLogs", "resourceSpans"])
def test_telemetry_names_what_it_lacks(tmp_path, key):
    path = tmp_path / "logs.jsonl"
    path.write_bytes(jsonl({key: []}))
    [(_, _, _, reason)] = Read(path).faults
    assert "no attribute for the item" in reason


@pytest.mark.parametrize(("failed", "score"), [("skip", None), ("zero", 0)])
@pytest.mark.parametrize(
    ("made", "item"), [(PROMPTFOO, "2+2"), (TERMINAL_BENCH, "t1"), (EVERY_EVAL_EVER, "2"), (MT_BENCH, "81/1")]
)
def test_what_failed_in_the_run_counts_as_the_option_says(tmp_path, made, item, failed, score):
    made.write(tmp_path)
    usual = {(e.item_id, e.model, e.repeat): e.score for e in Read(tmp_path).events}
    chosen = {(e.item_id, e.model, e.repeat): e.score for e in Read(tmp_path, failed=failed).events}
    changed = {key for key in usual if usual[key] != chosen[key]}
    assert all(key[0] == item and chosen[key] == score for key in changed)
    assert changed or failed == ("zero" if made is TERMINAL_BENCH else "skip")


def test_another_word_for_what_failed_is_refused():
    with pytest.raises(ChoiceError, match="use skip or zero"):
        Choices.parse(failed="drop")


def test_another_metric_is_read_when_it_is_chosen(tmp_path):
    HELM.write(tmp_path)
    assert {e.score for e in Read(tmp_path, metric=["quasi_exact_match"]).events} == {1}
    [(_, field, _, reason)] = Read(tmp_path, metric=["f1"]).faults
    assert field == "metric"
    assert "choose one of exact_match, quasi_exact_match with --metric" in reason
    assert {e.score for e in Read(tmp_path, metric=["quasi_exact_match:lower"]).events} == {0}


def test_a_metric_spread_over_records_is_read_when_it_is_chosen(tmp_path):
    OPENAI_EVALS.write(tmp_path)
    assert [(e.item_id, e.score) for e in Read(tmp_path, metric=["f1_score"]).events] == [("sums.dev.3", 0.5)]


def test_scores_of_two_metrics_are_not_compared(tmp_path):
    EVALPLUS.write(tmp_path)
    other = tmp_path / "beta" / "humaneval" / "eval_results.json"
    other.parent.mkdir(parents=True)
    only_base = {"HumanEval/2": [{"task_id": "HumanEval/2", "base_status": "pass", "plus_status": None}]}
    other.write_bytes(doc({"hash": "abc", "eval": only_base}))
    read = Read(tmp_path)
    assert {e.model for e in read.events} == {"acme-a"}
    [(_, field, found, reason)] = read.faults
    assert (field, found) == ("metric", "plus")
    assert "choose one of base with --metric" in reason
    assert {e.model for e in Read(tmp_path, metric=["base"]).events} == {"acme-a", "beta"}


def test_a_run_on_another_version_of_the_data_is_refused(tmp_path):
    for folder, version in (("one", "0.1"), ("two", "0.2")):
        path = TERMINAL_BENCH.write(tmp_path / folder).with_name("run_metadata.json")
        path.write_bytes(path.read_bytes().replace(b'"0.1"', f'"{version}"'.encode()))
    assert [fault[1] for fault in Read(tmp_path).faults] == ["version"]
    ALPACA_EVAL.write(tmp_path / "alpaca")
    other = tmp_path / "alpaca" / "b" / "annotations.json"
    other.parent.mkdir()
    data = (tmp_path / "alpaca" / ALPACA_EVAL.results).read_bytes()
    other.write_bytes(data.replace(b'"generator_1": "base"', b'"generator_1": "new"'))
    [(_, field, _, reason)] = Read(tmp_path / "alpaca").faults
    assert field == "version"
    assert "baseline new" in reason


def test_less_is_better_where_the_aggregate_says_so(tmp_path):
    EVERY_EVAL_EVER.write(tmp_path)
    path = tmp_path / "quiz/acme/a/u.json"
    path.write_bytes(path.read_bytes().replace(b'"lower_is_better": false', b'"lower_is_better": true'))
    [(_, field, _, reason)] = Read(tmp_path).faults
    assert field == "metric"
    assert "--metric quiz=score:lower" in reason
    assert [e.score for e in Read(tmp_path, metric=["quiz=score:lower"]).events] == [0, 0.5, None]


def test_one_filter_of_every_eval_ever_counts(tmp_path):
    EVERY_EVAL_EVER.write(tmp_path)
    assert [(e.item_id, e.score) for e in Read(tmp_path, filter=["loose"]).events] == [("0", 0)]


def test_subtasks_are_benchmarks_of_their_own_on_request(tmp_path):
    for made, benchmark, item in (
        (HELM, "mmlu/law", "id7"),
        (BFCL, "bfcl/simple", "1"),
        (LIVEBENCH, "livebench/olympiad", "q"),
    ):
        path = made.write(tmp_path / benchmark)
        first = Read(path, subtasks=True).events[0]
        assert (first.benchmark, first.item_id) == (benchmark, item)


def test_a_list_of_failures_that_does_not_add_up_is_not_read(tmp_path):
    path = BFCL.write(tmp_path)
    totals, failure = path.read_bytes().splitlines()
    path.write_bytes(totals + b"\n")
    read = Read(path)
    assert read.events == []
    assert "counts 1 failures, and the file lists 0" in read.faults[0][3]
    path.write_bytes(totals + b"\n" + failure.replace(b'"id": 2', b'"id": 9') + b"\n")
    [(_, field, found, reason)] = Read(path).faults
    assert (field, found) == ("id", "9")
    assert "are not 1 of 1 to 4" in reason
    named = failure.replace(b'"id": 2', b'"id": "simple_3"')
    path.write_bytes(totals + b"\n" + named + b"\n")
    assert {e.item_id: e.score for e in Read(path).events} == {f"simple/simple_{k}": int(k != 3) for k in range(4)}


def test_two_judges_need_two_files(tmp_path):
    path = tmp_path / "g.jsonl"
    second = {**grade(82, "a", 5), "judge": ["claude", "single"]}
    path.write_bytes(jsonl(grade(81, "a", 4), second))
    read = Read(path)
    assert [e.item_id for e in read.events] == ["81/1"]
    assert [fault[1] for fault in read.faults] == ["judge"]


def test_two_judges_are_not_one_benchmark(tmp_path):
    (tmp_path / "claude.jsonl").write_bytes(jsonl({**grade(81, "a", 5), "judge": ["claude", "single"]}))
    (tmp_path / "gpt.jsonl").write_bytes(jsonl(*(grade(k, "a", 4) for k in range(30))))
    read = Read(tmp_path)
    assert [(e.item_id, e.score) for e in read.events] == [("81/1", 0.5)]
    ((_, field, _, reason),) = read.faults
    assert field == "judge"
    assert "read the files of each judge alone, with --benchmark NAME" in reason


@pytest.mark.parametrize(
    "made", [LIVEBENCH, EVERY_EVAL_EVER, OPENAI_EVALS], ids=["LiveBench", "Every Eval Ever", "OpenAI evals"]
)
def test_lines_of_another_tool_or_version_are_counted(tmp_path, made):
    path = made.write(tmp_path)
    renamed = (
        made.results_bytes.replace(b'"score"', b'"grade"')
        .replace(b'"is_correct"', b'"ok"')
        .replace(b'"type"', b'"kind"')
    )
    path.write_bytes(made.results_bytes + renamed)
    read = Read(path)
    assert set(rows(read)) == set(expected(made))
    assert read.faults
    assert {fault[1] for fault in read.faults} <= {"score", "type"}


def test_a_trial_without_a_verdict_field_is_no_failure(tmp_path):
    path = tmp_path / "results.json"
    trials = [{"task_id": "t1", "is_resolved": None}, {"task_id": "t2"}, {"task_id": "t3", "is_resolved": True}]
    path.write_text(json.dumps({"results": trials}))
    read = Read(path)
    assert {e.item_id: e.score for e in read.events} == {"t1": 0, "t3": 1}
    assert [fault[1] for fault in read.faults] == ["resolved"]


def test_prompts_are_conditions(tmp_path):
    path = tmp_path / "results.json"
    polite = {**answer(0, "a", "1+1", 0), "promptId": "q", "promptIdx": 1, "prompt": {"label": "x\n" * 99}}
    path.write_bytes(doc({"results": {"results": [answer(0, "a", "1+1", 1), polite]}}))
    assert {e.model: e.score for e in Read(path).events} == {"a [ask]": 1, "a [prompt 2]": 0}


def test_hostile_names_are_rejected_and_escaped(tmp_path):
    path = tmp_path / "u_samples.jsonl"
    path.write_bytes(jsonl(eee("0", 1.0), {**eee("\x1b[2J", 1.0)}, {**eee("x" * 999, 1.0)}, eee("1", 0.0)))
    read = Read(path)
    assert [e.item_id for e in read.events] == ["0", prompt_id("x" * 999), "1"]
    assert [fault[1] for fault in read.faults] == ["item_id"]
    assert all("\x1b" not in text for fault in read.faults for text in fault[2:])


def test_a_line_that_is_no_record_costs_itself_only(tmp_path):
    for made in (made for made in TOOLS.values() if made.lines):
        path = made.write(tmp_path)
        first, *rest = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(first + b"{broken\n[1]\n" + b"".join(rest))
        read = Read(path)
        assert rows(read) == expected(made)
        assert [fault[0] for fault in read.faults] == [2, 3]


def test_a_battle_is_skipped_in_a_folder_with_the_reason(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(jsonl({"benchmark": "x", "item_id": "1", "model": "m", "score": 1}))
    (tmp_path / "b.csv").write_text("id,model_x,model_y,preference\n1,a,b,left\n")
    (tmp_path / "p.jsonl").write_bytes(jsonl({"question_id": 1, "model_a": "a", "model_b": "b", "g1_winner": "a"}))
    notes = [note for note in Read(tmp_path).notes if "battle of two models" in note]
    assert len(notes) == 2


def test_every_format_has_a_reader_or_a_reason():
    assert all(bool(each.module) != bool(each.refusal) for each in FORMATS)
    assert all(bool(each.document) + bool(each.lines) + bool(each.row) == 1 for each in FORMATS)


def test_a_document_on_one_line_is_the_same(tmp_path):
    for name, made in TOOLS.items():
        if made.lines or made is BFCL or not made.results.endswith(".json"):
            continue
        path = made.write(tmp_path / name)
        whole = rows(Read(path))
        path.write_bytes(json.dumps(json.loads(path.read_bytes())).encode() + b"\n")
        assert rows(Read(path)) == whole


def test_a_table_of_promptfoo_names_the_file_to_give(tmp_path):
    path = tmp_path / "results.csv"
    block = "Status,Score,Named Scores,Grader Reason,Comment"
    path.write_text(f"q,[a] ask,{block},[b] ask,{block}\n1+1,2,PASS,1,{{}},ok,,3,FAIL,0,{{}},no,\n")
    [(_, field, _, reason)] = Read(path).faults
    assert field == "columns"
    assert "promptfoo eval -o results.json" in reason


async def follow(path, states):
    """Read a file as `watch` does, in each of its states; return the events of each reading."""
    reader, read = BatchReader({}, opener=Importer().open), []
    for state in states:
        path.write_bytes(state)
        parts = [part async for batch in reader.read([path], final=False) for part in batch.parts]
        read.append([event for part in parts for event in part.segment.events])
    reader.close()
    return read


@pytest.mark.parametrize("name", [name for name, made in TOOLS.items() if made.lines])
async def test_a_log_that_grows_is_read_once(tmp_path, name):
    path = TOOLS[name].write(tmp_path)
    data = path.read_bytes()
    cuts = [len(data) * k // 7 for k in range(1, 7)]
    read = await follow(path, [data[:cut] for cut in cuts] + [data])
    events = [(e.item_id, e.model, e.repeat, e.score) for each in read for e in each]
    assert sorted(events, key=str) == sorted(((r[1], r[2], r[5], r[3]) for r in TOOLS[name].events), key=str)
    assert len([each for each in read if each]) > 1 or len(events) < 4, "what is there is read before the rest comes"


async def test_a_document_that_is_rewritten_during_a_run_continues(tmp_path):
    path = TERMINAL_BENCH.write(tmp_path)
    document = json.loads(path.read_bytes())
    trials = document["results"]
    states = [doc(document | {"results": trials[:k]}) for k in (1, 2, 3)]
    read = await follow(path, [states[0], states[1][:-20], states[1], states[2]])
    assert [[(e.item_id, e.score) for e in each] for each in read] == [[("t1", True)], [], [("t1", 0)], [("t2", False)]]


def trial(task, reward, exception=None, model="m1"):
    return doc(
        {
            "id": "1", "task_name": task, "trial_name": f"{task}__aaaaaaa", "source": None,
            "config": {"trial_name": f"{task}__aaaaaaa"}, "agent_info": {"name": "codex", "model_info": {"name": model}},
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
            "exception_info": None if exception is None else {"exception_type": exception},
        }
    )  # fmt: skip


@pytest.mark.parametrize(("failed", "missing"), [(None, None), ("skip", None), ("zero", 0)])
def test_a_reward_counts_whatever_the_exception_is(tmp_path, failed, missing):
    trials = {
        "late-right": (1.0, "AgentTimeoutError"),
        "late-wrong": (0.0, "AgentTimeoutError"),
        "right": (1.0, None),
        "no-container": (None, "DockerDaemonError"),
        "no-verdict": (None, None),
    }
    for task, (reward, exception) in trials.items():
        path = tmp_path / f"job/{task}__aaaaaaa/result.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(trial(task, reward, exception))
    read = Read(tmp_path, **({} if failed is None else {"failed": failed}))
    assert {e.item_id: e.score for e in read.events} == {
        "late-right": 1, "late-wrong": 0, "right": 1, "no-container": missing, "no-verdict": missing,
    }  # fmt: skip


def bfcl(total, category, model, *failed):
    rows = [{"id": each, "model_name": model, "test_category": category, "valid": False} for each in failed]
    return jsonl({"accuracy": 0.5, "correct_count": total - len(failed), "total_count": total}, *rows)


def test_ids_of_live_categories_begin_with_the_number_of_the_item(tmp_path):
    folder = tmp_path / "score/m-a/live"
    folder.mkdir(parents=True)
    path = folder / "BFCL_v4_live_simple_score.json"
    path.write_bytes(bfcl(4, "live_simple", "m-a", "live_simple_1-0-7", "live_simple_3-2-0"))
    assert {e.item_id: e.score for e in Read(tmp_path).events} == {
        f"live_simple/live_simple_{k}": int(k not in {1, 3}) for k in range(4)
    }
    path.write_bytes(bfcl(4, "live_simple", "m-a", "live_simple_1-0-7", "live_simple_1-2-0"))
    assert "are not 2 of 1 to 4" in Read(tmp_path).faults[0][3]


def test_a_file_without_failures_has_the_items_and_the_model_of_its_path(tmp_path):
    for model, failed in (("m-a", ("live_simple_1-0-7",)), ("m-b", ())):
        path = tmp_path / f"score/{model}/live/BFCL_v4_live_simple_score.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(bfcl(3, "live_simple", model, *failed))
    read = Read(tmp_path)
    items = {model: {e.item_id for e in read.events if e.model == model} for model in ("m-a", "m-b")}
    assert items["m-a"] == items["m-b"] == {f"live_simple/live_simple_{k}" for k in range(3)}


def helm_run(folder, *records):
    """Write a run with records of (instance, split, score)."""
    path = folder / "quiz:model=m/per_instance_stats.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    stats = [
        {
            "instance_id": item,
            "train_trial_index": 0,
            "stats": [{"name": {"name": "exact_match", "split": split}, "count": 1, "sum": score, "mean": score}],
        }
        for item, split, score in records
    ]
    path.write_bytes(doc(stats))
    return folder


def test_one_split_is_read_and_named(tmp_path):
    run = helm_run(tmp_path, ("id1", "valid", 0.0), ("id2", "test", 1.0), ("id3", "train", 0.0))
    read = Read(run)
    assert [(e.item_id, e.score) for e in read.events] == [("id2", 1)]
    assert any("split test; not read: train (1 records), valid (1 records)" in note for note in read.notes)
    assert [e.item_id for e in Read(run, split=["valid"]).events] == ["id1"]
    assert [e.item_id for e in Read(run, split=["quiz=valid"]).events] == ["id1"]
    assert "choose one of test, train, valid with --split" in Read(run, split=["dev"]).faults[0][3]


def test_without_a_test_split_one_other_is_read_and_several_are_refused(tmp_path):
    read = Read(helm_run(tmp_path, ("id1", "valid", 0.0), ("id2", "valid", 1.0)))
    assert len(read.events) == 2
    assert any("split valid" in note for note in read.notes)
    read = Read(helm_run(tmp_path, ("id1", "valid", 0.0), ("id2", "train", 1.0)))
    assert read.events == []
    assert "choose one of train, valid with --split" in read.faults[0][3]


def test_many_tries_and_many_annotations_are_read_in_bounded_time(tmp_path):
    path = tmp_path / ".aider.results.json"
    exercise = {"testcase": "x", "model": "m", "edit_format": "diff", "tests_outcomes": [False] * 200_000 + [True]}
    path.write_bytes(doc(exercise))
    assert [(e.item_id, e.score) for e in Read(path, metric=["pass@10"]).events] == [("x", False)]
    runs = [
        {"example_id": str(k), "repetition_number": 1, "annotations": [{"name": f"n{k}", "score": 1}]}
        for k in range(5_000)
    ]
    path.write_bytes(doc(runs))
    assert [e.score for e in Read(path).events] == [1, *[None] * 4_999], (
        "an annotation that others lack is no score of theirs"
    )


def document(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def test_rows_that_name_a_model_are_no_trials_of_tau_bench(tmp_path):
    trial = {"task_id": 1, "reward": 1.0, "info": {}}
    array = [trial | {"model": model} for model in ("one", "other")]
    read = Read(document(tmp_path, "a.json", array), columns=["item_id=task_id", "model=model", "score=reward"])
    assert {event.model for event in read.events} == {"one", "other"}


def test_an_instance_that_comes_twice_is_refused(tmp_path):
    once = '"a__b-1": {"patch_successfully_applied": true, "resolved": %s}'
    read = Read(document(tmp_path, "m/report.json", f"{{{once % 'true'}, {once % 'false'}}}"))
    assert (read.events, [fault[2] for fault in read.faults]) == ([], ["a__b-1"])


def test_questions_of_a_run_keep_number_0_and_what_has_no_grade_is_missing(tmp_path):
    questions = [
        {"question_id": "q", "contest_date": "d", "output_list": [], "id": k, "graded_list": graded}
        for k, graded in enumerate(([True], []))
    ]
    read = Read(document(tmp_path, "m/Scenario.codegeneration_1_0_eval_all.json", questions))
    assert [(event.item_id, event.score) for event in read.events if event.score is not None] == [("0", 1)]
    assert len(read.events) + len(read.faults) == 2


def test_a_row_of_more_cells_than_columns_is_rejected_on_its_own(tmp_path):
    rows = [["q1", "m", 1], ["q2", "m", 1, "more"], ["q3", "m", 0]]
    read = Read(document(tmp_path, "a.json", {"columns": ["item_id", "model", "score"], "data": rows}))
    assert [event.item_id for event in read.events] == ["q1", "q3"]
    ((_, _, found, why),) = read.faults
    assert (found, why) == ("4 cells", "the row has 4 cells and the table 3 columns; give each cell a column")
