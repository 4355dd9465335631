"""The action and the GitLab template: valid, and their steps run here as a runner runs them."""

import json
import os
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
HOSTILE = 'x"; touch injected; $(touch injected) `touch injected` ::error::%0A<script>|@you'


@pytest.mark.parametrize(("kind", "path"), [("github-actions", "action.yml"), ("gitlab-ci", "deploy/gate/gitlab.yml")])
def test_the_files_match_their_schema(kind, path):
    folder = Path(find_spec("check_jsonschema").origin).parent / "builtin_schemas" / "vendor"
    schema = json.loads((folder / f"{kind}.json").read_text("utf-8"))
    jsonschema.validators.validator_for(schema)(schema).validate(yaml.safe_load((ROOT / path).read_text("utf-8")))


def test_no_input_is_pasted_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
    assert set(ACTION["runs"]["steps"][1]["env"].values()) == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}


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
    step = ACTION["runs"]["steps"][1]
    values = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | {
        "token": "secret",
        **inputs,
    }
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
    assert summary.startswith("### ✓ pass: ")
    assert "<script>" not in summary.replace("\\<", "")
    folder = tmp_path / given["folder"]
    assert ET.parse(folder / "gate.xml").getroot()[0].get("failures") == "0"
    ET.parse(folder / "gate.svg")
    assert [method for method, _ in Api.calls] == ["GET", "POST"]
    results(tmp_path / "r.jsonl", HOSTILE, lost=60)
    assert "::error " in run_gate(tmp_path, runner, 4, **call)
    assert [method for method, _ in Api.calls] == ["GET", "POST", "GET", "PATCH"]
    (only,) = Api.comments
    assert "✗ fail: " in only["body"]


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
        "GATE_ARGS": "--alpha\n0.01",
    }
    env = runner | variables | {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    install, *script = job["script"]
    assert install == 'python -m pip install --quiet "$GATE_PACKAGE"'
    ended = bash("\n".join(script), tmp_path, env)
    assert ended.returncode == 0, ended.stderr
    assert "alpha = 0.01" in ended.stdout
    assert not (tmp_path / "injected").exists()
    for name in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert (tmp_path / name).stat().st_size
