"""The options that say how logs are read, the same for every command that reads files."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from monitor.cli.errors import USAGE, stop

if TYPE_CHECKING:
    from monitor.ingest.importer import Importer

_TASKS: Final = "NAME | TASK=NAME"


def _option(flag: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - what typer gives
    return typer.Option(flag, metavar=metavar, help=text, show_default=False, rich_help_panel="Logs")


MetricOption = Annotated[
    list[str] | None,
    _option("--metric", _TASKS, "lm-eval: the metric that counts; NAME:lower counts 1 - its value"),
]
FilterOption = Annotated[
    list[str] | None, _option("--filter", _TASKS, "lm-eval: the filter that counts  \\[default: the first]")
]
ScorerOption = Annotated[
    list[str] | None,
    _option(
        "--scorer",
        _TASKS,
        "Inspect: the scorer that counts, SCORER.KEY if it gives several values  \\[default: the first]",
    ),
]
ClusterOption = Annotated[
    str | None,
    _option(
        "--cluster",
        "FIELD",
        "the field of a document, sample or table that names the cluster; none for no clusters",
    ),
]
BenchmarkOption = Annotated[
    str | None,
    _option("--benchmark", "NAME", "the benchmark's name, instead of the task's, or where a table has none"),
]
ColumnsOption = Annotated[
    list[str] | None,
    _option(
        "--columns",
        "FIELD=COLUMN,...",
        "which columns of a table or fields of JSON lines are model, item_id, score, ...; models=* for a column a model",
    ),
]


class Logs(NamedTuple):
    """What was given for these options."""

    metric: list[str] | None = None
    filters: list[str] | None = None
    scorer: list[str] | None = None
    cluster: str | None = None
    benchmark: str | None = None
    columns: list[str] | None = None


def importer(logs: Logs, declare: Callable[[str], dict[str, Any] | None] | None = None) -> "Importer":
    """Return the importer for these options; a wrong one ends the command.

    Parameters
    ----------
    logs : Logs
    declare : callable, optional
        What the command line declares of a benchmark: that counts, and not what a log says of its item count.
    """
    from monitor.ingest.formats.choices import ChoiceError, Choices
    from monitor.ingest.importer import Importer

    try:
        choices = Choices.parse(
            metric=logs.metric or (),
            filter=logs.filters or (),
            scorer=logs.scorer or (),
            cluster=logs.cluster,
            benchmark=logs.benchmark,
            columns=logs.columns or (),
            declared=lambda benchmark: declare is not None and declare(benchmark) is not None,
        )
    except ChoiceError as error:
        stop(str(error), USAGE)
    return Importer(choices, _tell)


def _tell(text: str) -> None:
    # One write a line: files are read in several threads, and a line must not break into another.
    print(f"rankwatch: {text}\n", end="", file=sys.stderr)
