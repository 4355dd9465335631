"""`gate --replay ARCHIVE`: what a gate would have answered on past runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from monitor.cli.gates.checks import absolute_margin, one_benchmark
from monitor.cli.gates.margins import check_prices
from monitor.cli.gates.options import GateFormat
from monitor.cli.shared.declared.flags import parse_flags
from monitor.cli.shared.declared.values import name_hint
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import read_runs, refuse_copies
from monitor.cli.shared.options import DeclareOptions, ScoreOptions
from monitor.files.dated_runs import DatedRuns
from monitor.files.streams.paths import show
from monitor.render import markdown
from monitor.render.gates import replay as render
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.tables import group
from monitor.view.gates.replay import PastRun, replay
from schemas.records.names import natural
from schemas.records.run_names import date_in
from schemas.records.text import shorten
from schemas.results.gate_replay import Replay

_FORMATS = (GateFormat.text, GateFormat.json, GateFormat.markdown, GateFormat.html)


def replay_gate(
    archive: Path,
    logs: ScoreOptions,
    declared: DeclareOptions,
    margin: str | None,
    candidates: Sequence[str],
    baseline: str | None,
    benchmarks: Sequence[str],
    form: GateFormat,
    max_rejected: float,
    prices: Mapping[str, float] | None,
    named: Sequence[str],
    *,
    equal_runs: bool,
) -> NoReturn:
    """Print how a gate answers on each run of an archive; exit with 0."""
    size = absolute_margin("--replay", margin)
    baseline = _check_call(archive, baseline, form)
    flags = parse_flags(declared)
    if others := sorted(set(flags.values) - {"alpha"}):
        stop(f"--replay: takes --alpha of a declaration; omit --{others[0]}", USAGE)

    def name(file: str) -> str:
        """Return the run of a file: the folder in the archive that it is in, else the date in its name, else its name."""
        path, folder = Path(file).resolve(), archive.resolve()
        inside = path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)
        return inside.parts[0] if len(inside.parts) > 1 else date_in(inside.name) or inside.name.split(".")[0]

    read = read_runs([str(archive)], logs, max_rejected, DatedRuns(name, by_file=True), models=True)
    found = read.sentinels()
    benchmark = one_benchmark("--replay", benchmarks, sorted({of for of, _ in found}, key=natural))
    models = {model: runs for (of, model), (runs, _) in found.items() if of == benchmark}
    for model in (baseline, *candidates):
        if model not in models:
            stop(f"{show(model)} has no results; {name_hint([model], models, 'the archive has')}", USAGE)
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for model, of in models.items():
        refuse_copies(read, of, equal_runs=equal_runs)
        for run in of:
            if scores := run.means():
                runs.setdefault(run.name, {})[model] = scores
    past = [PastRun(each, runs[each]) for each in sorted(runs, key=natural)]
    if baseline in candidates:
        stop(f"{show(baseline)} is the baseline and a candidate; name two different models", USAGE)
    alpha = flags.of(benchmark).get("alpha", read.alphas.get(benchmark, 0.05))
    # Several candidates share alpha, as in a gate.
    judged = [*candidates] or sorted({model for run in runs.values() for model in run} - {baseline}, key=natural)
    check_prices(prices, named, judged, baseline)
    made = replay(benchmark, baseline, candidates, past, size, alpha / max(1, len(set(candidates))), prices)
    made = msgspec.structs.replace(made, equal_runs=equal_runs)
    if not made.runs:
        stop(
            f"no run of the archive has both {shorten(baseline)} and a candidate; put the files of both into one folder"
        )
    _print(made, form)
    raise SystemExit(0)


def _check_call(archive: Path, baseline: str | None, form: GateFormat) -> str:
    """Return the baseline; a wrong call ends the command."""
    if form not in _FORMATS:
        stop(f"--replay: is written as {', '.join(each.value for each in _FORMATS)}; omit --format {form.value}", USAGE)
    if baseline is None:
        stop("--replay: name the models with --pair A B, or the baseline with --baseline B", USAGE)
    if not archive.is_dir():
        stop(f"--replay {show(str(archive))}: give a folder; each folder or file in it is one past run", USAGE)
    return baseline


def _print(made: Replay, form: GateFormat) -> None:
    if form is GateFormat.json:
        print(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
    elif form is GateFormat.text:
        output_console().print(group(render.document(made)))
    else:
        print(render.as_html(made) if form is GateFormat.html else markdown.write(render.document(made)), end="")
