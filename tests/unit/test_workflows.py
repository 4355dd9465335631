"""Workflows, templates and hooks are valid, and call make targets that exist."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from deploy.release_notes import notes, versions

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKE = re.compile(r"\bmake ([a-z][a-z -]*)")


def run(*command):
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_job_in_the_docs_names_its_runner():
    blocks = [
        yaml.safe_load(block)
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for block in re.findall(r"^```yaml\n(jobs:.*?|on:.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    assert blocks
    for block in blocks:
        assert {True, "jobs"} <= block.keys()  # YAML reads the key `on` as a truth value
        assert all({"runs-on", "steps"} <= job.keys() for job in block["jobs"].values())


def steps(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "dependabot": [ROOT / ".github" / "dependabot.yml"],
    "github-issue-forms": [ROOT / ".github" / "ISSUE_TEMPLATE" / name for name in ("bug.yml", "feature.yml")],
    "github-issue-config": [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_files_match_their_schema(kind):
    folder = Path(find_spec("check_jsonschema").origin).parent / "builtin_schemas" / "vendor"
    schema = json.loads((folder / f"{kind}.json").read_text("utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    for path in SCHEMAS[kind]:
        loader = yaml.BaseLoader if kind == "citation-file-format" else yaml.SafeLoader
        document = yaml.load(path.read_text("utf-8"), loader)
        if True in document:  # YAML 1.1 reads the key `on` as true
            document["on"] = document.pop(True)
        validator.validate(document)


def test_workflows_hold_no_known_weakness():
    run(BIN / "zizmor", "--offline", "--quiet", "--persona", "auditor", ".github")


RIGHTS = [
    pytest.param(job, id=f"{path.stem}: {name}")
    for path in WORKFLOWS
    for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items()
    if "write" in job.get("permissions", {}).values()
]
INSTALLS = re.compile(r"\b(make|pip|pipx|uvx?|python\d?|npm|npx|mvn|apt-get)\b")


@pytest.mark.parametrize("job", RIGHTS)
def test_a_job_that_may_write_runs_no_package(job):
    assert not [step["run"] for step in job["steps"] if INSTALLS.search(step.get("run", ""))]
    assert not [step["uses"] for step in job["steps"] if step.get("uses", "").startswith("actions/setup-")]


def test_what_is_tested_is_what_is_released_and_proposed():
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    assert set(release["attest"]["needs"]) == {"test", "build"}
    for name in ("packages", "image", "attest-image", "announce"):
        needs = release[name]["needs"]
        assert ({needs} if isinstance(needs, str) else set(needs)) <= {"attest", "image", "packages", "attest-image"}, (
            name
        )
    propose = yaml.safe_load((ROOT / ".github/workflows/dependencies.yml").read_text("utf-8"))["jobs"]["propose"]
    assert set(propose["needs"]) == {"lock", "test"}


def test_hooks_and_yaml_are_valid():
    run(BIN / "pre-commit", "validate-config", ".pre-commit-config.yaml")
    run(BIN / "yamllint", "--strict", ".github", ".pre-commit-config.yaml")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_make_target_exists(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = {word for step in steps(path) for group in MAKE.findall(step.get("run", "")) for word in group.split()}
    assert called
    assert called <= targets


def test_every_supported_python_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    supported = {name.split(" :: ")[-1] for name in project["classifiers"] if "Python :: 3." in name}
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    assert set(ci["jobs"]["test"]["strategy"]["matrix"]["python"]) == supported


def test_the_dev_container_installs_what_ci_installs():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    ci = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    packages = re.search(r"--no-install-recommends \\\n\s+(.+)\n", ci)[1].split()
    assert set(packages) <= set(container["onCreateCommand"].split())


def test_all_files_name_one_version():
    assert len(set(versions().values())) == 1


def test_release_notes(tmp_path):
    for name in ("pyproject.toml", "clients/python/pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.0\n\n- New.\n\n## 1.1.0\n\n- Old.\n")
    assert notes("v1.2.0", tmp_path) == "- New.\n"
    with pytest.raises(SystemExit, match=r"pyproject.toml names 1.2.0.*no section 1.3.0"):
        notes("v1.3.0", tmp_path)
