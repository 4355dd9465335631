"""The options of `export`, and the folder that it writes."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from monitor.cli.exports.boards import earlier_files
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.options import option
from monitor.render.board.exporters import Context, Dataset, ExportError, find_exporter

if TYPE_CHECKING:
    from monitor.render.board.exporters import Exporter


_PANEL: Final = "Shape of the folder"
_FLAGS: Final = {
    "datasets": "--dataset",
    "organization": "--organization",
    "source": "--source",
    "percent": "--percent",
}


def _shape_option(flag: str, metavar: str, text: str) -> Any:  # noqa: ANN401 - what typer returns
    return option(flag, text, metavar=metavar, rich_help_panel=_PANEL)


@dataclass(frozen=True)
class ShapeOptions:
    """What the files of a folder look like, and what the boards do not know."""

    shape: Annotated[
        str | None,
        _shape_option(
            "--as",
            "NAME",
            "site, every-eval-ever, hf-eval-results, hf-model-index, or an exporter that is installed  \\[default: site]",
        ),
    ] = None
    dataset: Annotated[
        list[str] | None,
        _shape_option(
            "--dataset", "BENCHMARK=ORG/NAME:TASK", "data set of a benchmark on Hugging Face; may be repeated"
        ),
    ] = None
    organization: Annotated[str | None, _shape_option("--organization", "NAME", "who evaluated")] = None
    source: Annotated[str | None, _shape_option("--source", "URL", "address of the results")] = None
    percent: Annotated[
        bool, typer.Option("--percent", help="write scores from 0 to 100 instead of 0 to 1", rich_help_panel=_PANEL)
    ] = False

    @property
    def given(self) -> list[str]:
        """The flags that were given."""
        values = {"--as": self.shape, **{flag: getattr(self, flag.removeprefix("--")) for flag in _FLAGS.values()}}
        return [flag for flag, value in values.items() if value]

    def choose(self) -> "tuple[Exporter, Context]":
        """Return the exporter and its context; end the command if an option is wrong, or not for this shape."""
        try:
            exporter = find_exporter(self.shape or "site")
        except ExportError as error:
            stop(str(error), USAGE)
        unused = [flag for name, flag in _FLAGS.items() if flag in self.given and name not in exporter.options]
        if unused:
            stop(f"{unused[0]} is not used with --as {exporter.name}; omit it", USAGE)
        if self.source is not None and not self.source.lower().startswith(("https://", "http://")):
            stop("--source is not an address; give one that begins with https://", USAGE)
        datasets = dict(map(_dataset, self.dataset or ()))
        return exporter, Context(_now(), datasets, self.organization, self.source, percent=self.percent, note=note)


def _dataset(text: str) -> "tuple[str, Dataset]":
    """Parse ``BENCHMARK=ORG/NAME:TASK``; the task may be absent."""
    benchmark, _, place = text.rpartition("=")
    name, _, task = place.partition(":")
    if not benchmark or not name:
        stop("--dataset names no benchmark or no data set; write BENCHMARK=ORG/NAME:TASK", USAGE)
    return benchmark, Dataset(name, task or None)


def _now() -> float:
    """Return the time, or that of SOURCE_DATE_EPOCH, with which the same results give the same files."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return float(fixed) if fixed.isdecimal() else time.time()


def check_folder(folder: Path) -> list[str]:
    """Return the files of an earlier export; end the command if the folder holds anything else."""
    if folder.exists() and not folder.is_dir():
        stop(f"{folder}: this is no folder; give a new or an empty one", USAGE)
    files = earlier_files(folder)
    if files is None:
        stop(f"{folder}: the folder holds files that no export wrote; give a new or an empty one", USAGE)
    return files
