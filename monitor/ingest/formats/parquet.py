"""Parquet tables, read with pyarrow where it is installed."""

from collections.abc import Iterator
from typing import Final

from monitor.ingest.files.translated import Broken, Lines, Refusal
from monitor.ingest.formats.columns import ColumnError, Columns
from monitor.ingest.formats.log_file import Reading
from schemas.decode import Fault
from schemas.text import shorten

_BATCH_ROWS: Final = 10_000


def read(reading: Reading) -> Iterator[bytes]:
    """Read a table as event lines.

    Raises
    ------
    Refusal
        If pyarrow is missing, or a column.
    Broken
        If the file breaks off.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise Refusal(
            "file", "a Parquet table", "install what reads it: rankwatch[parquet], or pyarrow beside rankwatch"
        ) from error
    try:
        with ParquetFile(reading.path) as file:
            try:
                columns = Columns(file.schema_arrow.names, reading.choices, reading.model)
            except ColumnError as missing:
                raise Refusal("columns", "a table", str(missing)) from missing
            reading.notes(columns.told)
            lines, number = Lines(), 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns.names):
                for row in batch.to_pylist():
                    number += 1
                    for made in columns.events(row):
                        yield lines.reject(made, number) if isinstance(made, Fault) else lines.event(made, number)
    except (
        ArrowException,
        OSError,
        ValueError,
        OverflowError,
    ) as error:  # the last two: of names and values that are none
        raise Broken(f"the Parquet table breaks off, or is damaged ({shorten(str(error))})") from error
