import json

import jsonschema
import numpy as np
import pytest

from tests.commands import rankwatch


def write_runs(folder, days, *, drop_at=None, items=60, anchors=False):
    rng = np.random.default_rng(4)
    right = rng.beta(7, 3, items)
    folder.mkdir()
    for day in range(days):
        chance = right - (0.3 if drop_at is not None and day >= drop_at else 0)
        lines = [
            {"benchmark": "qa", "model": "gpt-x", "item_id": f"q{k}", "score": int(rng.random() < p)}
            for k, p in enumerate(chance)
        ]
        if anchors:
            frozen = [
                line | {"role": "anchor", "score": int(rng.random() < p)} for line, p in zip(lines, right, strict=True)
            ]
            lines += frozen
        path = folder / f"qa_2026-{8 + day // 28:02}-{1 + day % 28:02}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_model_that_got_worse_exits_with_4_and_names_the_day(tmp_path):
    write_runs(tmp_path / "runs", 50, drop_at=40)
    result = rankwatch("drift", tmp_path / "runs", "--format", "json", code=4)
    (sentinel,) = json.loads(result.stdout)["sentinels"]
    assert sentinel["outcome"] == "worse"
    assert "2026-09-11" <= sentinel["monitors"][0]["alarms"][0]["start"] <= "2026-09-15"
    assert "gpt-x" in rankwatch("drift", tmp_path / "runs", code=4).stdout
    defaults = "--years", "5", "--runs-a-year", "365"
    given = rankwatch("drift", tmp_path / "runs", "--format", "json", *defaults, code=4)
    assert given.stdout == result.stdout, "the seed depends on how the settings are written"
    start = sentinel["monitors"][0]["alarms"][0]["start"]
    rankwatch("drift", tmp_path / "runs", "--change", start)
    after = rankwatch("drift", tmp_path / "runs", "--change", "2026-09-18", code=3).stdout
    assert "has got worse" not in after
    assert f"earlier     {start}" in after


def test_frozen_answers_are_scores_of_the_judge(tmp_path):
    write_runs(tmp_path / "runs", 50, drop_at=40, anchors=True)
    rankwatch("drift", tmp_path / "runs", "-o", tmp_path / "drift.json", code=4)
    (sentinel,) = json.loads((tmp_path / "drift.json").read_text())["sentinels"]
    assert [monitor["of"] for monitor in sentinel["monitors"]] == ["model", "judge"]
    assert "rankwatch drift" in rankwatch("report", tmp_path / "runs", code=1).stderr


def test_a_year_of_nothing_is_quiet_in_markdown(tmp_path):
    write_runs(tmp_path / "runs", 30)
    result = rankwatch("drift", tmp_path / "runs", "--format", "markdown")
    assert result.stdout.startswith("### ")


def test_bad_inputs_are_answered_by_what_to_do(tmp_path):
    write_runs(tmp_path / "runs", 10)
    (tmp_path / "runs" / "again_2026-08-01.jsonl").write_text((tmp_path / "runs" / "qa_2026-08-01.jsonl").read_text())
    clash = rankwatch("drift", tmp_path / "runs", code=1).stderr
    assert "again_2026-08-01.jsonl" in clash
    assert "qa_2026-08-01.jsonl" in clash
    (tmp_path / "runs" / "again_2026-08-01.jsonl").unlink()
    assert "2026-08-01" in rankwatch("drift", tmp_path / "runs", "--change", "2025-01-01", code=2).stderr
    rankwatch("drift", tmp_path / "runs" / "qa_2026-08-01.jsonl", code=3)
    (tmp_path / "none").mkdir()
    rankwatch("drift", tmp_path / "none", code=2)


def test_a_copy_of_a_run_is_no_run_in_a_history_or_a_plan(tmp_path):
    runs = tmp_path / "runs"
    write_runs(runs, 10)
    (runs / "qa_2026-09-01.jsonl").write_bytes((runs / "qa_2026-08-03.jsonl").read_bytes())
    for call in (("drift", runs), ("drift", "plan", runs)):
        refused = " ".join(rankwatch(*call, code=1).stderr.split())
        assert "qa_2026-09-01.jsonl" in refused
        assert "qa_2026-08-03.jsonl" in refused
        assert "--equal-runs" in refused
    allowed = rankwatch("drift", runs, "--equal-runs")
    assert "(--equal-runs)" in allowed.stdout
    assert json.loads(rankwatch("drift", runs, "--equal-runs", "--format", "json").stdout)["equal_runs"]
    rankwatch("drift", "plan", runs, "--equal-runs")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_runs_that_cannot_be_ranked_are_counted_and_named(tmp_path):
    runs = tmp_path / "runs"
    write_runs(runs, 12)
    scores = lines_of(runs / "qa_2026-08-01.jsonl")
    write(runs / "qa_2026-07-29.jsonl", [line | {"score": None} for line in scores])  # a run without items
    write(runs / "qa_2026-07-30.jsonl", [line | {"role": "anchor"} for line in scores])  # anchors without fresh answers
    write(runs / "qa_2026-07-31.jsonl", scores[:10])
    (runs / "qa_2026-07-28.jsonl").touch()
    result = rankwatch("drift", runs, "--items", 60)
    for name in ("2026-07-29", "2026-07-30", "2026-07-31"):
        assert name in result.stdout
    assert "qa_2026-07-28.jsonl" in result.stderr
    (found,) = json.loads(rankwatch("drift", runs, "--format", "json", "--items", 60).stdout)["sentinels"]
    assert (found["incomplete"], found["items"], found["monitors"][0]["ranked"]) == (3, 60, 12)


def test_dates_that_go_back_are_sorted_and_models_of_one_folder_are_two(tmp_path):
    runs = tmp_path / "runs"
    write_runs(runs, 12)
    names = sorted(path.name for path in runs.iterdir())
    for name in names:
        write(runs / f"other_{name}", [line | {"model": "other"} for line in lines_of(runs / name)])
    backwards = [runs / name for name in reversed(names)] + [runs / f"other_{name}" for name in names]
    found = json.loads(rankwatch("drift", *backwards, "--format", "json").stdout)["sentinels"]
    assert [each["model"] for each in found] == ["gpt-x", "other"]
    for each in found:
        assert [run["run"] for run in each["runs"]] == sorted(run["run"] for run in each["runs"])


def test_what_drift_does_not_read_of_a_file_is_printed(tmp_path):
    runs = tmp_path / "runs"
    write_runs(runs, 12)
    last = runs / "qa_2026-08-12.jsonl"
    scores = lines_of(last)
    for record in ({"declare": "qa", "drift": {}}, {"change": "gpt-x", "benchmark": "qa"}):
        write(last, [*scores, record])
        assert "qa_2026-08-12.jsonl" in rankwatch("drift", runs).stderr


def test_a_plan_takes_its_noise_from_runs(tmp_path):
    write_runs(tmp_path / "runs", 12)
    given = ("--items", 60, "--drop", 0.1, "--price", 0.01, "--format", "json")
    plan = json.loads(rankwatch("drift", "plan", tmp_path / "runs", *given).stdout)
    ((watch,), model) = plan["watches"], plan["model"]
    assert (model, watch["history"], watch["cost_a_year"]) == ("gpt-x", 12, 219)
    assert "never" in rankwatch("drift", "plan", "--items", 50, "--history", 14, "--drop", 0.04).stdout
    assert "--flips" in rankwatch("drift", "plan", tmp_path / "runs", "--flips", 0.1, code=2).stderr
    write_runs(tmp_path / "once", 1)
    rankwatch("drift", "plan", tmp_path / "once", code=1)


def test_runs_of_frozen_answers_alone_have_no_items(tmp_path):
    write_runs(tmp_path / "runs", 9, anchors=True)
    for path in (tmp_path / "runs").iterdir():
        path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "anchor" in line))
    printed = rankwatch("drift", tmp_path / "runs", code=3).stdout
    assert "0 items" in printed
    assert "9 runs with too few items" in printed


def test_programs_read_what_the_schemas_describe(tmp_path):
    runs, archive = tmp_path / "runs", tmp_path / "archive"
    write_runs(runs, 12)
    for path in sorted(runs.iterdir()):
        (archive / path.stem).mkdir(parents=True)
        lines = lines_of(path)
        write(archive / path.stem / "scores.jsonl", [*lines, *(line | {"model": "new"} for line in lines)])
    calls = {
        "drift": ("drift", runs),
        "gate-check": ("gate", runs, "--check", "--margin", 0.5),
        "gate-cases": ("gate", runs, "--per-case", 0.8, "--on-undecided", "pass"),
        "gate-replay": ("gate", "--replay", archive, "--margin", 0.1, "--baseline", "gpt-x", "--price", "new=1"),
    }
    for name, call in calls.items():
        schema = json.loads(rankwatch("schema", name).stdout)
        code = 4 if name == "gate-cases" else 0
        answer = json.loads(rankwatch(*call, "--format", "json", code=code).stdout)
        jsonschema.Draft202012Validator(schema).validate(answer)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate({})
