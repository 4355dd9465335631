import gzip
import io
import random
import threading
import time
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.files.streams.blocks import BlockReader, new_hash
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.read import prefetch
from schemas.records.events import MAX_LINE_BYTES
from tests.unit.files.result_lines import blocks, event, lines, read_blocks

MANY = lines(*(event(i) for i in range(2_000)))
SHUFFLED = lines(*(event(random.Random(i).random()) for i in range(5_000)))  # does not compress to nothing


def contents(parts) -> bytes:
    return b"".join(b.data for b in parts)


def byte_by_byte(data: bytes) -> bytes:
    """Gunzip what comes before the damage: given single bytes, zlib hands over everything before it fails."""
    readable, inflate = b"", zlib.decompressobj(31)
    try:
        for k in range(len(data)):
            readable += inflate.decompress(data[k : k + 1])
    except zlib.error:
        return readable
    raise AssertionError("there is no damage")


def assert_joined(parts, start=0, line=1):
    for block in parts:
        assert (block.start, block.first_line) == (start, line)
        start, line = block.end, line + block.data.count(b"\n")


@given(
    st.lists(
        st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"").lstrip(b"{")) | st.just(b'{"a": {"b": 1}}'),
        max_size=20,
    ),
    st.booleans(),
    st.integers(1, 40),
    st.booleans(),
)
def test_blocks_hold_whole_lines_and_join_up(tmp_path_factory, rows, ended, block_bytes, gz):
    data = b"\n".join(rows) + (b"\n" if ended else b"")
    path = tmp_path_factory.mktemp("blocks") / ("a.jsonl.gz" if gz else "a.jsonl")
    parts = blocks(path, gzip.compress(data) if gz or data[:2] == b"\x1f\x8b" else data, block_bytes=block_bytes)
    lines, last = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
    read = len(data) if last.startswith(b"{") else len(lines)
    assert contents(parts) == (lines + last + b"\n" if read > len(lines) else lines)
    assert all(b.data.endswith(b"\n") for b in parts)
    assert_joined(parts)
    assert (parts[-1].end if parts else 0) == read


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])
def test_gzip_members_follow_each_other_even_after_padding(tmp_path, name):
    half = len(MANY) // 2
    data = gzip.compress(MANY[:half]) + gzip.compress(b"") + b"\0" * 512 + gzip.compress(MANY[half:]) + b"\0" * 7
    assert contents(blocks(tmp_path / name, data, block_bytes=1_000)) == MANY


@pytest.mark.parametrize("block_bytes", [100, 5_000, 1 << 18])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_gzip_counts_up_to_where_it_breaks_off(tmp_path, share, block_bytes):
    data = gzip.compress(SHUFFLED)
    cut = data[: 5 + int(share * len(data))]
    readable = zlib.decompressobj(31).decompress(cut)
    readable = readable[: readable.rfind(b"\n") + 1]
    path = tmp_path / "a.jsonl.gz"
    *intact, last = blocks(path, cut, block_bytes=block_bytes)
    assert contents(intact) == readable
    assert last.start == last.end == len(readable)
    assert last.fault.field == "file"
    assert f"breaks off at byte {len(cut):,} of the file, byte {len(readable):,} of its contents" in last.fault.found
    assert contents(read_blocks(path, final=False)) == readable, "while it is written this is no fault"


@pytest.mark.parametrize("block_bytes", [100, 5_000, 1 << 18])
def test_a_damaged_gzip_counts_up_to_the_damage(tmp_path, block_bytes):
    data = bytearray(gzip.compress(SHUFFLED))
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    readable = byte_by_byte(bytes(data))
    parts = blocks(tmp_path / "a.jsonl.gz", bytes(data), block_bytes=block_bytes)
    *good, last = parts
    assert last.fault.field == "file"
    assert "damaged" in last.fault.found
    whole = readable[: readable.rfind(b"\n") + 1]
    assert contents(good)[: len(whole)] == whole
    # At most the bytes of the one symbol group that zlib checks ahead are more than the oracle saw.
    assert len(contents(good)) - len(whole) < 600


def test_a_wrong_checksum_is_damage_after_everything(tmp_path):
    data = bytearray(gzip.compress(MANY))
    data[-6] ^= 1
    *intact, last = blocks(tmp_path / "a.jsonl.gz", bytes(data))
    assert contents(intact) == MANY
    assert "a checksum or a code in it is wrong" in last.fault.found


@pytest.mark.parametrize("data", [b"plain text\n" * 3, gzip.compress(MANY) + b"trailing"])
def test_what_is_not_gzip_in_a_gz_file_is_damage(tmp_path, data):
    *intact, last = blocks(tmp_path / "a.jsonl.gz", data)
    assert contents(intact) in (b"", MANY)
    assert "not gzip data" in last.fault.found


def test_a_last_line_without_newline_waits_unless_the_file_is_complete_and_it_is_a_record(tmp_path):
    path = tmp_path / "a.jsonl"
    assert contents(blocks(path, b"one\ntwo", final=False)) == b"one\n"
    with BlockReader(path) as reader:
        assert reader.next(final=False).data == b"one\n"
        assert reader.next(final=False) is None
        with path.open("ab") as file:
            file.write(b' and three\n{"fo"')
        block = reader.next(final=False)
        assert (block.data, block.start, block.first_line) == (b"two and three\n", 4, 2)
        assert reader.next(final=True) is None, "it may be half-written"
        with path.open("ab") as file:
            file.write(b":4}")
        assert reader.next(final=False) is None
        block = reader.next(final=True)
        assert (block.data, block.end, block.first_line) == (b'{"fo":4}\n', 26, 3)
        with path.open("ab") as file:
            file.write(b"\nfive\n")
        block = reader.next(final=True)
        assert (block.data, block.start, block.first_line) == (b"\nfive\n", 26, 3)
        assert reader.line == 4


@given(st.integers(0, 40))
@settings(max_examples=41)
def test_reading_goes_on_from_any_position(tmp_path_factory, position):
    path = tmp_path_factory.mktemp("position") / "a.jsonl"
    data = b"".join(b"line %d\n" % k for k in range(5))
    path.write_bytes(data)
    position = min(position, len(data))
    rest = list(read_blocks(path, position, block_bytes=3))
    assert contents(rest) == data[position:]
    assert_joined(rest, position, data[:position].count(b"\n") + 1)


def test_blocks_carry_the_hash_of_what_is_before_them(tmp_path):
    path = tmp_path / "a.jsonl"
    long = b"x" * (2 * MAX_LINE_BYTES)
    data = b"\xef\xbb\xbf" + MANY + long + b"\n" + MANY + b'{"last": 1}'
    path.write_bytes(data)
    with BlockReader(path, block_bytes=50_000, hashing=True) as reader:
        while (block := reader.next(final=True)) is not None:
            before, upto = new_hash(), new_hash()
            before.update(data[: block.start])
            upto.update(data[: block.end])
            assert block.before.digest() == before.digest()
            assert reader.hash.digest() == upto.digest()
        assert block is None
        assert reader.position == len(data)


def test_the_number_of_lines_in_a_block_is_bounded(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(MANY)
    with BlockReader(path, max_lines=300) as reader:
        parts = list(iter(lambda: reader.next(final=True), None))
    assert [b.data.count(b"\n") for b in parts] == [300] * 6 + [200]
    assert contents(parts) == MANY
    assert_joined(parts)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("block_bytes", [70_000, MAX_LINE_BYTES])
def test_a_line_has_a_longest_length(tmp_path, more, ending, block_bytes):
    line = b"x" * (MAX_LINE_BYTES + more)
    before, long, *after = blocks(tmp_path / "a.jsonl", b"one\n" + line + ending + b"two\n", block_bytes=block_bytes)
    if more:
        assert long.fault.field == "record"
        assert (long.start, long.end, long.first_line) == (4, 4 + len(line) + len(ending), 2)
        assert contents(after) == b"two\n"
        assert after[0].first_line == 3
    else:
        assert long.fault is None
        assert contents([long, *after]) == line + ending + b"two\n"
    assert before.data == b"one\n"


@pytest.mark.parametrize("ended", [False, True])
def test_a_ten_megabyte_line_is_named_and_never_held(tmp_path, ended):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n" + b"x" * 10_000_000 + (b"\ntwo\n" if ended else b""))
    tracemalloc.start()
    try:
        parts = list(read_blocks(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MAX_LINE_BYTES
    assert parts[1].fault.found == "10,000,000 bytes"
    assert parts[1].end == path.stat().st_size - (4 if ended else 0)
    assert contents(parts[2:]) == (b"two\n" if ended else b"")


def test_a_block_size_has_bounds(tmp_path):
    with pytest.raises(ValueError, match="block_bytes is 0; use a size from 1"):
        BlockReader(tmp_path / "a.jsonl", block_bytes=0)


def test_prefetch_gives_everything_in_order_and_hands_errors_on():
    def some():
        yield from range(100)
        raise OSError("the disk")

    taken = []
    with pytest.raises(OSError, match="the disk"):
        taken.extend(prefetch(some()))  # extend keeps what came before the error
    assert taken == list(range(100))


def test_prefetch_is_bounded_and_ends_with_its_taker():
    made = []

    def endless():
        while True:
            made.append(len(made))
            yield made[-1]

    ahead = prefetch(endless(), depth=3)
    assert [next(ahead) for _ in range(5)] == [0, 1, 2, 3, 4]
    time.sleep(0.05)
    assert len(made) <= 5 + 3 + 1
    ahead.close()
    assert not [t for t in threading.enumerate() if t.name == "prefetch"]


def test_gzip_that_is_written_piece_by_piece_is_read_as_it_comes(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(SHUFFLED)
    data = packed.getvalue()
    path.write_bytes(b"")
    got = b""
    with BlockReader(path) as reader:
        for start in range(0, len(data), 997):
            with path.open("ab") as file:
                file.write(data[start : start + 997])
            while (block := reader.next(final=False)) is not None:
                got += block.data
    assert got == SHUFFLED


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_utf16_in_any_pieces_is_the_same_text(tmp_path, codec, size):
    """A character may be cut anywhere, and a file may end inside one."""
    text = "\ufeff" * (codec != "utf-16") + "".join(f'{{"item": "ü😀{k}"}}\n' for k in range(20))
    path = tmp_path / "a.jsonl"
    path.write_bytes(text.encode(codec) + b"\n")
    stream = open_stream(path)
    data = b"".join(iter(lambda: stream.read(size), b""))
    assert data.decode() == text.lstrip("\ufeff")
    assert stream.unfinished == "the UTF-16 text breaks off inside a character"
    stream.close()


def test_damaged_utf16_is_read_up_to_the_damage(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes("good\n".encode("utf-16") + b"\x00\xdcx\x00\n\x00")
    stream = open_stream(path)
    assert b"".join(iter(lambda: stream.read(4), b"")) == b"good\n"
    assert "the UTF-16 text is damaged" in stream.damage
    stream.close()
