"""Pairs of a report, and scores, as columns: in files of Parquet, or of Arrow. Needs pyarrow."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, get_args

import msgspec

from monitor.render.csv import columns, rows
from schemas.results.report import BenchmarkReport

if TYPE_CHECKING:
    from pyarrow import Schema

Form = Literal["parquet", "arrow"]

_ROWS_AT_ONCE: Final = 50_000

_SCORE: Final = {
    "benchmark": str, "item_id": str, "model": str, "score": float, "cluster": str, "repeat": int, "epoch": int,
}  # fmt: skip
_BATTLE: Final = {
    "benchmark": str, "item_id": str, "model_a": str, "model_b": str, "winner": str, "cluster": str, "position": str, "repeat": int,
}  # fmt: skip


class ArrowError(Exception):
    """A table cannot be written; the message has the reason and what to do."""


class Written(msgspec.Struct):
    """What a table of scores came to; a file of complete results needs no ends of runs, which have no row."""

    rows: int = 0
    declarations: int = 0


class _Record(msgspec.Struct, gc=False):
    """Fields of a score, a battle, a declaration or the end of a run."""

    benchmark: str = ""
    item_id: str | None = None
    model: str | None = None
    model_a: str | None = None
    model_b: str | None = None
    winner: str | None = None
    score: float | None = None
    cluster: str | None = None
    position: str | None = None
    repeat: int = 0
    epoch: int = 0
    declare: Any = None


def require_pyarrow() -> None:
    """Raise `ArrowError` where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise ArrowError("a table of Parquet or Arrow needs pyarrow; install rankwatch[parquet], or pyarrow")


def write_pairs(reports: Iterable[BenchmarkReport], file: BinaryIO, form: Form) -> None:
    """Write every pair of reports as one row, with the columns of the CSV file; null is an unknown value."""
    with _writer(columns(), file, form) as write:
        for row in rows(reports):
            write(row)


def write_scores(lines: Iterable[bytes], file: BinaryIO, form: Form) -> Written:
    """Write scores, or battles, as rows."""
    written = Written()
    records = _records(lines, written)
    first = next(records, None)
    kind = _SCORE if first is None or first.winner is None else _BATTLE
    with _writer(kind, file, form) as write:
        while first is not None:
            if (first.winner is None) is not (kind is _SCORE):
                raise ArrowError(
                    "these results have scores and battles, and a table has one of the two; write JSON lines, to a file .jsonl"
                )
            write([getattr(first, name) for name in kind])
            first = next(records, None)
    return written


def _records(lines: Iterable[bytes], written: Written) -> Iterator[_Record]:
    decode = msgspec.json.Decoder(_Record).decode
    for part in lines:
        for line in part.splitlines():
            record = decode(line)
            if record.item_id is not None:
                written.rows += 1
                yield record
            else:
                written.declarations += record.declare is not None


@contextmanager
def _writer(types: Mapping[str, Any], file: BinaryIO, form: Form) -> Iterator[Any]:
    """Yield a function that writes a row."""
    require_pyarrow()
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    schema = _schema(pa, types)
    pending: list[list[Any]] = []
    with ParquetWriter(file, schema) if form == "parquet" else pa.ipc.new_file(file, schema) as out:

        def flush() -> None:
            values = list(zip(*pending, strict=True)) or [()] * len(schema)
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            pending.clear()

        def write(row: list[Any]) -> None:
            pending.append(row)
            if len(pending) >= _ROWS_AT_ONCE:
                flush()

        yield write
        flush()


def _schema(pa: Any, types: Mapping[str, Any]) -> "Schema":  # noqa: ANN401 - the module
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    return pa.schema([(name, kinds[_plain_type(annotation)]) for name, annotation in types.items()])


def _plain_type(annotation: Any) -> type:  # noqa: ANN401 - a type, or a union or literals of one
    """Return the type of the values of a field that are known.

    >>> _plain_type(int | None), _plain_type(Literal["a", "b"] | None)
    (<class 'int'>, <class 'str'>)
    """
    if isinstance(annotation, type):
        return annotation
    known = [each for each in get_args(annotation) if each not in {None, type(None)}]
    return _plain_type(known[0]) if not isinstance(known[0], str) else str
