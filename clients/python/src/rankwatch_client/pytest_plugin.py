"""A pytest plugin: score parametrised tests, and fail if the suite is worse than its baseline.

    @pytest.mark.rankwatch(margin=0.05)
    @pytest.mark.parametrize("case", CASES)
    def test_answers(case, rankwatch):
        rankwatch.score(grade(case))

A marked test is an item with a score in [0, 1]: what it gives to `rankwatch.score`, or 1 if it passes and 0 if an assertion fails. A failed
assertion is a score, not a failure; any other exception is a failure, and leaves the item without a score. After the last test comes one
more for each benchmark: not worse than the baseline by more than the margin.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Literal, Optional  # noqa: UP035 - Python 3.9

import pytest

from rankwatch_client.margin import Verdict, compare

_PROPERTY = "rankwatch"
_CHOICES = ("pass", "fail", "skip")
_MOST = 200
Outcome = Literal["passed", "failed", "skipped"]
_OUTCOMES: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class Item:
    """What a marked test gives its score to."""

    def __init__(self) -> None:
        self.value: float | None = None

    def score(self, value: float) -> None:
        """Give the score of this item, a number in [0, 1]; the last call counts."""
        self.value = _in_range(float(value))


@pytest.fixture
def rankwatch(request: pytest.FixtureRequest) -> Item:
    """Take the score of a marked test."""
    if request.node.get_closest_marker("rankwatch") is None:
        raise pytest.UsageError(
            f"{request.node.nodeid} uses the fixture rankwatch; mark it with @pytest.mark.rankwatch(margin=0.05)"
        )
    item: Item = request.node.stash[_ITEM]
    return item


_ITEM = pytest.StashKey[Item]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("rankwatch")
    group.addoption("--rankwatch-update", action="store_true", help="accept the scores of this run as the baseline")
    group.addoption(
        "--rankwatch-baseline", metavar="FILE", help="file of the baseline  [default: rankwatch-baseline.jsonl]"
    )
    group.addoption(
        "--rankwatch-scores", metavar="FILE", help="write the scores of this run, as events that `rankwatch` reads"
    )
    parser.addini(
        "rankwatch_baseline",
        "file of the baseline, relative to the root of the tests",
        default="rankwatch-baseline.jsonl",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what collects the scores."""
    config.addinivalue_line(
        "markers",
        "rankwatch(margin=0.05, benchmark=None, alpha=0.05, on_undecided='skip'): an item of a benchmark to compare with its baseline",
    )
    config.pluginmanager.register(Suite(config), "rankwatch-suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse markers that cannot be right before anything runs."""
    for item in items:
        mark = item.get_closest_marker("rankwatch")
        if mark is not None:
            _question(item, mark)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the place of a marked test's score."""
    item.stash[_ITEM] = Item()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Turn the result of a marked test into a score."""
    outcome = yield
    mark = item.get_closest_marker("rankwatch")
    if mark is None:
        return
    report = outcome.get_result()
    question = _question(item, mark)
    if call.when == "setup" and call.excinfo is not None:
        report.user_properties.append((_PROPERTY, {**question, "score": None}))
    if call.when != "call":
        return
    score = item.stash[_ITEM].value
    if call.excinfo is None:
        score = 1.0 if score is None else score
    elif call.excinfo.errisinstance(AssertionError):
        score = 0.0 if score is None else score
        report.outcome, report.wasxfail = "skipped", f"rankwatch: score {score:g}"
    else:
        score = None
    report.user_properties.append((_PROPERTY, {**question, "score": score}))


def _question(item: pytest.Item, mark: pytest.Mark) -> dict[str, Any]:
    """Return the benchmark, the item and the arguments of a marker."""
    given = dict(mark.kwargs)
    margin, alpha = given.pop("margin", 0.05), given.pop("alpha", 0.05)
    benchmark, on_undecided = given.pop("benchmark", None), given.pop("on_undecided", "skip")
    if given or mark.args:
        raise pytest.UsageError(f"{item.nodeid}: rankwatch takes margin, benchmark, alpha and on_undecided, by name")
    if not (0 < margin < 1 and 0 < alpha < 0.5 and on_undecided in _CHOICES):
        raise pytest.UsageError(
            f"{item.nodeid}: use a margin between 0 and 1, an alpha below 0.5, and pass, fail or skip for on_undecided"
        )
    name = benchmark or item.nodeid.partition("[")[0]
    return {
        "benchmark": _short(str(name)),
        "item_id": _short(item.nodeid),
        "margin": margin,
        "alpha": alpha,
        "on_undecided": on_undecided,
    }


def _short(name: str) -> str:
    """Return a name of at most 200 printable characters, distinct for distinct names."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    if text == name and len(name) <= _MOST:
        return name
    return f"{text[: _MOST - 17]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


Scores = Dict[str, Dict[str, Optional[float]]]  # noqa: UP006, UP045 - evaluated, on Python 3.9 too


class Suite:
    """Collects the scores of a run, also those of the workers of pytest-xdist, and judges them after the last test."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker = hasattr(config, "workerinput")
        self.scores: Scores = {}
        self.questions: dict[str, dict[str, Any]] = {}
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the score of a test."""
        for name, value in report.user_properties:
            if name == _PROPERTY and isinstance(value, dict):
                asked = {key: value[key] for key in ("margin", "alpha", "on_undecided")}
                benchmark = value["benchmark"]
                if self.questions.setdefault(benchmark, asked) != asked:
                    self.lines.append(
                        f"{benchmark}: the markers differ; the first one counts ({self.questions[benchmark]})"
                    )
                self._keep(benchmark, value["item_id"], value["score"])

    def _keep(self, benchmark: str, item: str, score: float | None) -> None:
        """Keep the first score of an item: one that ran again until it was right would count as right."""
        scores = self.scores.setdefault(benchmark, {})
        known = scores.get(item)
        if known is None:
            scores[item] = score
        elif score is not None and score != known:
            self.lines.append(f"{item} ran again with another score; the first one counts ({known:g})")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge each benchmark, as a test of its own."""
        if self.worker or not self.scores:
            return
        try:
            if target := self.config.getoption("--rankwatch-scores"):
                _write(self._path(target), self.scores, "candidate")
            # What ran before a stop is no sample: it may have stopped because of the scores.
            if exitstatus == pytest.ExitCode.INTERRUPTED or session.shouldstop or session.shouldfail:
                self.lines.append("the run broke off: no verdict, and the baseline is unchanged")
                return
            self._finish(session)
        except OSError as error:
            self._log(session, "baseline", "failed", f"{error.filename}: {error.strerror}; check the path")
        except ValueError as error:
            self._log(session, "baseline", "failed", str(error))

    def _finish(self, session: pytest.Session) -> None:
        """Accept the scores as the baseline, or judge them."""
        file = self._path(self.config.getoption("--rankwatch-baseline") or self.config.getini("rankwatch_baseline"))
        baseline = _read(file)
        if self.config.getoption("--rankwatch-update"):
            self._update(file, baseline)
            return
        for benchmark, scores in self.scores.items():
            self._judge(session, benchmark, scores, baseline.get(benchmark), file)

    def _path(self, name: str) -> Path:
        return self.config.rootpath / name

    def _update(self, file: Path, baseline: Scores) -> None:
        merged = {name: dict(items) for name, items in baseline.items()}
        count = 0
        for benchmark, scores in self.scores.items():
            accepted = {item: score for item, score in scores.items() if score is not None}
            merged.setdefault(benchmark, {}).update(accepted)
            count += len(accepted)
        _write(file, merged, "baseline")
        self.lines.append(f"{file}: {count} scores of this run are the baseline")

    def _judge(
        self,
        session: pytest.Session,
        benchmark: str,
        scores: dict[str, float | None],
        baseline: dict[str, float | None] | None,
        file: Path,
    ) -> None:
        if baseline is None:
            text = f"no baseline in {file}; run once with --rankwatch-update"
            self.lines.append(f"{benchmark}: {text}")
            self._log(session, benchmark, "skipped", text)
            return
        asked = self.questions[benchmark]
        known = [(item, score) for item, score in scores.items() if baseline.get(item) is not None]
        pairs: list[tuple[float, float]] = [
            (score, baseline[item] or 0.0) for item, score in known if score is not None
        ]
        missing = len(known) - len(pairs)
        found = compare([x for x, _ in pairs], [y for _, y in pairs], asked["margin"], asked["alpha"], missing)
        new, gone = len(scores) - len(known), len(baseline.keys() - scores.keys())
        text = _sentence(benchmark, found, asked["margin"], new, gone)
        self.lines.append(text)
        word = asked["on_undecided"] if found.verdict == "undecided" else found.verdict
        self._log(session, benchmark, _OUTCOMES[word], text)

    def _log(self, session: pytest.Session, benchmark: str, outcome: Outcome, text: str) -> None:
        """Report a test that ran after all others."""
        nodeid = f"rankwatch::{benchmark} not worse than baseline"
        longrepr: Any = (
            None if outcome == "passed" else text if outcome == "failed" else (nodeid, 0, f"Skipped: {text}")
        )
        phases: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
        for when in phases:
            mine: Outcome = outcome if when == "call" else "passed"
            shown = longrepr if when == "call" else None
            report = pytest.TestReport(nodeid, (nodeid, 0, nodeid), {}, mine, shown, when)
            self.config.hook.pytest_runtest_logreport(report=report)
        self.config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=(nodeid, 0, nodeid))
        if outcome == "failed":
            session.testsfailed += 1
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the verdicts."""
        if self.lines:
            terminalreporter.section("rankwatch")
            for line in dict.fromkeys(self.lines):
                terminalreporter.line(line)


def _sentence(benchmark: str, found: Verdict, margin: float, new: int, gone: int) -> str:
    p = found.p_worse if found.verdict == "fail" else found.p_not_worse
    counted = f"gap {100 * found.gap:+.2f} points on {found.shared} items, p = {p:.3g}"
    parts = [
        {
            "pass": f"not worse than the baseline by more than {100 * margin:g} points",
            "fail": "worse than the baseline",
            "undecided": f"undecided: neither shown to be not worse by more than {100 * margin:g} points, nor to be worse",
        }[found.verdict],
        counted,
    ]
    if found.verdict == "undecided":
        enough = math.isfinite(found.needed)
        parts.append(
            f"it takes about {math.ceil(found.needed)} items"
            if enough
            else "more items like these would not make it pass"
        )
    if found.missing:
        parts.append(f"{found.missing} without a score count as lost")
    if new:
        parts.append(f"{new} not in the baseline (--rankwatch-update adds them)")
    if gone:
        parts.append(f"{gone} of the baseline did not run and {'does' if gone == 1 else 'do'} not count")
    return f"{benchmark}: {'; '.join(parts)}"


# --- the file -------------------------------------------------------------------------------------------------------------------------


def _read(file: Path) -> Scores:
    """Return the scores of a baseline; nothing if there is no file.

    Raises
    ------
    ValueError
        If a line cannot be read.
    """
    scores: Scores = {}
    if not file.exists():
        return scores
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            event = json.loads(line)
            scores.setdefault(event["benchmark"], {})[event["item_id"]] = _in_range(float(event["score"]))
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{file}:{number}: no score can be read; restore the file, or delete it and run with --rankwatch-update"
            ) from None
    return scores


def _in_range(score: float) -> float:
    if not 0 <= score <= 1:
        raise ValueError(f"score {score!r} is out of range; use a number from 0 to 1, true or false")
    return score


def _write(file: Path, scores: Scores, model: str) -> None:
    """Write scores as events, one a line, sorted so that a difference is easy to read; a crash leaves the old file."""
    lines = [
        json.dumps({"benchmark": benchmark, "item_id": item, "model": model, "score": score}, ensure_ascii=False)
        for benchmark, items in sorted(scores.items())
        for item, score in sorted(items.items())
    ]
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise OSError(error.errno, error.strerror, str(file)) from None
