"""`rankwatch board`: list the boards, change them, undo what a producer has sent, and export their scores."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from monitor.cli.shared.commands import Group, add_command
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.options import TableFormat, TableFormatOption, option, since_seconds
from monitor.cli.shared.remote.places import Place
from monitor.cli.shared.scores import check_scores_file, write_scores
from monitor.render.terminal.layout import output_console
from schemas.records.declaration import Spec
from schemas.records.operations import BoardChange
from schemas.records.text import printable, shorten

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from monitor.send.boards import ServedBoards
    from monitor.service.operations.boards import TopicBoards
    from schemas.records.operations import BoardAction


NameArgument = Annotated[str, typer.Argument(metavar="BENCHMARK", help="name of the benchmark", show_default=False)]

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="name of the model, as its events have it", show_default=False)
]
TitleArgument = Annotated[
    str | None, typer.Argument(metavar="TITLE", help="omit it to show the name again", show_default=False)
]


def open_boards(place: Place, *, writes: bool = False) -> "AbstractContextManager[ServedBoards | TopicBoards]":
    """Open the boards of a place; the help of the commands needs none of what this imports."""
    from monitor.cli.shared.remote import boards

    return boards.open_boards(place, writes=writes)


def list_(place: Place, form: TableFormatOption = TableFormat.table) -> None:
    """List the boards: state, generation, models, events and what a reader has to know.

    Example: rankwatch board list --server http://localhost:8642
    """
    with open_boards(place) as boards:
        rows = boards.rows()
    if form is TableFormat.json:
        print(json.dumps({"boards": rows}, indent=2, ensure_ascii=False))
    elif not rows:
        print("no boards")
    else:
        _print_table(rows)


def show(benchmark: NameArgument, place: Place, form: TableFormatOption = TableFormat.table) -> None:
    """Show one board: its state, and the declaration in force.

    Example: rankwatch board show mmlu-pro --server http://localhost:8642
    """
    with open_boards(place) as boards:
        row = boards.show(benchmark)
    if form is TableFormat.json:
        print(json.dumps(row, indent=2, ensure_ascii=False))
        return
    spec = row.pop("spec")
    row["declaration"] = "none" if spec is None else json.dumps(_short(spec), ensure_ascii=False)
    for name, value in row.items():
        if value is not None:
            print(f"{name:12} {printable(f'{value:,}' if isinstance(value, int) else str(value))}")


def export(
    benchmark: NameArgument,
    place: Place,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "file, of JSON lines or by its name .parquet or .arrow  \\[default: standard output]",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Write the scores of a board, or its battles, as JSON lines, which `rankwatch report`, `watch` and `send` read.

    The file has the declaration, each score that counts and the ends of runs; duplicates and conflicts are omitted. A table (.parquet,
    .arrow) has the scores alone. Items are in the order
    of their first score, so a replay has the same scores, but under `trusted` other times of decision. Scores that arrive meanwhile may be
    omitted: archive the board for an export that is complete.

    Example: rankwatch board export mmlu-pro --server http://localhost:8642 --output mmlu-pro.jsonl
    """
    if output is not None:
        check_scores_file(output)
    with open_boards(place) as boards:
        write_scores(boards.scores(benchmark), output)


def archive(benchmark: NameArgument, place: Place) -> None:
    """Close a board: its report, page and API stay; later records of it are refused and kept as dead letters.

    Example: rankwatch board archive mmlu-pro --server http://localhost:8642
    """
    _change(place, "archive", benchmark, "archived; later records of it are refused")


def restore(benchmark: NameArgument, place: Place) -> None:
    """Let records of an archived board count again, from now on. What was refused meanwhile has to be sent again.

    Example: rankwatch board restore mmlu-pro --server http://localhost:8642
    """
    _change(place, "restore", benchmark, "restored; later records of it count")


def delete(
    benchmark: NameArgument,
    place: Place,
    yes: Annotated[bool, typer.Option("--yes", help="delete it: the scores leave the state permanently")] = False,
) -> None:
    """Delete a board: it leaves the page, the API and the metrics, and its verdicts are withdrawn on the verdict topic.

    Later records of the name are refused and kept as dead letters, until `rankwatch board reopen` begins it again as the next generation.
    The records stay in the topic for as long as its retention. Export the board first to keep its scores.

    Example: rankwatch board delete mmlu-pro --yes --server http://localhost:8642
    """
    if not yes:
        stop(
            "deleting a board is permanent: its scores leave the state, and its verdicts are withdrawn; `rankwatch board export` keeps the "
            "scores, `rankwatch board archive` keeps the board; give --yes to delete it",
            USAGE,
        )
    _change(place, "delete", benchmark, "deleted; later records of the name are refused")


def reopen(benchmark: NameArgument, place: Place) -> None:
    """Begin a deleted board again, without scores, as the next generation of its name.

    The alpha of the earlier generation was spent: the report names the generation, and its verdicts assume that the earlier board was not
    deleted because of its scores.

    Example: rankwatch board reopen mmlu-pro --server http://localhost:8642
    """
    _change(place, "reopen", benchmark, "open again, as the next generation, which its report names")


def rename(benchmark: NameArgument, place: Place, title: TitleArgument = None) -> None:
    """Show a board under a title. Its name stays in events, URLs, metrics and the log, where it decides the partition.

    Example: rankwatch board rename mmlu-pro 'MMLU-Pro, June' --server http://localhost:8642
    """
    _change(place, "rename", benchmark, "shown under its name" if title is None else f"shown as {title}", title)


def undo(
    benchmark: NameArgument,
    place: Place,
    producer: Annotated[
        str | None,
        option("--producer", "whose events are withdrawn: the name of the token that sent them", metavar="NAME"),
    ] = None,
    since: Annotated[
        str | None,
        option(
            "--since", "from which time of RFC 3339 on, such as 2026-11-23T07:00Z  \\[default: all]", metavar="TIME"
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="withdraw them: the verdicts are withdrawn too")] = False,
) -> None:
    """Withdraw the events that a producer has sent, since a time: the board is judged again without them, as the next generation.

    Stop the producer first. The records that stay are copied to the end of the log, in their order, so the log must still have those of the
    board. The verdicts are withdrawn, the report names the generation and what was withdrawn, and later verdicts assume that nobody did it
    because of the scores. After an interruption the same command goes on. Declarations stay, also those of the producer.

    Example: rankwatch board undo mmlu-pro --producer nightly --since 2026-11-23T07:00Z --yes --server http://localhost:8642
    """
    if producer is None:
        stop(
            "give --producer NAME: whose events are withdrawn, as `rankwatch token list` and the audit log name it",
            USAGE,
        )
    if not yes:
        stop(
            f"an undo withdraws the verdicts of {shorten(benchmark)}, and begins it again as the next generation without those "
            "events; give --yes to do it",
            USAGE,
        )
    milliseconds = None if since is None else round(1_000 * since_seconds(since))
    _undo(place, BoardChange("undo", benchmark, producer=producer, since=milliseconds))


def delete_model(
    benchmark: NameArgument,
    model: ModelArgument,
    place: Place,
    yes: Annotated[bool, typer.Option("--yes", help="delete it: its scores leave the board permanently")] = False,
) -> None:
    """Delete a model, with its epochs: the board is judged again without its scores, as the next generation.

    It works as `rankwatch board undo` does. Stop the producers of the model first: a later score of it begins it again.

    Example: rankwatch board delete-model mmlu-pro broken-run --yes --server http://localhost:8642
    """
    if not yes:
        stop(
            f"deleting a model withdraws the verdicts of {shorten(benchmark)}, and begins it again as the next generation; "
            "give --yes to do it",
            USAGE,
        )
    _undo(place, BoardChange("undo", benchmark, model=model))


def rename_model(benchmark: NameArgument, model: ModelArgument, place: Place, title: TitleArgument = None) -> None:
    """Show a model under a title. Its name stays in events, URLs, metrics, verdicts and their ids.

    Example: rankwatch board rename-model mmlu-pro run-17 'Ash 7B' --server http://localhost:8642
    """
    shown = "shown under its name" if title is None else f"shown as {title}"
    _change(place, "rename", benchmark, f"{model} is {shown}", title, model)


def _undo(place: Place, change: "BoardChange") -> None:
    with open_boards(place, writes=True) as boards:
        begun = boards.undo(change)
    name = shorten(change.benchmark)
    if begun.withdrawn is None:
        print(f"{name}: went on with an undo that was interrupted")
    else:
        print(
            f"{name}: {begun.withdrawn:,} events withdrawn, {begun.kept:,} stay; it is the next generation, which its report names"
        )
    if not begun.in_force:
        note(
            "the records that stay are still being copied or folded; `rankwatch board show` has a note until that ends"
        )


def _change(
    place: Place, action: "BoardAction", benchmark: str, done: str, title: str | None = None, model: str | None = None
) -> None:
    with open_boards(place, writes=True) as boards:
        in_force = boards.change(BoardChange(action, benchmark, title, model=model))
    print(f"{shorten(benchmark)}: {shorten(done, 200)}")
    if not in_force:
        note("no worker has folded it yet; it is in the log, and holds once one has")


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "title", "state", "generation", "models", "events", "rejected"):
        table.add_column(
            heading,
            overflow="fold",
            justify="right" if heading in {"generation", "models", "events", "rejected"} else "left",
        )
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("generation", "models", "events", "rejected"))
        table.add_row(escape(printable(row["benchmark"])), escape(printable(row["title"] or "")), row["state"], *counts)
    output_console().print(table)
    for row in rows:
        if row["note"]:
            print(f"{printable(row['benchmark'])}: {row['note']}")


def _short(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what of a declaration is not the default, and of a list of items how many there are."""
    fields = Spec.model_validate(spec).model_dump(mode="json", exclude_defaults=True)
    if "item_ids" in fields:
        fields["item_ids"] = f"{len(fields['item_ids']):,} items"
    return fields


board = typer.Typer(cls=Group, no_args_is_help=True)
for _name, _command in (
    ("list", list_),
    ("show", show),
    ("export", export),
    ("archive", archive),
    ("restore", restore),
    ("delete", delete),
    ("reopen", reopen),
    ("rename", rename),
    ("undo", undo),
    ("delete-model", delete_model),
    ("rename-model", rename_model),
):
    add_command(board, _command, _name)
