"""The templates that run a sentinel every day: the script with a mock model, and each schedule as its own program reads it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sentinel"
MODEL = """
import json, random, sys
random.seed(int(sys.argv[1]))
for k in range(80):
    chance = (0.5 + 0.4 * (k % 3) / 2) * float(sys.argv[2])
    print(json.dumps({"benchmark": "qa", "model": "m", "item_id": f"q{k}", "score": int(random.random() < chance)}))
"""


def run(folder, day, level):
    """One run of a mock model; returns the exit code and what was printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [FOLDER / "run.sh", folder, "qa", sys.executable, "-c", MODEL, str(day), str(level)]
    ended = subprocess.run(
        command,
        env={**os.environ, "RUN": f"2026-{8 + day // 28:02}-{1 + day % 28:02}", "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_a_degraded_model_exits_with_4_and_no_run_is_repeated(tmp_path):
    runs = tmp_path / "runs"
    code, _ = run(runs, 0, 1.0)
    assert code == 3
    assert run(runs, 0, 1.0)[0] == 2
    for day in range(1, 36):
        level = 1.0 if day < 28 else 0.5
        lines = subprocess.run(
            [sys.executable, "-c", MODEL, str(day), str(level)], capture_output=True, text=True, check=True
        )
        (runs / f"qa_2026-{8 + day // 28:02}-{1 + day % 28:02}.jsonl").write_text(lines.stdout)
    code, text = run(runs, 36, 0.5)
    assert (code, len(list(runs.iterdir()))) == (4, 37)
    assert "m has got worse" in text
    failed = subprocess.run(
        [FOLDER / "run.sh", runs, "qa", "false"], env={**os.environ, "RUN": "2026-12-01"}, check=False
    )
    assert failed.returncode == 1
    assert len(list(runs.iterdir())) == 37


GH = """#!/usr/bin/env python3
import json, pathlib, sys
folder, (what, verb, *rest) = pathlib.Path(FOLDER), sys.argv[1:]
state = json.loads(folder.read_text()) if folder.exists() else {"issues": [], "labels": []}
options = dict(zip(rest[-2::-2], rest[::-2], strict=True)) if verb != "edit" else dict(zip(rest[1::2], rest[2::2], strict=True))
if (what, verb) == ("issue", "list"):
    assert options["--jq"] == ".[0].number // empty"
    print(state["issues"][0]["number"] if state["issues"] else "", end="")
elif (what, verb) == ("issue", "create"):
    assert options["--label"] in state["labels"]
    state["issues"].append({"number": 7, "bodies": [pathlib.Path(options["--body-file"]).read_text()]})
elif (what, verb) == ("issue", "edit"):
    (issue,) = [each for each in state["issues"] if each["number"] == int(rest[0])]
    issue["bodies"].append(pathlib.Path(options["--body-file"]).read_text())
else:
    assert (what, verb, rest[1:]) == ("label", "create", ["--force"])
    state["labels"].append(rest[0])
folder.write_text(json.dumps(state))
"""
"""GitHub, as far as the workflow calls it."""


def is_true(condition, code):
    """Decide the condition of a step by the exit code of the run, as GitHub does: the output is compared as a number."""
    assert re.fullmatch(r"steps\.drift\.outputs\.code == \d( \|\| steps\.drift\.outputs\.code == \d)*", condition)
    return int(code) in map(int, re.findall(r"== (\d)", condition))


def test_the_workflow_keeps_its_runs_and_opens_one_issue(tmp_path):
    kept, place, bin_ = tmp_path / "kept.git", tmp_path / "place", tmp_path / "bin"
    for folder in (place / "examples", bin_):
        folder.mkdir(parents=True)
    shutil.copytree(FOLDER, place / "examples" / "sentinel")
    gh, harness = bin_ / "gh", place / "harness"
    gh.write_text(GH.replace("FOLDER", repr(str(tmp_path / "github.json"))))
    harness.write_text(
        f"#!{sys.executable}\n"
        + MODEL.replace("sys.argv[1]", "open('day').read()").replace("sys.argv[2]", "open('level').read()")
    )
    for program in (gh, harness):
        program.chmod(0o755)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "--quiet", "--bare", kept], check=True)
    subprocess.run([*git, "clone", "--quiet", kept, place / "kept"], check=True, capture_output=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "begin"], cwd=place / "kept", check=True)
    steps = [
        each for each in yaml.safe_load((FOLDER / "github.yml").read_text())["jobs"]["run"]["steps"] if "run" in each
    ]
    path = f"{bin_}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def job(day, level):
        output = tmp_path / "output"
        output.write_text("")
        (place / "day").write_text(str(day))
        (place / "level").write_text(str(level))
        env = {**os.environ, "PATH": path, "GITHUB_OUTPUT": str(output), "RUN": f"2026-08-{1 + day:02}"}
        for step in steps[1:]:  # but for the installation
            code = output.read_text().strip().removeprefix("code=")
            if "if" not in step or is_true(step["if"], code):
                where = place / step.get("working-directory", ".")
                subprocess.run(["bash", "-e", "-c", step["run"]], cwd=where, env=env, check=True, capture_output=True)
        return code

    (place / "kept" / "runs").mkdir()
    for day in range(20):
        lines = subprocess.run([sys.executable, "-c", MODEL, str(day), "1"], capture_output=True, text=True, check=True)
        (place / "kept" / "runs" / f"support-qa_2026-08-{1 + day:02}.jsonl").write_text(lines.stdout)
    codes = [job(day, 0.3) for day in range(20, 26)]
    assert "4" in codes
    assert codes == sorted(codes)
    github = json.loads((tmp_path / "github.json").read_text())
    (issue,) = github["issues"]
    assert len(issue["bodies"]) == codes.count("4") >= 2
    assert all("m has got worse" in body for body in issue["bodies"])
    log = subprocess.run([*git, "log", "--oneline"], cwd=kept, capture_output=True, text=True, check=True).stdout
    assert len(log.splitlines()) == 1 + len(codes)


def test_the_schedules_are_read_by_their_programs():
    workflow = yaml.safe_load((FOLDER / "github.yml").read_text())
    assert [step["id"] for step in workflow["jobs"]["run"]["steps"] if "id" in step] == ["drift"]
    (condition,) = [step["if"] for step in workflow["jobs"]["run"]["steps"] if "if" in step]
    assert [code for code in range(6) if is_true(condition, code)] == [4, 5]
    claim, job = yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text())
    assert (claim["kind"], job["spec"]["jobTemplate"]["spec"]["backoffLimit"]) == ("PersistentVolumeClaim", 0)
    assert len({"15 6 * * *"} & {job["spec"]["schedule"], workflow[True]["schedule"][0]["cron"]}) == 1
    assert "15 6 * * *" in (FOLDER / "crontab").read_text()
    subprocess.run(["sh", "-n", FOLDER / "run.sh"], check=True)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there (Debian: systemd)")
    assert (
        subprocess.run(
            ["systemd-analyze", "calendar", "*-*-* 06:15:00 UTC"], capture_output=True, check=False
        ).returncode
        == 0
    )
