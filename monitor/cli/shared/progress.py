"""A progress bar on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def progress_bar(description: str, *, of_bytes: bool = True) -> Iterator[Callable[..., None] | None]:
    """Show a bar and yield what updates it (as `rich.progress.Progress.update`); yield None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*(columns if of_bytes else ()), console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.update, bar.add_task(description, total=None))
