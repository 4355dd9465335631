"""`rankwatch map`: propose how a file of any shape is read."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from monitor.cli.shared.errors import USAGE, note, stop
from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.importer import Importer
from monitor.files.maps.propose import harness_of, propose
from monitor.files.maps.table import read_mappings
from monitor.files.reject_limit import RejectedLine
from monitor.files.streams.paths import show
from monitor.files.streams.read import read_files
from monitor.files.streams.regular import Broken, Refusal

_SHOWN = 10


def map_(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="a JSON document, JSON lines, or a table", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="where to write the mapping  \\[default: rankwatch.toml next to it]"
        ),
    ] = None,
    benchmark: Annotated[str | None, typer.Option("--benchmark", metavar="NAME", help="name of the benchmark")] = None,
) -> None:
    """Propose a mapping for a file of any shape, show the first events it gives, and write it.

    Where a mapping is already there, it is used and not changed: edit it, and run the command again to see what it gives. Results of
    a harness that rankwatch reads need none: their first events are shown, and --output writes a proposal nevertheless.

    Example: rankwatch map results/scores.json
    """
    if not path.is_file():
        inside = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else []
        example = f", as in rankwatch map {show(inside[0])}" if inside else ""
        stop(f"{show(path)} is not a file; give one file of results{example}", USAGE)
    target = output or path.parent / "rankwatch.toml"
    omitted = list[str]()  # of a workbook; where there are events, reading them shows it
    try:
        written = read_mappings(target, found=output is None) if os.path.lexists(target) else []
        existing = [each for each in written if each.matches(path.resolve())]
        if existing:
            note(f"{existing[0].where} is used unchanged")
        elif output is None and (harness := harness_of(path)) is not None:
            note(f"{show(path)} needs no mapping: it is read as results of {harness}; --output FILE writes a proposal")
            _show_events(path, None, benchmark)
            return
        else:
            proposal = propose(path, omitted.append)
            print(proposal.text)
            for guess in proposal.guesses:
                note(f"guessed: {guess}")
            with target.open("a", encoding="utf-8") as file:
                file.write(("\n" if target.stat().st_size else "") + proposal.text)
            note(f"written to {show(target)}; edit it where the events below are not right")
        _show_events(path, target, benchmark)
    except ChoiceError as error:
        stop(str(error), USAGE)
    except Refusal as refusal:
        for text in omitted:
            note(f"{show(path)}: {text}")
        stop(f"{show(path)}: {refusal.fault.reason}")
    except Broken as broken:
        stop(f"{show(path)}: {broken}; give JSON, JSON lines (.jsonl), CSV or Parquet, as a complete file")
    except OSError as error:
        stop(f"{show(error.filename or path)}: {error.strerror}")


def _show_events(path: Path, mapping: Path | None, benchmark: str | None) -> None:
    """Print the first events that a file gives, and the first rejects."""
    importer = Importer(Choices.parse(map=None if mapping is None else str(mapping), benchmark=benchmark), note)
    events = rejects = 0
    for segment in read_files(importer.find([path]), opener=importer.open):
        for event in segment.events[: max(0, _SHOWN - events)]:
            print(msgspec.json.encode(event).decode())
        for reject in segment.rejects[: max(0, 3 - rejects)]:
            note(str(RejectedLine.of(reject)))
        events, rejects = events + len(segment.events), rejects + len(segment.rejects)
    more = f", the first {_SHOWN} above" if events > _SHOWN else ""
    note(f"{events:,} event{'' if events == 1 else 's'}{more}; rejected: {rejects:,}")
    if not events:
        stop(
            "the file gives no event"
            if mapping is None
            else f"the mapping gives no event; correct {mapping}, or add --output FILE here, and --map FILE to read it"
        )
