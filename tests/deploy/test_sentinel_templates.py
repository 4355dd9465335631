"""The templates that run a sentinel every day: the script with a mock model, and each schedule as its own program reads it."""

import os
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


def test_the_schedules_are_read_by_their_programs():
    workflow = yaml.safe_load((FOLDER / "github.yml").read_text())
    assert [step["id"] for step in workflow["jobs"]["run"]["steps"] if "id" in step] == ["drift"]
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
