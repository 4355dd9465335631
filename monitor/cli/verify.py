"""`rankwatch verify`: recompute the certificate of an admission."""

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.shared.errors import file_error, stop
from monitor.files.newcomer import NewcomerError, read_certificate
from monitor.files.streams.paths import show
from monitor.view.admission import faults
from monitor.words.admission import verified
from monitor.words.numbers import safe


def verify(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="certificate, as `rankwatch admit` writes it", readable=False)
    ],
) -> None:
    """Recompute every number of a certificate from its scores, without any other file.

    Exit 0: every number follows from the scores, and no byte has changed. 1: it does not; the first line names what differs.

    Example: rankwatch verify my-model.admit.json
    """
    try:
        certificate = read_certificate(path)
    except NewcomerError as error:
        stop(str(error))
    except OSError as error:
        stop(file_error(error, path))
    if found := list(faults(certificate)):
        stop(f"{show(path)} does not verify: {'; '.join(found)}")
    print("\n".join(map(safe, verified(show(path), certificate))))
