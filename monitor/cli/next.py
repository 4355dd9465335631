"""`rankwatch next`: which models run next on which items until a goal is met; the exit code is what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from monitor.cli.shared.declared.declarations import with_fields
from monitor.cli.shared.declared.flags import parse_flags
from monitor.cli.shared.declared.values import check_seed
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.cli.shared.files import choose_board, is_empty, read_results
from monitor.cli.shared.options import (
    MAX_REJECTED,
    DeclareOptions,
    ScoreOptions,
    TableFormat,
    TableFormatOption,
    option,
)
from monitor.cli.shared.remote.places import bearer_token
from monitor.cli.shared.settings import read_settings
from monitor.files.declaration_file import ItemListError, read_items
from monitor.render.terminal.next import print_next
from monitor.send.race import ask_next
from monitor.view.from_files.fold import declared_board
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import NoRaceError, Race
from schemas.records.declaration import Declaration
from schemas.records.goals import parse_goal

if TYPE_CHECKING:
    from monitor.cli.shared.declared.declarations import Declarations
    from monitor.view.board import BoardView
    from schemas.results.api import Next


RUN, WAIT, STOP, MET, IMPOSSIBLE = 0, 3, 4, 5, 6  # exit codes

_STEPS: Final = {"run": RUN, "wait": WAIT, "stop": STOP}
_FILES, _SERVER = "Files, without --server", "Server"


@dataclass(frozen=True)
class FileOptions:
    """Results that no monitor has, and the order that was committed for them."""

    seed: Annotated[
        str | None,
        option("--seed", "seed of the committed order  \\[default: as declared in the files]", rich_help_panel=_FILES),
    ] = None
    items: Annotated[
        Path | None,
        option(
            "--items",
            "file with one item id a line, or results that have all items; with --seed",
            metavar="FILE",
            rich_help_panel=_FILES,
        ),
    ] = None
    max_rejected: Annotated[
        float, typer.Option("--max-rejected", min=0, max=1, help=MAX_REJECTED, rich_help_panel=_FILES)
    ] = 0.1


@dataclass(frozen=True)
class ServerOptions:
    """A monitor that has the scores."""

    server: Annotated[
        str | None,
        option(
            "--server",
            "address of a `rankwatch watch` or `serve` that has the scores",
            metavar="http\\[s]://HOST:PORT",
            rich_help_panel=_SERVER,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        option(
            "--token-file",
            "file with the bearer token for --server  \\[default: $RANKWATCH_TOKEN]",
            rich_help_panel=_SERVER,
        ),
    ] = None
    wait: Annotated[
        float,
        option(
            "--wait",
            "seconds to wait for results of other models, while there is nothing to run",
            min=0,
            metavar="SECONDS",
            rich_help_panel=_SERVER,
        ),
    ] = 0.0


def next_(
    files: FileOptions,
    served: ServerOptions,
    logs: ScoreOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH", help="files or folders of results, without --server", show_default=False, readable=False
        ),
    ] = None,
    benchmark: Annotated[str | None, option("--benchmark", "name of the benchmark", metavar="NAME")] = None,
    goal: Annotated[
        str | None,
        option(
            "--goal",
            "best, top:K, ranking, pair:A,B or model:M; ,margin=X accepts gaps up to X  \\[default: as declared]",
        ),
    ] = None,
    models: Annotated[
        list[str] | None, option("--models", "models that take part, also before their first score", metavar="A,B,C")
    ] = None,
    model: Annotated[
        str | None, option("--model", "print only the items that this model runs next, one id a line")
    ] = None,
    block: Annotated[
        int | None,
        option(
            "--block",
            "items that a model may be ahead  \\[default: 10, later 2 % of the items run]",
            min=1,
            max=1_000,
            metavar="ITEMS",
        ),
    ] = None,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Print which models run next on which items, until a goal is met. Run them, add their scores, and call it again.

    Exit 0: run the items. 3: nothing to run for now, since results of other models come first. 4: the model may stop (with --model): no
    result of it can change the answer. 5: the goal is met. 6: the goal is out of reach with the items that are left. 1: fault. 2: wrong
    usage. The order policy has to be `committed`, or `completion` with a list of items: their verdicts stay valid wherever runs stop.

    Example: rankwatch next --server http://localhost:8642 --benchmark my-bench --goal best --model a

    Example: rankwatch next results/ --seed 2026-11 --items ids.txt --benchmark my-bench --models a,b,c --goal top:3
    """
    names = [*(_names(models) if models else []), *([] if model is None else [model])]
    if (served.server is None) == (not paths):
        stop("give files or folders of results, or --server http://host:port of a monitor that has them", USAGE)
    if served.server is not None:
        answer = _ask_server(served, files, benchmark, goal, names, block, model)
    else:
        answer = _read_files(
            paths or [], files, logs, benchmark, goal, names, block, family=_names(models) if models else None
        )
    chosen = None if model is None else next((each for each in answer.models if each.model == model), None)
    if model is not None and chosen is None:
        stop(f"--model {model}: an alias; use the name of the model, as in the table")
    if form is TableFormat.json:
        print(msgspec.json.format(answer.as_json()).decode())
    elif chosen is not None:
        print("".join(f"{item}\n" for item in chosen.items), end="")
    else:
        print_next(answer)
    if answer.over:
        if chosen is not None:
            note(answer.goal.reason)
        raise SystemExit(MET if answer.goal.state == "met" else IMPOSSIBLE)
    step = chosen.step if chosen is not None else "run" if any(each.items for each in answer.models) else "wait"
    raise SystemExit(_STEPS[step])


def _names(models: list[str]) -> list[str]:
    family = parse_flags(DeclareOptions(models=models)).values["family"]
    if set(family) != {None}:
        stop('--models: give names between commas; write a name that holds a comma or = as "A,B"', USAGE)
    named: list[str] = family[None]["models"]
    return named


# --- a server -------------------------------------------------------------------------------------------------------------------------


def _ask_server(
    served: ServerOptions,
    files: FileOptions,
    benchmark: str | None,
    goal: str | None,
    models: list[str],
    block: int | None,
    model: str | None,
) -> "Next":
    assert served.server is not None
    if benchmark is None:
        stop("--server: name the benchmark, with --benchmark NAME", USAGE)
    if files.seed is not None or files.items is not None:
        stop("--seed and --items: the server has the order that was declared; omit them", USAGE)
    token = bearer_token(read_settings(), served.token_file)
    try:
        return ask_next(served.server, token, benchmark, goal, models, block, wait=served.wait, model=model)
    except ValueError as error:
        stop(f"--server: {error}", USAGE)
    except OSError as error:
        stop(str(error))


# --- files ----------------------------------------------------------------------------------------------------------------------------


def _read_files(
    paths: list[str],
    files: FileOptions,
    logs: ScoreOptions,
    benchmark: str | None,
    goal: str | None,
    models: list[str],
    block: int | None,
    *,
    family: list[str] | None,
) -> "Next":
    try:
        asked = None if goal is None else parse_goal(goal)
    except ValueError as error:
        stop(f"--goal: {error}", USAGE)
    boards = _fold(paths, files, logs, benchmark, family)
    try:
        return Race.of(PairTable(choose_board(boards, benchmark)), asked, models, block).report()
    except NoRaceError as error:
        stop(str(error))


def _fold(
    paths: list[str], files: FileOptions, logs: ScoreOptions, benchmark: str | None, family: list[str] | None
) -> "Mapping[str, BoardView]":
    """Fold the results; before the first one there is only what the flags declare."""
    declarations = _declarations(paths, files, benchmark, family)
    if files.seed is None or not all(map(is_empty, paths)):
        return read_results(paths, files.max_rejected, logs, declarations, part=True)
    if benchmark is None:
        stop("there are no results yet, which would name the benchmark; give --benchmark NAME", USAGE)
    note(f"{', '.join(paths)}: no results yet, so this is the first block")
    return declared_board(Declaration.model_validate({"declare": benchmark, **declarations.given(benchmark)}))


def _declarations(
    paths: list[str], files: FileOptions, benchmark: str | None, family: list[str] | None
) -> "Declarations":
    """Return what the flags declare, as `rankwatch order --look 0 --format json` and a rankwatch.toml would."""
    if (files.seed is None) != (files.items is None):
        stop("--seed and --items FILE belong together: they are the committed order", USAGE)
    fields: dict[str, object] = {}
    if family is not None:
        fields["family"] = {"policy": "capacity", "models": family}
    if files.seed is not None and files.items is not None:
        check_seed(files.seed)
        try:
            ids, _ = read_items(files.items, benchmark)
        except ItemListError as error:
            stop(f"--items: {error}")
        except OSError as error:
            stop(file_error(error, files.items))
        fields |= {"order": {"policy": "committed", "seed": files.seed}, "item_ids": ids}
    return with_fields(fields, paths, benchmark)
