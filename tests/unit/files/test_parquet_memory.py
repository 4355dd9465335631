"""Parquet that is hostile: a few kilobytes of which pyarrow alone would fill the memory."""

import random
import subprocess
import sys

import pytest

from tests.unit.files.native_logs import Read

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ADDRESSES = 3 << 30
"""Of the process that reads: pyarrow reserves 1.5 GB of them for any table."""

READ = """
import resource, sys
from tests.unit.files.native_logs import Read
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
read = Read(sys.argv[1])
print(len(read.events), len(read.faults), read.faults[0][3] if read.faults else "")
"""


def rows(count, **more):
    return {
        "benchmark": ["quiz"] * count,
        "item_id": [str(k) for k in range(count)],
        "model": ["one"] * count,
        "score": [1.0] * count,
        **more,
    }


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, compression="zstd", **options)


def one_long_cell_repeated(path):
    cluster = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000, pa.int32()), pa.array(["x" * 1_000_000]))
    write(path, rows(3_000, cluster=cluster), store_schema=False)


def one_long_cell_that_arrow_keeps_as_a_dictionary(path):
    cluster = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000, pa.int32()), pa.array(["x" * 1_000_000]))
    write(path, rows(3_000, cluster=cluster))


def a_long_cell_in_each_page(path):
    writer = None
    for first in range(0, 2_600, 200):
        table = pa.table(rows(200, cluster=[f"{first + k}".ljust(1_000_000, "y") for k in range(200)]))
        writer = writer or pq.ParquetWriter(
            path, table.schema, compression="zstd", use_dictionary=False, data_page_size=1, write_batch_size=1
        )
        writer.write_table(table)
    writer.close()


def cells_that_repeat_the_one_before(path):
    long = ["z" * 1_000_000] * 2_500
    encoding = {"cluster": "DELTA_BYTE_ARRAY"}
    write(path, rows(2_500, cluster=long), use_dictionary=False, column_encoding=encoding)


def nothing_in_cells_of_a_fixed_length(path):
    write(path, rows(2_500, cluster=pa.nulls(2_500, pa.binary(1_000_000))), use_dictionary=False)


def a_page_that_is_too_large(path):
    write(path, rows(100, cluster=["q" * 1_000_000 + str(k) for k in range(100)]), use_dictionary=False)


def a_list_without_end(path):
    values = pa.nulls(200_000_000, pa.int8())
    endless = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    doc = pa.StructArray.from_arrays([pa.array(["1"]), endless], ["id", "list"])
    write(path, {"doc": doc, "metric": [{"acc": 1.0}]})


@pytest.mark.fault(
    "attacks",
    "Parquet of less than 2 MB that pyarrow makes 4 to 7 GB of",
    "refused, or rejected row by row, in bounded memory",
)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (one_long_cell_repeated, "is too long"),
        (one_long_cell_that_arrow_keeps_as_a_dictionary, "is too long"),
        (a_long_cell_in_each_page, "is too long"),
        (cells_that_repeat_the_one_before, "is too long"),
        (nothing_in_cells_of_a_fixed_length, "column cluster has a cell of fixed length of 1,000,000 bytes, "),
        (a_page_that_is_too_large, "column cluster has a page of 100,"),
        (a_list_without_end, "column doc.list.list.element has rows of up to 12,800,"),
    ],
)
def test_a_small_table_does_not_fill_the_memory(tmp_path, make, reason):
    path = tmp_path / "a.parquet"
    make(path)
    assert path.stat().st_size < 2_000_000
    read = subprocess.run(
        [sys.executable, "-c", READ.format(limit=ADDRESSES), str(path)], capture_output=True, text=True, check=False
    )
    assert read.returncode == 0, read.stderr[-2_000:]
    found, faults, why = read.stdout.split(" ", 2)
    assert int(found) == 0 < int(faults)
    assert reason in why


@pytest.mark.parametrize(
    ("compression", "version"), [("none", "1.0"), ("snappy", "2.0"), ("gzip", "1.0"), ("zstd", "2.0"), ("lz4", "1.0")]
)
@pytest.mark.parametrize(
    "options",
    [
        {"row_group_size": 7, "data_page_size": 1, "write_batch_size": 3},
        {"use_dictionary": False},
        {
            "use_dictionary": False,
            "column_encoding": {"item_id": "DELTA_BYTE_ARRAY", "model": "DELTA_LENGTH_BYTE_ARRAY"},
        },
        {"dictionary_pagesize_limit": 40, "data_page_size": 50, "write_batch_size": 5, "write_page_checksum": True},
    ],
)
def test_however_a_table_is_written_it_is_read(tmp_path, compression, version, options):
    rng = random.Random(7)
    columns = rows(60, cluster=[rng.choice([None, "law", "a" * 150]) for _ in range(60)])
    columns["item_id"] = [f"{'i' * rng.randrange(9)}{k}" for k in range(60)]
    columns["score"] = [rng.choice([None, 0.0, 0.5, 1.0]) for _ in range(60)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, compression=compression, data_page_version=version, **options)
    read = Read(path)
    assert not read.faults
    assert [(e.item_id, e.score, e.cluster) for e in read.events] == list(
        zip(columns["item_id"], columns["score"], columns["cluster"], strict=True)
    )


def test_a_table_with_a_flipped_byte_is_read_or_named(tmp_path):
    whole = tmp_path / "a.parquet"
    pq.write_table(pa.table(rows(20, cluster=["law", None] * 10)), whole, compression="none")
    data = whole.read_bytes()
    flipped = tmp_path / "b.parquet"
    for place in range(4, len(data) - 8, 11):
        flipped.write_bytes(data[:place] + bytes([data[place] ^ 0x81]) + data[place + 1 :])
        read = Read(flipped)
        assert len(read.events) + len(read.faults) > 0
