"""What a command loads before it can answer: start-up time without a clock."""

import subprocess
import sys

import pytest

EVENTS = "".join(f'{{"benchmark":"b","item_id":"{i}","model":"m{i % 2}","score":{i % 3 > 0:d}}}\n' for i in range(8))


def loaded(*arguments):
    """Names of the modules that are loaded when a command ends."""
    code = (
        "import sys\nfrom monitor.cli import main\nsys.argv[0] = 'rankwatch'\n"
        "try: main()\nfinally: print('loaded', *sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(ended.stderr.rpartition("loaded ")[2].split())


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(EVENTS)
    return str(path)


def test_help_loads_nothing_that_only_commands_need():
    assert not loaded("--help") & {
        "numpy",
        "asyncio",
        "fastapi",
        "faust",
        "redis",
        "monitor.engine",
        "monitor.settings",
        "rich",
        "pydantic",
        "typer.rich_utils",
        "tomllib",
    }


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_report_loads_no_server(form, results):
    modules = loaded("report", results, "--format", form)
    assert "monitor.view.build" in modules
    assert not modules & {
        "monitor.service",
        "fastapi",
        "uvicorn",
        "faust",
        "aiokafka",
        "redis",
        "structlog",
        "scipy.special",
        "asyncio",
        "pydantic_settings",
        "tomllib",
        "monitor.cli.watch",
    }
