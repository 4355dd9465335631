"""Digests: what is updated chunk by chunk equals what a load computes from all bytes, and any change is found."""

import random

import numpy as np
import pytest

from monitor.store.seal import BenchmarkSeal, FieldHashes, hash_sum


def test_hashes_of_cells_differ_and_add_up():
    rows, contestants = np.meshgrid(np.arange(200), np.arange(30))
    codes = np.arange(6_000) % 5
    single = {
        hash_sum(np.array([r]), k, np.array([c]))
        for r, k, c in zip(rows.ravel(), contestants.ravel(), codes, strict=True)
    }
    assert len(single) == 6_000
    assert sum(single) % 2**64 == hash_sum(rows.ravel(), contestants.ravel(), codes)
    assert hash_sum(np.zeros(0, np.int64), 3, np.zeros(0, np.int64)) == 0


def test_the_order_of_columns_counts():
    one, other = np.array([1]), np.array([2])
    assert hash_sum(one, other) != hash_sum(other, one)


def test_scores_in_chunks_have_the_digest_of_the_whole_matrix():
    rng = np.random.default_rng(3)
    matrix, seal = np.zeros((20, 6), np.int64), BenchmarkSeal()
    for _ in range(30):
        row, contestant = np.nonzero((matrix < 2) & (rng.random(matrix.shape) < 0.2))
        filled = matrix[row, contestant] == 1
        code = np.where(filled, 2, rng.integers(1, 9, row.size))
        matrix[row, contestant] = code
        seal.scores(row, contestant, code, (row[filled], contestant[filled]))
    loaded = BenchmarkSeal()
    loaded.replace_scores(list(matrix.T))
    assert seal.digests() == loaded.digests()
    matrix[3, 2] += 1
    loaded.replace_scores(list(matrix.T))
    assert seal.digests() != loaded.digests()


def test_peaks_that_are_overwritten_have_the_digest_of_the_last():
    rng, seal, peaks = np.random.default_rng(4), BenchmarkSeal(), np.zeros(50)
    for _ in range(20):
        pair = np.unique(rng.integers(0, 50, 7))
        peaks[pair] = np.where(rng.random(pair.size) < 0.2, 0, rng.normal(size=pair.size))
        seal.peaks(pair, peaks[pair])
    loaded = BenchmarkSeal()
    loaded.load_peaks(peaks)
    assert seal.digests() == loaded.digests()


def test_growing_strings_and_tables():
    rng, seal, loaded = random.Random(5), BenchmarkSeal(), BenchmarkSeal()
    rows, table = b"", np.zeros((9, 4), np.int64)
    for _ in range(10):
        data = rng.randbytes(rng.randint(0, 40))
        assert seal.grow("rows", data) == len(rows)
        rows += data
        place = np.array(sorted(rng.sample(range(9), 3)))
        table[place] = rng.randint(0, 2**60)
        seal.write("arrival", place, table[place])
    loaded.grow("rows", rows)
    loaded.load_table("arrival", table[: len(seal._tables["arrival"]) // 32].tobytes())
    assert seal.digests() == loaded.digests()
    for damaged in (rows[:-1], rows + b"x", bytes([rows[0] ^ 1]) + rows[1:], rows + rows):
        other = BenchmarkSeal()
        other.grow("rows", damaged)
        assert other.digests()["rows"] != seal.digests()["rows"]


def test_fields_that_are_written_again():
    one, other = FieldHashes("at"), FieldHashes("at")
    one.set({"a": 1, "b": "x", "at": 5})
    one.set({"a": 2})
    one.set({"a": 3, "c": b"y"}, once=True)
    other.set({b"c": b"y", b"a": b"2", b"b": b"x"})
    assert (one.sum, len(one)) == (other.sum, 3)


@pytest.mark.parametrize("fields", [{"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}])
def test_names_and_values_are_not_run_together(fields):
    hashes, joined = FieldHashes(), FieldHashes()
    hashes.set(fields)
    joined.set({"abc": ""})
    assert hashes.sum != joined.sum
