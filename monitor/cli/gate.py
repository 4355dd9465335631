"""`rankwatch gate`: compare two models; the exit code is the verdict."""

from enum import StrEnum
from typing import Annotated

import typer

from monitor.cli.shared.options import (
    DeclareOptions,
    EpochOption,
    InheritOption,
    MaxRejectedOption,
    Paths,
    ScoreOptions,
    option,
)


class GateFormat(StrEnum):
    """How the verdict is written."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


def gate(
    paths: Paths,
    pair: Annotated[tuple[str, str], option("--pair", "the two models", metavar="A B")],
    declared: DeclareOptions,
    logs: ScoreOptions,
    benchmark: Annotated[
        str | None, option("--benchmark", "benchmark to compare on, if several have both models")
    ] = None,
    form: Annotated[
        GateFormat, typer.Option("--format", help="text, json, a JUnit file, or a GitHub annotation")
    ] = GateFormat.text,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    max_rejected: MaxRejectedOption = 0.1,
) -> None:
    """Compare two models; the exit code is the verdict.

    Exit 0: decided for A. 4: decided for B. 3: undecided or held. 1: fault. 2: wrong usage. The verdict is anytime-valid and for this pair
    only, at the declared alpha (default 0.05) and under the declared order policy. Without a declaration, the items in the files are taken
    as the whole benchmark.

    Example: rankwatch gate results/ --pair candidate baseline --format github
    """
    from monitor.cli.shared.epochs import parse_epoch
    from monitor.cli.shared.errors import stop
    from monitor.cli.shared.files import read_results
    from monitor.cli.shared.pairs import choose_pair
    from monitor.render import gate as render
    from monitor.render.flags import named_flags, pair_with_flags
    from monitor.report.build import build_report

    partition = read_results(paths, max_rejected, logs, declared, parse_epoch(epoch, inherit=inherit), inherit=inherit)
    report = build_report([partition], pairs="all", assert_complete=True)
    chosen = choose_pair(report, pair, benchmark)
    if chosen[0].incomplete:
        stop(f"{chosen[0].incomplete}; complete the file, and run the command again")
    if form is not GateFormat.json:
        chosen = named_flags(chosen[0]), pair_with_flags(chosen[1])
    answer = render.answer(*chosen, pair)
    render_answer = {
        GateFormat.text: render.as_text,
        GateFormat.json: render.as_json,
        GateFormat.junit: render.as_junit,
        GateFormat.github: render.as_github,
    }[form]
    print(render_answer(answer))
    raise SystemExit(answer.code)
