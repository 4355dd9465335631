"""Bound the memory of Parquet: pyarrow has no limit, and a file of 1 kB can hold any number of cells of any length."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from monitor.files.formats.documents import MAX_BYTES
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.translated import MAX_SAMPLE_BYTES
from schemas.records.text import shorten

if TYPE_CHECKING:
    from pyarrow import Array, NativeFile, RecordBatch
    from pyarrow.parquet import ColumnChunkMetaData, ParquetFile

_ROWS: Final = 10_000
_TOGETHER: Final = 1 << 17  # rows that pyarrow reads at once: each time it hashes the whole dictionary
_BATCH_BYTES: Final = 1 << 27
_HEADER_BYTES: Final = 1 << 19  # of a page; a usual one has less than 100
_CELL_BYTES: Final = 1 << 16  # of a cell of fixed length: pyarrow makes room for a thousand that are empty
_TEXTS: Final = {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
_VALUE_BYTES: Final = 64  # of a value in Python, without its text
_WHOLE: Final = {0, 6}  # encodings that hold each cell of text as often as it comes: PLAIN, DELTA_LENGTH_BYTE_ARRAY
_SHARED: Final = {0, 2, 8}  # those that pyarrow can read with equal cells kept once: PLAIN and the two of dictionaries


DAMAGED: Final = "the Parquet table is cut off or damaged"


class Table:
    """A Parquet table that is read in batches small in memory; one with a page or a row that is not is refused."""

    def __init__(self, source: "NativeFile", file: "ParquetFile") -> None:
        self._source, self._file = source, file
        self.names: list[str] = file.schema_arrow.names

    def batches(self, columns: Sequence[str], most: int = _TOGETHER) -> Iterator["RecordBatch"]:
        """Return columns, of at most so many rows together."""
        from pyarrow import schema  # noqa: PLC0415 - optional, and slow to import
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415

        file, wanted = self._file, schema([field for field in self._file.schema_arrow if field.name in columns])
        shared, rows = _plan(self._source, file, wanted.names)
        options = {"read_dictionary": shared, "pre_buffer": False, "buffer_size": 1 << 20}
        with ParquetFile(self._source, metadata=file.metadata, **options) as table:
            for batch in table.iter_batches(min(rows, most), columns=list(columns)):
                yield from (piece.cast(wanted) for piece in _pieces(batch))

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, as large together as a document may be."""
        rows, size = [], 0
        for batch in self.batches(self.names):
            size += sum(map(_size, batch.columns))
            if size > MAX_BYTES:
                raise _refusal(self.names[0], f"more than {MAX_BYTES:,} bytes with the others", MAX_BYTES)
            rows += batch.to_pylist()
        return rows


def _plan(source: "NativeFile", file: "ParquetFile", names: Sequence[str]) -> tuple[list[str], int]:
    """Return the columns to keep equal cells of once, and how many rows to read together."""
    shared, fixed, texts, cells = [], 0, 0, 0
    groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
    views = {
        field.name for field in file.schema_arrow if "view" in str(field.type)
    }  # pyarrow casts no dictionary to one
    for k, leaf in enumerate(file.schema):
        top = leaf.path if leaf.path in names else leaf.path.partition(".")[0]
        if top not in names:
            continue
        chunks = [group.column(k) for group in groups]
        pages = [page for chunk in chunks for page in _pages(source, chunk)]
        longest, total = max([leaf.length, *(size for size, _ in pages)]), sum(size for size, _ in pages)
        for what, found, most in (
            ("page", longest, MAX_SAMPLE_BYTES),
            ("cell of fixed length", leaf.length, _CELL_BYTES),
        ):
            if found > most:
                raise _refusal(leaf.path, f"a {what} of {found:,} bytes", most)
        kinds = {encoding for _, encoding in pages}
        once = leaf.physical_type == "BYTE_ARRAY" and top not in views and kinds <= _SHARED and not kinds <= _WHOLE
        if once:
            shared.append(leaf.path)
        each = longest if leaf.physical_type in _TEXTS and not once and not kinds <= _WHOLE else 0
        each = max(each, leaf.length)
        if leaf.max_repetition_level:  # one row may hold all values
            fixed += total + sum(chunk.num_values for chunk in chunks) * (each + _VALUE_BYTES)
        elif leaf.physical_type in _TEXTS:
            texts, cells = texts + total + each * file.metadata.num_rows, cells + longest
        fixed += longest
        if fixed > MAX_BYTES:
            raise _refusal(leaf.path, f"rows of up to {fixed:,} bytes", MAX_BYTES)
    return shared, _TOGETHER if texts <= _BATCH_BYTES else max(_BATCH_BYTES // cells, 1)


def _pages(source: "NativeFile", chunk: "ColumnChunkMetaData") -> Iterator[tuple[int, int]]:
    """Return how large each page becomes, and its encoding, by the headers that pyarrow follows; the end of a file may lie."""
    at, left = chunk.data_page_offset, chunk.num_values
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    while left > 0:
        length, header = _header(source, at)
        try:
            data, kind = (header[5], 2) if 5 in header else (header.get(8, {}), 4)
            size, stored, values = header[2], header[3], data.get(1, 0)
            broken = min(size, stored, values) < 0
        except (KeyError, TypeError, AttributeError):  # fields of another kind than those of a header
            broken = True
        if broken:
            raise Broken(DAMAGED)
        yield size, data.get(kind, 0)
        at, left = at + length + stored, left - values


def _header(source: "NativeFile", at: int) -> tuple[int, dict[int, Any]]:
    """Return the length of the header of a page, and its fields by their numbers."""
    size = 1 << 10
    while True:
        source.seek(at)
        data = source.read(size)
        try:
            fields, length = _struct(data, 0)
        except (IndexError, KeyError, RecursionError, ValueError) as error:
            if len(data) < size or size >= _HEADER_BYTES:
                raise Broken(DAMAGED) from error
            size *= 8
        else:
            return length, fields


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol."""
    fields: dict[int, Any] = {}
    number = 0
    while first := data[at]:
        number, at = (number + (first >> 4), at + 1) if first >> 4 else _integer(data, at + 1)
        fields[number], at = _value(data, at, first & 15)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in {1, 2}:  # true and false are kinds
        return None, at
    if kind in {4, 5, 6}:
        return _integer(data, at)
    if kind in {9, 10}:
        inner, size = data[at] & 15, data[at] >> 4
        at += 1
        if size == 15:
            size, at = _count(data, at)
        for _ in range(size):
            at = _value(data, at, 3 if inner in {1, 2} else inner)[1]
        return None, at
    if kind == 8:
        length, at = _count(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at)
    return None, at + {3: 1, 7: 8}[kind]


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _count(data, at)
    return (value >> 1 & 0x7FFFFFFF) ^ -(value & 1), at


def _count(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value, at, shift = value | (data[at] & 127) << shift, at + 1, shift + 7
        if shift > 63:
            raise ValueError(value)
    return value | data[at] << shift, at + 1


def _pieces(batch: "RecordBatch") -> Iterator["RecordBatch"]:
    """Cut a batch into pieces that are small as Python objects, each cell with a text of its own."""
    sizes = {name: _size(array) for name, array in zip(batch.schema.names, batch.columns, strict=True)}
    if sum(sizes.values()) <= MAX_SAMPLE_BYTES and batch.num_rows <= _ROWS:
        yield batch
    elif batch.num_rows == 1:
        longest = max(sizes, key=sizes.__getitem__)
        raise _refusal(longest, f"a row of {sum(sizes.values()):,} bytes", MAX_SAMPLE_BYTES)
    else:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))


def _size(array: "Array") -> int:
    """Return about how many bytes the values of an array take in Python."""
    from pyarrow import compute, types  # noqa: PLC0415 - optional, and slow to import

    own = _VALUE_BYTES * len(array)
    if types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary.cast("large_binary"))
        return own + int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if types.is_nested(array.type):
        inner = array.flatten()
        return own + sum(map(_size, inner if isinstance(inner, list) else [inner]))
    return own + int(array.nbytes)


def _refusal(column: str, found: str, most: int) -> Refusal:
    return Refusal(
        "columns",
        f"{shorten(column)}: {found}",
        f"column {shorten(column)} has {found}, and at most {most:,} are read; write the table without it, or as .csv",
    )


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Open a Parquet file."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise Refusal(
            "file", "a Parquet table", "a Parquet table needs pyarrow; install rankwatch[parquet], or pyarrow"
        ) from error
    try:
        with pyarrow.OSFile(str(path)) as source, pyarrow.parquet.ParquetFile(source) as file:
            yield Table(source, file)
    except MemoryError:  # one of pyarrow's is an ArrowException too
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:  # ValueError: text that is not UTF-8
        raise Broken(DAMAGED) from error
