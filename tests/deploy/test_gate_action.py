"""The action and the GitLab template: valid, and their steps run here as a runner runs them."""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml

from tests.commands import environment, write

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
COMMENT = yaml.safe_load((ROOT / "deploy/gate/comment/action.yml").read_text("utf-8"))
HOSTILE = 'x"; touch injected; $(touch injected) `touch injected` ::error::%0A<script>|@you'


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("github-actions", "action.yml"),
        ("github-actions", "deploy/gate/comment/action.yml"),
        ("gitlab-ci", "deploy/gate/gitlab.yml"),
    ],
)
def test_the_files_match_their_schema(kind, path):
    folder = Path(find_spec("check_jsonschema").origin).parent / "builtin_schemas" / "vendor"
    schema = json.loads((folder / f"{kind}.json").read_text("utf-8"))
    jsonschema.validators.validator_for(schema)(schema).validate(yaml.safe_load((ROOT / path).read_text("utf-8")))


def test_no_input_is_pasted_into_a_script():
    for action in (ACTION, COMMENT):
        for step in action["runs"]["steps"]:
            assert "${{" not in step["run"]
        given = {value for step in action["runs"]["steps"] for value in step.get("env", {}).values()}
        assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}


def test_what_installs_packages_has_no_token_and_what_has_one_installs_nothing():
    install, gate = ACTION["runs"]["steps"]
    calls = [line for line in install["run"].splitlines() if line.startswith("pip -")]
    assert [("--require-hashes" in call, "--no-build-isolation" in call) for call in calls] == [
        (True, False),
        (False, True),
    ]
    assert "--no-deps" in install["run"]
    assert "token" not in str(ACTION["inputs"]) + str(gate["env"]).lower()
    (comment,) = COMMENT["runs"]["steps"]
    assert comment["run"] == 'python3 -I "$GITHUB_ACTION_PATH/../github.py" comment'
    job = yaml.safe_load((ROOT / "deploy/gate/gitlab.yml").read_text("utf-8"))[".rankwatch-gate"]
    (pip,) = [line for line in job["script"] if "pip install" in line]
    assert "--require-hashes --no-deps --only-binary=:all:" in pip
    assert job["script"][0].startswith("unset CI_JOB_TOKEN")


@pytest.mark.fault("attacks", "a link in the workspace of the action", "refused")
def test_a_link_in_the_workspace_leads_nowhere_else(tmp_path, runner):
    (tmp_path / "work").mkdir()
    results(tmp_path / "secret.jsonl", "new")
    (tmp_path / "work/r.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (tmp_path / "work/folder").symlink_to(tmp_path)
    runner["GITHUB_WORKSPACE"] = str(tmp_path / "work")
    call = {"candidate": "new", "baseline": "old", "margin": "0.03"}
    for path in ("r.jsonl", "new=r.jsonl", "folder", "folder/secret.jsonl", str(tmp_path / "work/r.jsonl")):
        assert "links out of the workspace" in run_gate(tmp_path / "work", runner, 2, **call, paths=path)
    results(tmp_path / "work/own.jsonl", "new")
    for given in ({"args": "--units\nr.jsonl"}, {"args": "--units=bench=r.jsonl"}, {"folder": "folder/report"}):
        assert "links out of the workspace" in run_gate(
            tmp_path / "work", runner, 2, **call, **given, paths="own.jsonl"
        )
    run_gate(tmp_path / "work", runner, 0, **call, paths=str(tmp_path / "secret.jsonl"))


@pytest.mark.fault("attacks", "modules of rankwatch, Python and pip in the workspace of the action", "none is imported")
def test_no_module_of_the_workspace_is_imported(tmp_path, runner):
    """A pull request could bring its own `monitor`, and write the verdict itself; many a repository has a folder `stats`."""
    for name in ("monitor", "stats", "schemas", "msgspec", "json", "venv", "pip", "ensurepip"):
        (tmp_path / name).mkdir()
        for module in ("__init__", "__main__"):
            (tmp_path / name / f"{module}.py").write_text(f"import sys; sys.exit('{name} of the workspace')")
    results(tmp_path / "r.jsonl", "new", lost=60)
    run_gate(tmp_path, runner, 4, candidate="new", baseline="old", margin="0.03", paths="r.jsonl")
    install = ACTION["runs"]["steps"][0]["run"] + (ROOT / "deploy/gate/gitlab.yml").read_text("utf-8")
    calls = re.findall(r'python3?"? (-\S+)', install)
    assert calls == ["-I"] * 3
    ended = bash('python3 -I -m venv made && "$PWD/made/bin/python" -I -m pip --version', tmp_path, runner)
    assert ended.returncode == 0, ended.stderr


class Api(BaseHTTPRequestHandler):
    """Comments of a pull request, kept in memory."""

    comments: ClassVar[list] = []
    calls: ClassVar[list] = []

    def _answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        assert self.headers["Authorization"] == "Bearer secret"
        self.calls.append((self.command, self.path))
        if self.command == "POST":
            self.comments.append({"id": len(self.comments) + 1, "user": {"type": "Bot"}, **body})
        elif self.command == "PATCH":
            self.comments[int(self.path.rpartition("/")[2]) - 1].update(body)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.comments if self.command == "GET" else {}).encode())

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - the names are the library's

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def api():
    Api.comments, Api.calls = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def runner(tmp_path, api):
    """The environment of a runner, whose installed Python is this one."""
    python = tmp_path / "runner" / "rankwatch" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    return environment(
        RUNNER_TEMP=str(tmp_path / "runner"),
        GITHUB_ACTION_PATH=str(ROOT),
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
        GITHUB_OUTPUT=str(tmp_path / "output"),
        GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
        GITHUB_REPOSITORY="acme/models",
        GITHUB_API_URL=api,
        PYTHONPATH=str(ROOT),
    )


def bash(script, cwd, env):
    """Run a script as a runner does."""
    command = ["bash", "-e", "-c", script]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=240, check=False)


def run_gate(tmp_path, runner, code, **inputs):
    """Run the step of the gate with inputs, as the runner substitutes them."""
    printed = run_step(ACTION, ACTION["runs"]["steps"][1], tmp_path, runner, code, inputs)
    models = {name: inputs[name] for name in ("candidate", "baseline")}
    path = {"GITHUB_ACTION_PATH": str(ROOT / "deploy/gate/comment")}
    step = COMMENT["runs"]["steps"][0]
    if not (tmp_path / "rankwatch-gate-report/gate.md").exists():
        return printed
    return printed + run_step(COMMENT, step, tmp_path, runner | path, 0, models | {"token": "secret"})


def run_step(action, step, tmp_path, runner, code, inputs):
    """Run a step with inputs, as the runner substitutes them."""
    values = {name: str(each.get("default", "")) for name, each in action["inputs"].items()} | inputs
    env = runner | {
        name: values[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()
    }
    ended = bash(step["run"], tmp_path, env)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def results(path, candidate, n=400, lost=0):
    return write(
        path,
        [
            {
                "benchmark": "::error::bench|<b>",
                "item_id": f"i{k}",
                "model": model,
                "score": int(model == "old" or k >= lost),
            }
            for k in range(n)
            for model in (candidate, "old")
        ],
    )


def outputs(tmp_path):
    found, text = {}, (tmp_path / "output").read_text().splitlines()
    while text:
        name, _, end = text.pop(0).partition("<<")
        at = text.index(end)
        found[name] = "\n".join(text[:at])
        text = text[at + 1 :]
    return found


@pytest.mark.fault(
    "attacks", "item ids and model names that are workflow commands, in the action", "text everywhere; nothing is run"
)
def test_a_gate_with_hostile_names_writes_everything_and_updates_its_comment(tmp_path, runner):
    results(tmp_path / "r.jsonl", HOSTILE)
    call = {"paths": "r.jsonl", "candidate": HOSTILE, "baseline": "old", "margin": "0.03"}
    printed = run_gate(tmp_path, runner, 0, **call)
    assert printed.count("\n::notice ") + printed.startswith("::notice ") == 1
    assert not [line for line in printed.splitlines() if line.strip().startswith("::error")]
    assert not (tmp_path / "injected").exists()
    given = outputs(tmp_path)
    assert set(given) == set(ACTION["outputs"])
    assert (given["verdict"], given["exit-code"]) == ("pass", "0")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### ● Pass: ")
    assert "<script>" not in summary.replace("\\<", "")
    folder = tmp_path / given["folder"]
    assert ET.parse(folder / "gate.xml").getroot()[0].get("failures") == "0"
    ET.parse(folder / "gate.svg")
    assert [method for method, _ in Api.calls] == ["GET", "POST"]
    results(tmp_path / "r.jsonl", HOSTILE, lost=60)
    assert "::error " in run_gate(tmp_path, runner, 4, **call)
    assert [method for method, _ in Api.calls] == ["GET", "POST", "GET", "PATCH"]
    (only,) = Api.comments
    assert "▼ Fail: " in only["body"]


def test_a_fault_is_an_annotation_and_a_person_s_comment_is_not_touched(tmp_path, runner, api):
    call = {"paths": "absent.jsonl", "candidate": "new", "baseline": "old", "margin": "0.03"}
    assert "::error title=rankwatch gate::rankwatch gate gave no verdict (exit code 2)" in run_gate(
        tmp_path, runner, 2, **call
    )
    results(tmp_path / "r.jsonl", "new")
    run_gate(tmp_path, runner, 0, **call | {"paths": "r.jsonl"})
    Api.comments[0]["user"] = {"type": "User"}
    run_gate(tmp_path, runner, 0, **call | {"paths": "r.jsonl"})
    assert len(Api.comments) == 2
    runner["GITHUB_API_URL"] = "http://127.0.0.1:9"
    assert "::warning title=rankwatch gate::the comment was not written" in run_gate(
        tmp_path, runner, 0, **call | {"paths": "r.jsonl"}
    )


@pytest.mark.fault("attacks", "the same in the GitLab job", "text everywhere; nothing is run")
def test_the_gitlab_job_runs_its_script_with_hostile_names(tmp_path, runner):
    job = yaml.safe_load((ROOT / "deploy/gate/gitlab.yml").read_text("utf-8"))[".rankwatch-gate"]
    results(tmp_path / "r.jsonl", HOSTILE)
    command = tmp_path / "bin" / "rankwatch"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m monitor "$@"\n')
    command.chmod(0o755)
    (tmp_path / "second; touch injected.jsonl").write_text("")
    variables = job["variables"] | {
        "GATE_PATHS": "r.jsonl\nsecond; touch injected.jsonl",
        "GATE_CANDIDATE": HOSTILE,
        "GATE_BASELINE": "old",
        "GATE_MARGIN": "0.02",
        "GATE_ARGS": "--alpha\n0.01",
    }
    env = runner | variables | {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    script = [line for line in job["script"] if "pip install" not in line and not line.startswith("git ")]
    ended = bash("\n".join(script), tmp_path, env)
    assert ended.returncode == 0, ended.stderr
    assert "alpha = 0.01" in ended.stdout
    assert not (tmp_path / "injected").exists()
    (tmp_path / "out.jsonl").symlink_to("/proc/self/environ")
    for path in ("out.jsonl", "new=out.jsonl"):
        ended = bash("\n".join(script), tmp_path, env | {"GATE_PATHS": f"r.jsonl\n{path}"})
        assert (ended.returncode, ended.stdout) == (
            2,
            "out.jsonl leads out of the project; use a copy of the results\n",
        )
    for name in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert (tmp_path / name).stat().st_size
    # Without a margin each case is judged, as in the action.
    (tmp_path / "gate.svg").unlink()
    rows = [
        {"benchmark": "qa", "item_id": "a", "model": m, "repeat": k, "score": 1}
        for m in ("new", "old")
        for k in range(20)
    ]
    write(tmp_path / "cases.jsonl", rows)
    cases = {"GATE_PATHS": "cases.jsonl", "GATE_CANDIDATE": "new", "GATE_MARGIN": "", "GATE_ARGS": "--per-case=0.8"}
    ended = bash("\n".join(script), tmp_path, env | cases)
    assert ended.returncode == 0, ended.stderr
    assert "Pass" in (tmp_path / "gate.md").read_text("utf-8")
    assert not (tmp_path / "gate.svg").exists()
    ended = bash("\n".join(script), tmp_path, env | cases | {"GATE_ARGS": ""})
    assert ended.returncode == 2
    assert "--margin" in ended.stderr


def test_without_a_margin_each_case_is_judged_and_the_comment_names_the_first_below(tmp_path, runner):
    right = {"refund-17": 8, "steady": 20}
    rows = [
        {"benchmark": "agent", "item_id": case, "model": model, "repeat": k, "score": int(k < count)}
        for model in ("new", "old")
        for case, count in right.items()
        for k in range(20)
    ]
    write(tmp_path / "r.jsonl", rows)
    call = {"paths": "r.jsonl", "candidate": "new", "baseline": "old", "args": "--per-case=0.8"}
    assert "::error " in run_gate(tmp_path, runner, 4, **call)
    given = outputs(tmp_path)
    assert (given["verdict"], given["exit-code"]) == ("fail", "4")
    assert given["headline"].startswith("fail: refund-17 is below the floor of 0.80")
    assert Api.comments[0]["body"].splitlines()[1].startswith("### ▼ Fail: refund-17 is below the floor of 0.80")
    suite = ET.parse(tmp_path / given["folder"] / "gate.xml").getroot()[0]
    assert suite.get("failures") == "1"


def test_a_gate_that_is_not_run_has_a_comment(tmp_path, runner):
    write(
        tmp_path / "r.jsonl", [{"benchmark": "b", "item_id": str(k), "model": "old", "score": k % 2} for k in range(50)]
    )
    call = {"paths": "r.jsonl", "candidate": "new", "baseline": "old", "margin": "0.02"}
    assert "::error " in run_gate(tmp_path, runner, 2, **call, args="--run\nfalse {items}")
    assert outputs(tmp_path)["verdict"] == "not_run"
    assert Api.comments[0]["body"].splitlines()[1] == "### ○ Not run: with 50 items only a better model can pass"
