"""`rankwatch gate`: one pair, one question, an exit code; for the end of an evaluation job."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.importing import Logs
from monitor.cli.report import read_results
from monitor.ingest.files.paths import show

if TYPE_CHECKING:
    from schemas.report import BenchmarkReport, PairReport, Report

FOR_A, OPEN, FOR_B = 0, 3, 4
"""Exit codes: decided for A, undecided or held, decided for B (1 and 2 are faults and usage, as everywhere)."""


@dataclass(frozen=True)
class Answer:
    """What the gate says of the pair (model_a, model_b), in the order in which they were asked for."""

    benchmark: str
    model_a: str
    model_b: str
    code: int
    headline: str
    details: tuple[str, ...]
    pair: "PairReport"

    @property
    def text(self) -> str:
        """Headline and details, a line each."""
        return "\n".join((self.headline, *(f"  {line}" for line in self.details)))


def run(
    paths: Sequence[Path], models: tuple[str, str], benchmark: str | None, form: str, max_rejected: float, logs: Logs
) -> None:
    """Read the files, answer for the pair, and exit with the answer."""
    if models[0] == models[1]:
        stop(f"--pair names {show(models[0])} twice: name two different models", USAGE)
    partition = read_results(paths, max_rejected, logs)
    from monitor.report.build import build_report

    report = build_report([partition], pairs="all", assert_complete=True)
    found = answer(_choose(report, models, benchmark), models)
    print({"text": _text, "json": _json, "junit": _junit, "github": _github}[form](found))
    raise SystemExit(found.code)


def _choose(report: "Report", models: tuple[str, str], wanted: str | None) -> "BenchmarkReport":
    """Find the one benchmark that is meant; the pair must be in it."""
    benchmarks = {b.benchmark: b for b in report.benchmarks}
    if wanted is not None and wanted not in benchmarks:
        stop(f"--benchmark {show(wanted)}: there is no such benchmark in the files: {_listed(benchmarks)}", USAGE)
    candidates = [b for b in report.benchmarks if wanted in {None, b.benchmark}]
    holding = [b for b in candidates if {m.model for m in b.models} >= set(models)]
    if len(holding) > 1:
        stop(
            f"{len(holding)} benchmarks hold both models: choose one with --benchmark: {_listed([b.benchmark for b in holding])}",
            USAGE,
        )
    if not holding:
        known = sorted({m.model for b in candidates for m in b.models})
        missing = [model for model in models if model not in known]
        if not missing:
            stop("no benchmark in the files holds both models: give the files of both runs", FAULT)
        hints = [x for model in missing for x in get_close_matches(model, known, 3)] or known
        stop(f"--pair: the files hold no model {_listed(missing)}: did you mean {_listed(hints)}?", USAGE)
    return holding[0]


def _listed(names: Sequence[str] | dict[str, object] | dict[str, "BenchmarkReport"], most: int = 10) -> str:
    shown = [show(name) for name in list(names)[:most]]
    return ", ".join(shown) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def answer(report: "BenchmarkReport", models: tuple[str, str]) -> Answer:
    """Answer for a pair of models, A first, by the procedure `anytime`: alpha for this pair by itself, under the order policy in force."""
    pair = next(p for p in report.pairs if {p.model_a, p.model_b} == set(models))
    swapped = pair.model_a != models[0]
    side = pair.decided.anytime
    better = None if side is None else (pair.model_a if side == "a" else pair.model_b)
    code = OPEN if better is None else FOR_A if better == models[0] else FOR_B
    a, b = (show(model) for model in models)
    where = f"on {show(report.benchmark)}"
    if better is None:
        stopped = "held" if pair.status in {"held", "invalidated"} else "undecided"
        headline = f"{stopped}: no anytime verdict for {a} against {b} {where}"
    else:
        worse = next(model for model in models if model != better)
        headline = f"decided: {show(better)} is better than {show(worse)} {where} (alpha = {report.alpha:g}, this pair by itself)"
    return Answer(report.benchmark, *models, code, headline, tuple(_details(report, pair, swapped=swapped)), pair)


def _details(report: "BenchmarkReport", pair: "PairReport", *, swapped: bool) -> list[str]:
    sign, first, second = (-1, pair.c, pair.b) if swapped else (1, pair.b, pair.c)
    lines = []
    counts = "" if first is None else f", {first:,} right for A alone, {second:,} for B alone"
    lines.append(f"shared items {pair.n:,}{counts}")
    if pair.gap is not None:
        ends = [sign * x for x in (pair.gap_low, pair.gap_high) if x is not None]
        interval = f", anytime-valid interval {100 * min(ends):+.2f} to {100 * max(ends):+.2f}" if ends else ""
        lines.append(f"gap A - B {100 * sign * pair.gap:+.2f} points{interval}")
    if pair.log_e is not None:
        size = f"{exp(pair.log_e):.4g}" if pair.log_e < 700 else "beyond 1e304"
        lines.append(f"e = {size} (ln e {pair.log_e:.3f}) against 1/alpha = {1 / report.alpha:g}")
    if pair.resolution_ratio is not None:
        planned, watched = (
            "large" if enough else "not large" for enough in (pair.resolved.fixed_n, pair.resolved.anytime)
        )
        all_along = "" if pair.resolved.anytime is None else f", {watched} enough to be looked at all along"
        ratio, power = f"{pair.resolution_ratio:.2f}", f"(power {report.power:g})"
        lines.append(f"q = N/N* = {ratio}: {planned} enough for a gap of this size at a planned n {power}{all_along}")
    lines.append(f"order: {report.order.policy}{f' ({show(report.order.reason)})' if report.order.reason else ''}")
    lines.append(show(pair.reason))
    return lines


def _text(found: Answer) -> str:
    return found.text


def _json(found: Answer) -> str:
    verdict = {FOR_A: "a", FOR_B: "b", OPEN: None}[found.code]
    asked = {"benchmark": found.benchmark, "model_a": found.model_a, "model_b": found.model_b}
    # `pair` is the row of the report, which orders the two by rank.
    return json.dumps(
        asked
        | {
            "decided": verdict,
            "exit_code": found.code,
            "headline": found.headline,
            "pair": found.pair.model_dump(mode="json"),
        }
    )


def _xml(text: str) -> str:
    """Quote a text as an XML attribute; characters that XML 1.0 cannot hold are replaced."""
    kept = "".join(c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)
    return quoteattr(kept)


def _junit(found: Answer) -> str:
    name, suite = f"{found.model_a} better than {found.model_b}", f"rankwatch gate {found.benchmark}"
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites><testsuite name={_xml(suite)} tests="1"'
    if found.code == FOR_A:
        return f'{head} failures="0"><testcase classname={_xml(found.benchmark)} name={_xml(name)}/></testsuite></testsuites>'
    failure = f"<failure message={_xml(found.headline)} type={_xml('worse' if found.code == FOR_B else 'open')}>"
    body = _xml(found.text)[1:-1]
    return (
        f'{head} failures="1"><testcase classname={_xml(found.benchmark)} name={_xml(name)}>{failure}{body}</failure></testcase>'
        "</testsuite></testsuites>"
    )


def _github(found: Answer) -> str:
    """Write a workflow command; `%`, line ends and, in its properties, `:` and `,` have to be escaped."""
    level = {FOR_A: "notice", OPEN: "warning", FOR_B: "error"}[found.code]
    text = found.text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    title = f"rankwatch gate {show(found.benchmark)}".replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{text}"
