"""Arguments and options that several commands share."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from monitor.cli.shared.errors import USAGE, stop

# --- choices ------------------------------------------------------------------------------------------------------------------------


class TableFormat(StrEnum):
    """How a command that prints no report writes its output."""

    table = "table"
    json = "json"


class ReportFormat(StrEnum):
    """How a report is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    html = "html"
    parquet = "parquet"
    arrow = "arrow"

    @property
    def is_table_of_pairs(self) -> bool:
        """Whether it has a row for each pair, for programs."""
        return self in {ReportFormat.csv, ReportFormat.parquet, ReportFormat.arrow}

    def pairs(self, chosen: "Pairs | None") -> "Pairs":
        """Return the pairs to list: the chosen ones, or the default of the format."""
        return chosen or (Pairs.all if self is ReportFormat.json or self.is_table_of_pairs else Pairs.adjacent)


class Pairs(StrEnum):
    """Which pairs a report lists."""

    adjacent = "adjacent"
    all = "all"


# --- single options -----------------------------------------------------------------------------------------------------------------


def option(flag: str, text: str, **more: Any) -> Any:  # noqa: ANN401 - what typer takes and returns
    """Declare an option whose help text names its default, if it has one; the command itself checks that a file is readable."""
    return typer.Option(flag, help=text, show_default=False, readable=False, **more)


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="files or folders: events (.jsonl), lm-eval samples, Inspect logs (.eval, .json), tables (.csv, .parquet); - for standard "
        "input, or a URL; read in the order given, a folder by file name; NAME=PATH names the model of a path",
        show_default=False,
        readable=False,  # the reader of the file reports it in its own words
    ),
]
FormatOption = Annotated[
    ReportFormat | None,
    option(
        "--format",
        "table for the terminal; json, csv, parquet and arrow for programs; markdown and html (one file, with figures) for readers  "
        "\\[default: by the name of the output file, else table]",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="write to a file, by its name as .json, .csv, .md, .html, .parquet or .arrow",
        metavar="FILE",
        show_default=False,
    ),
]
TopOption = Annotated[
    int | None,
    option(
        "--top", "models to show in the table; ranks and verdicts are over all  \\[default: 60]", min=1, metavar="N"
    ),
]
TableFormatOption = Annotated[TableFormat, typer.Option("--format", help="table for the terminal, json for programs")]
PairsOption = Annotated[
    Pairs | None,
    option(
        "--pairs",
        "pairs to list  \\[default: none in a table; markdown and html: adjacent; others: all, if they are at most 100,000]",
    ),
]
PriceOption = Annotated[
    list[str] | None,
    option(
        "--price",
        "price of an item for a model, or for all: the goal has what was run and saved in money; may be repeated",
        metavar="PRICE | MODEL=PRICE",
    ),
]
PricesOption = Annotated[
    Path | None,
    option(
        "--prices",
        "table of prices (.csv) with the columns model and price, and tokens of an item if a price is that of a token",
        metavar="FILE",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="add every pair of neighbours with its procedures and reason to the table, and what is assumed",
    ),
]
MAX_REJECTED: Final = "largest share of unreadable lines; the first 20 are always allowed"
MaxRejectedOption = Annotated[float, typer.Option("--max-rejected", min=0, max=1, help=MAX_REJECTED)]
MaxRejectedSetting = Annotated[float | None, typer.Option("--max-rejected", min=0, max=1, help=MAX_REJECTED)]
EpochOption = Annotated[
    str | None,
    option(
        "--epoch",
        "epoch of events that carry none: a number, or next for one above the newest epoch of each model",
        metavar="N | next",
    ),
]
EndedOption = Annotated[
    bool,
    typer.Option("--ended", help="end every run in the files once they are read: no new scores of these runs count"),
]
InheritOption = Annotated[
    bool,
    typer.Option(
        "--inherit",
        help="with --epoch: end each run of a newer epoch once it is read; items that were not scored again keep their scores of the epoch "
        "before",
    ),
]
ConflictsOption = Annotated[
    Path | None,
    option("--conflicts", "write the scores that contradict an earlier one to a file (.csv or .jsonl)", metavar="FILE"),
]
TopicOption = Annotated[str | None, option("--topic", "topic of the events  \\[default: rankwatch.events]")]
DataDirOption = Annotated[Path | None, option("--data-dir", "data directory of `watch`  \\[default: rankwatch-data]")]
HostOption = Annotated[str | None, option("--host", "address to serve on  \\[default: 127.0.0.1]")]
PortOption = Annotated[int | None, option("--port", "port to serve on  \\[default: 8642]", min=0, max=65535)]


# --- groups of options --------------------------------------------------------------------------------------------------------------

_TASKS: Final = "NAME | TASK=NAME"


def _log_option(flag: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - what typer returns
    return option(flag, text, metavar=metavar, rich_help_panel="Logs")


@dataclass(frozen=True)
class ScoreOptions:
    """Where to find the scores in evaluation logs and tables."""

    metric: Annotated[
        list[str] | None, _log_option("--metric", _TASKS, "lm-eval: metric to read; NAME:lower reads 1 - its value")
    ] = None
    filter: Annotated[
        list[str] | None, _log_option("--filter", _TASKS, "lm-eval: filter to read  \\[default: the first]")
    ] = None
    scorer: Annotated[
        list[str] | None,
        _log_option(
            "--scorer",
            _TASKS,
            "Inspect: scorer to read, or SCORER.KEY if it gives several values  \\[default: the first]",
        ),
    ] = None
    split: Annotated[
        list[str] | None, _log_option("--split", _TASKS, "HELM: split of the data to read  \\[default: test]")
    ] = None
    columns: Annotated[
        list[str] | None,
        _log_option(
            "--columns",
            "FIELD=COLUMN,...",
            "columns of a table, or fields of JSON lines, to read as model, item_id, score, ...; models=A|B for one column a model, "
            "models=* for every other column; score=NAME:lower where less is better",
        ),
    ] = None
    scale: Annotated[
        list[str] | None,
        _log_option(
            "--scale",
            "N | LOW:N | NAME=N",
            "largest score, by which every score is divided, for example 100 for percent; LOW:N if the smallest is not 0, for example 1:5",
        ),
    ] = None
    map: Annotated[
        str | None,
        _log_option(
            "--map", "FILE", "mapping of files of any shape, as `rankwatch map` writes it  \\[default: rankwatch.toml]"
        ),
    ] = None
    failed: Annotated[
        str | None,
        _log_option(
            "--failed", "skip | zero", "what items count as whose run failed  \\[default: as in the tool's own result]"
        ),
    ] = None
    swap_rule: Annotated[
        str | None,
        _log_option(
            "--swap-rule",
            "mean | agree",
            "what two judgments of a pair in both orders count: their mean, or a tie unless both agree  \\[default: mean]",
        ),
    ] = None
    follow_symlinks: Annotated[
        bool, typer.Option("--follow-symlinks", help="follow links that lead out of a folder", rich_help_panel="Logs")
    ] = False
    subtasks: Annotated[
        bool,
        typer.Option(
            "--subtasks", help="lm-eval: read each subtask of a group as a benchmark of its own", rich_help_panel="Logs"
        ),
    ] = False


@dataclass(frozen=True)
class LogOptions(ScoreOptions):
    """How to read evaluation logs and tables."""

    cluster: Annotated[
        str | None,
        _log_option(
            "--cluster", "FIELD", "field of a document, sample or table to read as the cluster; none for no clusters"
        ),
    ] = None
    benchmark: Annotated[
        str | None,
        _log_option("--benchmark", "NAME", "name of the benchmark, in place of the task's or for tables without one"),
    ] = None


def _declare_option(flag: str, value: str, text: str) -> Any:  # noqa: ANN401 - what typer returns
    return option(flag, text, metavar=f"{value} | NAME={value}", rich_help_panel="Declaration of benchmarks that begin")


@dataclass(frozen=True)
class DeclareOptions:
    """What to declare of benchmarks that begin: of each of them, or of the one that is named."""

    items: Annotated[
        list[str] | None,
        _declare_option("--items", "N", "item count of the complete benchmark; declares the order policy completion"),
    ] = None
    order: Annotated[
        list[str] | None, _declare_option("--order", "POLICY", "order policy: completion, committed or trusted")
    ] = None
    alpha: Annotated[list[str] | None, _declare_option("--alpha", "ALPHA", "error rate  \\[default: 0.05]")] = None
    scores: Annotated[
        list[str] | None,
        _declare_option("--scores", "KIND", "binary or graded  \\[default: graded if one of the first scores is]"),
    ] = None
    repeats: Annotated[
        list[str] | None,
        _declare_option(
            "--repeats", "R", "repeats of an item whose mean is its score, or all until the run ends  \\[default: 1]"
        ),
    ] = None
    units: Annotated[
        list[str] | None,
        _declare_option(
            "--units",
            "FILE",
            "items that are copies or paraphrases of each other: a table (.csv) with the columns item and unit, or JSON; a unit bets "
            "once, by the mean of its items, and --items counts units",
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        _declare_option(
            "--missing",
            "KIND",
            "worst: missing items count against the leader; ignorable: after the end of both runs they do not count  \\[default: worst]",
        ),
    ] = None
    weights: Annotated[
        list[str] | None,
        _declare_option(
            "--weights",
            "WEIGHTS",
            "what each cluster counts in a score: equal-clusters (macro average), or CLUSTER:WEIGHT between commas  \\[default: every item "
            "counts the same]",
        ),
    ] = None
    clusters: Annotated[
        list[str] | None,
        _declare_option(
            "--clusters",
            "CLUSTER:N,...",
            "with --weights: items of each cluster of the complete benchmark; in place of --items",
        ),
    ] = None
    goal: Annotated[
        list[str] | None,
        _declare_option(
            "--goal",
            "GOAL",
            "question that the results are to answer: best, top:K, ranking, pair:A,B or model:M; ,margin=X accepts gaps up to X; may "
            "change at any time",
        ),
    ] = None
    anchor: Annotated[
        list[str] | None,
        _declare_option(
            "--anchor",
            "MODEL",
            "with battles: the model whose rating is 1000; may change at any time  \\[default: the mean of the models is 1000]",
        ),
    ] = None
    alias: Annotated[
        list[str] | None,
        option(
            "--alias",
            "count the events of model NEW as those of model OLD; in benchmarks that have begun, too",
            metavar="NEW=OLD",
            rich_help_panel="Declaration of benchmarks that begin",
        ),
    ] = None
    family: Annotated[
        list[str] | None,
        _declare_option("--family", "FAMILY", "pairs that share alpha: spending, or capacity:M for M pairs"),
    ] = None
    models: Annotated[
        list[str] | None,
        _declare_option(
            "--models",
            "A,B,C",
            "models whose pairs share alpha equally, in any order of arrival; others get no family-wise verdict",
        ),
    ] = None


SuiteOption = Annotated[
    list[str] | None,
    option(
        "--suite",
        "report benchmarks together as one, ranked by the mean of their scores; MEMBER:WEIGHT gives one another weight, MEMBER~BASELINE "
        "counts a score x as (x - baseline) / (1 - baseline); repeatable",
        metavar="NAME=A,B,C",
    ),
]


class SuiteMissing(StrEnum):
    """What a model is that lacks a member of a suite."""

    unranked = "unranked"
    worst = "worst"


DistinctOption = Annotated[
    bool,
    option("--distinct", "suites: items of the same id in two members are different items; else such a suite is held"),
]
SuiteMissingOption = Annotated[
    SuiteMissing | None,
    option(
        "--suite-missing",
        "a model without a score in some member of a suite: unranked (it is listed), or worst (it is ranked, by 0 in that member)",
    ),
]


def since_seconds(text: str) -> float:
    """Return the seconds since 1970 of a time in --since; without an offset from UTC it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        stop(f"--since {text!r} is not a time; use RFC 3339, as 2026-11-23T04:00:00Z", USAGE)
