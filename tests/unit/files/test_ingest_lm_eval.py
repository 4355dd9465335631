"""Samples of lm-evaluation-harness: what counts of them, by whom, and what is refused."""

import json

import pytest

from tests.unit.files.memory_log import Log, look, once
from tests.unit.files.native_logs import TIME, Choices, Importer, Read, lm_eval_group, lm_eval_run, sample, write_lines

OUTCOMES = {"acme/one": [1, 0, 1, 1], "two": [0, 0, 1, 0]}


def runs(folder, **options):
    return [
        lm_eval_run(
            folder / model.replace("/", "__"), model, [sample(k, float(s)) for k, s in enumerate(scores)], **options
        )
        for model, scores in OUTCOMES.items()
    ]


def ids(count):
    return [f"{k}-{k:064x}"[: len(str(k)) + 13] for k in range(count)]


def test_runs_of_two_models_share_items(tmp_path):
    runs(tmp_path)
    read = Read(tmp_path)
    assert read.scores == {
        ("quiz", item, 0, model): score
        for model, scores in OUTCOMES.items()
        for item, score in zip(ids(4), scores, strict=True)
    }
    assert [e.cluster for e in read.events] == ["law", "math"] * 4
    assert read.declared == [("quiz", 4)] * 2
    assert read.notes == ["quiz: metric acc; filter none; clusters by subject"]
    assert not read.rejects


def test_one_filter_counts_and_not_all(tmp_path):
    lines = [sample(k, s, filter=name) for name, s in (("strict", 0.0), ("flexible", 1.0)) for k in range(3)]
    lm_eval_run(tmp_path, "m", lines, filters=("strict", "flexible"))
    first, chosen = Read(tmp_path), Read(tmp_path, filter=["flexible"])
    assert [e.score for e in first.events] == [0.0] * 3
    assert "filter strict (also available: flexible)" in first.notes[0]
    assert [e.score for e in chosen.events] == [1.0] * 3
    assert chosen.declared == [("quiz", 3)]
    (refused,) = Read(tmp_path, filter=["quiz=lenient"]).faults
    assert refused == (
        1,
        "filter",
        "lenient",
        "no sample has the filter lenient; choose one of strict, flexible with --filter quiz=FILTER",
    )


def test_a_filter_that_never_comes_is_reported_at_the_end(tmp_path):
    write_lines(tmp_path / f"samples_quiz_{TIME}.jsonl", [sample(k, filter="none") for k in range(3)])
    read = Read(tmp_path, filter=["lenient"])
    assert not read.events
    assert read.faults == [
        (3, "filter", "lenient", "no sample has the filter lenient; choose one of none with --filter quiz=FILTER")
    ]


def test_the_first_metric_with_a_number_of_which_more_is_better_counts(tmp_path):
    metrics = {"f1": [1, 0], "perplexity": 0.5, "acc": 0.25, "acc_norm": 0.75}
    lm_eval_run(tmp_path, "m", [sample(0, metrics=metrics)], better={"f1": True, "perplexity": False, "acc": True})
    read = Read(tmp_path)
    assert [e.score for e in read.events] == [0.25]
    assert "metric acc (also available: f1, perplexity, acc_norm)" in read.notes[0]
    assert [e.score for e in Read(tmp_path, metric=["acc_norm"]).events] == [0.75]
    assert [e.score for e in Read(tmp_path, metric=["other=acc_norm"]).events] == [0.25]
    lower = Read(tmp_path, metric=["quiz=perplexity:lower"])
    assert [e.score for e in lower.events] == [0.5]
    assert "metric perplexity (less is better)" in lower.notes[0]


@pytest.mark.parametrize(
    ("metric", "problem", "remedy"),
    [
        ("f1", "f1 has a list for every sample", "choose one of f1, wer, acc with --metric quiz=METRIC"),
        ("wer", "less wer is better", "use --metric wer:lower, which counts one minus its value"),
        ("bleu", "there is no metric bleu", "choose one of f1, wer, acc with --metric quiz=METRIC"),
    ],
)
def test_a_metric_that_compares_nothing_is_refused(tmp_path, metric, problem, remedy):
    values = {"f1": [1, 0], "wer": 0.5, "acc": 0.25}
    lm_eval_run(tmp_path, "m", [sample(k, metrics=values) for k in range(9)], better={"wer": False})
    read = Read(tmp_path, metric=[metric])
    assert not read.events
    ((line, field, found, reason),) = read.faults
    assert (line, field, found) == (1, "metric", metric)
    assert problem in reason
    assert remedy in reason


def test_no_usable_metric_is_refused(tmp_path):
    lm_eval_run(tmp_path, "m", [sample(0, metrics={"f1": [1, 0]})])
    ((_, field, _, reason),) = Read(tmp_path).faults
    assert field == "metric"
    assert "choose one of f1 with --metric quiz=METRIC" in reason


def test_what_is_no_score_is_named_with_its_line_and_the_rest_is_read(tmp_path):
    path = lm_eval_run(tmp_path, "m", [sample(0), sample(1, 7.0), sample(2), sample(3, "high"), sample(4)])
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:40]
    lines.append(json.dumps(sample(5)).replace('"acc": 1.0', '"acc": NaN'))
    lines.append(json.dumps(sample(6)))
    path.write_text("\n".join(lines) + "\n")
    read = Read(tmp_path)
    assert [e.item_id[0] for e in read.events] == ["0", "4", "6"]
    assert [(line, field, found[:9]) for line, field, found, _ in read.faults] == [
        (2, "acc", "7.0"),
        (3, "record", '{"doc_id"'),
        (4, "acc", "high"),
        (6, "acc", "nothing"),
    ]
    assert "choose another metric with --metric" in read.faults[0][3]
    assert {r["benchmark"] for r in read.rejects} == {"quiz"}


def test_without_results_the_folder_names_the_model(tmp_path):
    write_lines(tmp_path / "acme__one" / f"samples_a_b_{TIME}.jsonl", [sample(0)])
    read = Read(tmp_path)
    assert [(e.benchmark, e.model) for e in read.events] == [("a_b", "acme__one")]
    assert not read.declared
    assert any("no results file is next to it" in text for text in read.notes)
    assert [e.model for e in Read(f"mine={tmp_path}").events] == ["mine"]


def test_a_samples_file_under_another_name_needs_the_benchmark(tmp_path):
    path = write_lines(tmp_path / "mine.jsonl", [sample(0)])
    ((_, field, _, reason),) = Read(path).faults
    assert field == "file"
    assert "--benchmark NAME" in reason
    assert [e.benchmark for e in Read(path, benchmark="quiz").events] == ["quiz"]


def test_results_that_cannot_be_read_refuse_the_samples(tmp_path):
    lm_eval_run(tmp_path, "m", [sample(0)])
    (tmp_path / f"results_{TIME}.json").write_text('{"model_name": ')
    read = Read(tmp_path)
    assert not read.events
    ((_, field, _, reason),) = read.faults
    assert field == "results"
    assert "NAME=PATH" in reason


def test_versions_of_a_task_are_not_mixed(tmp_path):
    lm_eval_run(tmp_path / "a", "one", [sample(0)], version=1.0)
    lm_eval_run(tmp_path / "b", "two", [sample(0)], version=2.0)
    lm_eval_run(tmp_path / "c", "three", [sample(0)], version=1.0)
    read = Read(tmp_path)
    assert [e.model for e in read.events] == ["one", "three"]
    ((line, field, found, reason),) = read.faults
    assert (line, field, found) == (1, "version", "version 2.0 of quiz")
    assert "cannot be compared with version 1.0" in reason


def test_equal_numbers_of_different_documents_are_different_items(tmp_path):
    lm_eval_run(tmp_path / "a", "one", [sample(0), sample(1)])
    lm_eval_run(tmp_path / "b", "two", [sample(0), sample(1, doc_hash="f" * 64)])
    read = Read(tmp_path)
    assert [e.item_id for e in read.events] == [*ids(2), ids(1)[0], "1-ffffffffffff"]
    assert any("item 1 in" in text and "differs from the one in" in text for text in read.notes)
    assert [e.item_id for e in Read(tmp_path, columns=["item_id=doc_id"]).events] == ["0", "1", "0", "1"]
    assert [e.item_id for e in Read(tmp_path, columns=["item_id=doc.question"]).events] == ["0?", "1?"] * 2


def test_two_runs_of_one_model_are_reported_and_can_be_named(tmp_path):
    lm_eval_run(tmp_path / "a", "m", [sample(0)])
    lm_eval_run(tmp_path / "b", "m", [sample(0, 0.0)], time="2026-02-02T03-04-05.5")
    assert any("both hold scores of m" in text for text in Read(tmp_path).notes)
    named = Read(f"before={tmp_path / 'a'}", f"after={tmp_path / 'b'}")
    assert {e.model: e.score for e in named.events} == {"before": 1.0, "after": 0.0}
    assert not any("both" in text for text in named.notes)


def test_clusters_can_be_chosen_and_left_out(tmp_path):
    lm_eval_run(tmp_path, "m", [sample(0)])
    assert [e.cluster for e in Read(tmp_path, cluster="question").events] == ["0?"]
    assert [e.cluster for e in Read(tmp_path, cluster="none").events] == [None]


def test_several_tasks_can_make_one_benchmark(tmp_path):
    lm_eval_run(tmp_path, "m", [sample(0)], task="law")
    lm_eval_run(tmp_path, "m", [sample(0, doc_hash="f" * 64)], task="math", version=2.0)
    read = Read(tmp_path, benchmark="both")
    assert {e.benchmark for e in read.events} == {"both"}
    assert len({e.item_id for e in read.events}) == 2
    assert not read.declared
    assert not read.rejects


def test_a_long_transcript_is_no_obstacle(tmp_path):
    lm_eval_run(tmp_path, "m", [sample(0, resps=[["x" * 3_000_000]]), sample(1)])
    assert [e.item_id for e in Read(tmp_path).events] == ids(2)


@pytest.mark.parametrize("restart", [False, True])
def test_a_file_that_grows_is_read_exactly_once(tmp_path, restart):
    lines = [sample(k, float(k % 2), filter=name) for name in ("strict", "flexible") for k in range(40)]
    path = lm_eval_run(tmp_path, "m", lines, filters=("strict", "flexible"))
    data, log = path.read_bytes(), Log()
    path.write_bytes(b"")
    tailer = log.tailer(tmp_path, importer=Importer(Choices()))
    for end in range(0, len(data) + 7_001, 7_000):
        path.write_bytes(data[:end])
        if restart:
            tailer._reader.close()
            tailer = log.tailer(tmp_path, importer=Importer(Choices()))
        look(tailer)
    tailer._reader.close()
    assert [e["item_id"] for e in log.events] == ids(40)
    counters = log.counters()
    assert (counters["events"], counters["duplicates"], counters["skipped_spans"]) == (40, 0, 0)


def test_half_a_sample_is_left_unread_at_the_end(tmp_path):
    path = lm_eval_run(tmp_path, "m", [sample(0), sample(1)])
    data, log, notes = path.read_bytes(), Log(), []
    path.write_bytes(data[:-20])
    once(log, tmp_path, importer=Importer(Choices(), notes.append))
    assert any("the last line is half-written" in text for text in notes)
    path.write_bytes(data[:-1])
    once(log, tmp_path, importer=Importer(Choices()))
    path.write_bytes(data)
    once(log, tmp_path, importer=Importer(Choices()))
    assert [e["item_id"] for e in log.events] == ids(2)
    assert not log.rejects


GROUPS = {
    "board": ["board_stem", "board_law"],
    "board_stem": ["board_math", "board_physics"],
    "all": ["board", "alone"],
}
TASKS = {
    "board_math": [sample(0), sample(1, 0.0)],
    "board_physics": [sample(0, 0.0)],
    "board_law": [sample(0), sample(1), sample(2, 0.0)],
    "alone": [sample(0)],
}


def test_the_subtasks_of_a_group_are_one_benchmark_with_a_cluster_each(tmp_path):
    for model in "ab":
        lm_eval_group(tmp_path / model, model, TASKS, groups=GROUPS, scored={"board", "board_stem"})
    read = Read(tmp_path)
    clusters = {(e.benchmark, e.item_id.split("/")[0], e.cluster) for e in read.events if e.benchmark == "board"}
    assert clusters == {("board", task, task) for task in TASKS if task != "alone"}
    assert len({e.item_id for e in read.events if e.benchmark == "board"}) == 6, (
        "equal ids of subtasks are different items"
    )
    assert set(read.declared) == {("board", 6), ("alone", 1)}
    assert {e.benchmark for e in read.events} == {"board", "alone"}, (
        "a group without a metric names a list of benchmarks"
    )
    assert [t for t in read.notes if "--subtasks" in t] == [
        "board: the group's subtasks (3) are one benchmark, and each is a cluster; --subtasks keeps them apart"
    ]
    assert not read.rejects


def test_a_group_that_only_names_benchmarks_may_be_a_suite(tmp_path):
    lm_eval_group(tmp_path, "a", TASKS, groups=GROUPS, scored={"board", "board_stem"})
    proposed = [text for text in Read(tmp_path).notes if "--suite" in text]
    assert proposed == ["all: a group of 2 benchmarks; --suite all=alone,board --distinct reports them as one"]
    apart = [text for text in Read(tmp_path, subtasks=True).notes if "--suite" in text]
    assert [text.split(":")[0] for text in apart] == ["board", "board_stem", "all"]
    assert "--suite board_stem=board_math,board_physics " in apart[1]
    assert not [text for text in Read(tmp_path, benchmark="one").notes if "--suite" in text]


@pytest.mark.parametrize("name", ["a,b", "a=b", "a\u202eb", "x\x1b[31m"])
def test_a_group_whose_name_no_flag_can_hold_is_not_proposed(tmp_path, name):
    lm_eval_group(tmp_path, "a", TASKS, groups={name: ["board_math", "alone"]}, scored=set())
    assert not [text for text in Read(tmp_path).notes if "--suite" in text]


def test_the_proposed_suite_is_quoted_for_the_shell(tmp_path):
    lm_eval_group(tmp_path, "a", TASKS, groups={"$(touch x)": ["board_math", "alone"]}, scored=set())
    assert any("--suite '$(touch x)=board_math,alone' " in text for text in Read(tmp_path).notes)


# Over items: (1 + 0 + 0 + 1 + 1 + 0) / 6 = .5; over the subtasks: (.5 + 0 + 2/3) / 3.
@pytest.mark.parametrize(("mean", "noted"), [(0.5, False), (7 / 18, True), (0.4, False)])
def test_a_group_that_the_harness_averages_over_its_subtasks_is_named(tmp_path, mean, noted):
    lm_eval_group(tmp_path, "a", TASKS, groups=GROUPS, scored={"board"}, mean=mean)
    assert any("--weights equal-clusters" in text for text in Read(tmp_path).notes) == noted
    assert not any("--weights" in text for text in Read(tmp_path, cluster="none").notes)


def test_subtasks_can_be_kept_apart_or_have_other_clusters_and_metrics(tmp_path):
    tasks = {task: [line | {"f1": 0.25, "metrics": ["acc", "f1"]} for line in lines] for task, lines in TASKS.items()}
    lm_eval_group(tmp_path, "a", tasks, groups=GROUPS, scored={"board"})
    apart = Read(tmp_path, subtasks=True)
    assert {e.benchmark for e in apart.events} == set(TASKS)
    assert ("board_law", 3) in apart.declared
    assert {e.cluster for e in Read(tmp_path, cluster="none").events} == {None}
    graded = Read(tmp_path, metric=["board=f1"])
    assert {e.score for e in graded.events if e.benchmark == "board"} == {0.25}
    assert {e.score for e in graded.events if e.benchmark == "alone"} == {1.0}


def test_groups_that_contain_each_other_end(tmp_path):
    lm_eval_group(tmp_path, "a", {"one": [sample(0)]}, groups={"x": ["y", "one"], "y": ["x"]}, scored={"x", "y"})
    assert {e.benchmark for e in Read(tmp_path).events} <= {"x", "y"}
