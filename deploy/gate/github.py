"""Run `rankwatch gate` in a job of GitHub: summary, annotation, outputs and JUnit; or, in another job, write a comment that is updated in place.

The job of the gate runs installed packages on results of a pull request, so it has no token. That of the comment has one, and runs this file
alone, with the standard library.

Everything comes from the environment (`action.yml` sets it), so no name of a model can become a part of a command or of the workflow.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OUTPUTS = {
    "json": "gate.json",
    "junit": "gate.xml",
    "markdown": "gate.md",
    "svg": "gate.svg",
}
LONGEST_COMMENT = 60_000
"""Characters; the API takes 65,536."""
PAGES = 10
"""Pages of 100 comments that are searched for the one of the gate."""


def main(env: Mapping[str, str]) -> int:
    """Run the gate, publish its verdict, and return its exit code."""
    named = [*lines(env["GATE_PATHS"]), *lines(env.get("GATE_ARGS", "")), str(report_folder(env))]
    if (outside := next(filter(None, (leads_out(env, path) for path in named)), None)) is not None:
        print(annotation("error", f"{outside} links out of the workspace; use a copy of what it leads to"), flush=True)
        return 2
    folder = report_folder(env)
    folder.mkdir(parents=True, exist_ok=True)
    for name in OUTPUTS.values():
        (folder / name).unlink(missing_ok=True)
    ended = subprocess.run(command(env, folder), check=False)  # noqa: S603 - a list of arguments, without a shell
    report = folder / "gate.json"
    if not report.exists():
        print(
            annotation("error", f"rankwatch gate gave no verdict (exit code {ended.returncode}); see the log"),
            flush=True,
        )
        return ended.returncode or 1
    verdict = json.loads(report.read_text("utf-8"))
    summary = (folder / "gate.md").read_text("utf-8")
    append(env.get("GITHUB_STEP_SUMMARY"), summary)
    outputs = {
        "verdict": verdict["verdict"],
        "headline": verdict["headline"],
        "exit-code": str(ended.returncode),
        "folder": str(folder),
    }
    append(env.get("GITHUB_OUTPUT"), "".join(output(name, value) for name, value in outputs.items()))
    return ended.returncode


def write_comment(env: Mapping[str, str]) -> int:
    """Write the summary of a gate as a comment of its pull request, if it has one."""
    if (number := pull_request(env)) is None:
        return 0
    try:
        with (report_folder(env) / "gate.md").open(encoding="utf-8") as file:
            summary = file.read(LONGEST_COMMENT)
        comment(env, number, f"{marker(env)}\n{summary}")
    except (urllib.error.URLError, OSError, ValueError) as error:
        advice = "give the job the permission pull-requests: write, and the folder of the gate"
        print(annotation("warning", f"the comment was not written ({error}); {advice}"))
    return 0


def report_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the report."""
    return Path(env.get("GATE_FOLDER") or "rankwatch-gate-report")


def leads_out(env: Mapping[str, str], path: str) -> str | None:
    """Return a path in the workspace that a link leads out of it: a pull request may hold any link. NAME=PATH and --flag=PATH name one too."""
    top = Path(env.get("GITHUB_WORKSPACE") or ".").resolve()
    while True:
        inside = Path(os.path.abspath(path)).is_relative_to(top)  # noqa: PTH100 - `resolve` follows the links
        if inside and not Path(path).resolve().is_relative_to(top):
            return path
        _, equals, path = path.partition("=")
        if not equals:
            return None


def command(env: Mapping[str, str], folder: Path) -> list[str]:
    """Return the call of `rankwatch gate`."""
    paths = lines(env["GATE_PATHS"])
    # The log holds one line of the gate, an annotation: a name at the start of a line could be a command of the workflow.
    call = [
        sys.executable,
        "-I",  # nothing of the workspace is imported
        "-m",
        "monitor",
        "gate",
        "--format=github",
        "--pair",
        env["GATE_CANDIDATE"],
        env["GATE_BASELINE"],
    ]
    margin = env.get("GATE_MARGIN")
    call += [f"--margin={margin}"] * bool(margin) + [f"--on-undecided={env.get('GATE_ON_UNDECIDED') or 'wait'}"]
    # Without a margin each case is judged, which has no figure.
    call += [f"--write={form}={folder / name}" for form, name in OUTPUTS.items() if margin or form != "svg"]
    return [*call, *lines(env.get("GATE_ARGS", "")), "--", *paths]


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def annotation(level: str, text: str) -> str:
    """Write a workflow command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title=rankwatch gate::{escaped}"


def append(path: str | None, text: str) -> None:
    """Append to a file of the job."""
    if path:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - a path from the environment
            file.write(text)


def output(name: str, value: str) -> str:
    """Write an output whose value cannot end it or begin another."""
    end = secrets.token_hex(16)
    return f"{name}<<{end}\n{value}\n{end}\n"


# --- the comment ----------------------------------------------------------------------------------------------------------------------


def marker(env: Mapping[str, str]) -> str:
    """Return the first line of the comment of this gate: one comment for each workflow, job and pair."""
    key = "/".join(env.get(name, "") for name in ("GITHUB_WORKFLOW", "GITHUB_JOB", "GATE_CANDIDATE", "GATE_BASELINE"))
    return f"<!-- rankwatch-gate {re.sub('[^A-Za-z0-9]', lambda match: f'_{ord(match[0]):x}_', key)} -->"


def pull_request(env: Mapping[str, str]) -> int | None:
    """Return the number of the pull request of the event, if it has one."""
    path = env.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).exists():
        return None
    event = json.loads(Path(path).read_text("utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def comment(env: Mapping[str, str], number: int, body: str) -> None:
    """Write the comment, or update the one that is there."""
    issue = f"/repos/{env['GITHUB_REPOSITORY']}/issues"
    first = body.splitlines()[0]
    for page in range(1, PAGES + 1):
        found = request(env, "GET", f"{issue}/{number}/comments?per_page=100&page={page}")
        for each in found:
            # A person may have copied the marker: only a comment of a bot is updated.
            if str(each.get("body", "")).splitlines()[:1] == [first] and (each.get("user") or {}).get("type") == "Bot":
                request(env, "PATCH", f"{issue}/comments/{int(each['id'])}", {"body": body})
                return
        if len(found) < 100:
            break
    request(env, "POST", f"{issue}/{number}/comments", {"body": body})


def request(env: Mapping[str, str], method: str, path: str, body: object = None) -> Any:
    """Call the API, and return what it answers."""
    call = urllib.request.Request(  # noqa: S310 - the address is GitHub's own
        env.get("GITHUB_API_URL", "https://api.github.com") + path,
        None if body is None else json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {env.get('GATE_TOKEN', '')}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(call, timeout=30) as answer:  # noqa: S310 - same
        return json.load(answer)


if __name__ == "__main__":
    raise SystemExit(write_comment(os.environ) if sys.argv[1:] == ["comment"] else main(os.environ))
