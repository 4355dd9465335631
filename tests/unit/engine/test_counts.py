"""Pair sums by matrix products, against loops over cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.engine.state.pairs import counts
from monitor.engine.state.pairs.counts import CHUNK_CELLS, chunk_counts, matrix_counts
from schemas.records.scores import ABSENT, ONE, ZERO
from stats.numerics.pairs import all_pairs, chosen, pair_count, pair_index, pair_members, pairs_of


def brute_force(codes):
    """n, b, c of every pair (i < j) of a table of codes, as a dictionary."""
    contestants = codes.shape[1]
    counts = {}
    for j in range(contestants):
        for i in range(j):
            both = [(x, y) for x, y in codes[:, [i, j]].tolist() if x >= ZERO and y >= ZERO]
            counts[i, j] = (len(both), both.count((ONE, ZERO)), both.count((ZERO, ONE)))
    return counts


def split(rng, rows, contestants, codes, share):
    """A random table before and after some of its absent cells were filled, and the new scored cells."""
    after = rng.choice(codes, (rows, contestants)).astype(np.uint32)
    fresh = (rng.random((rows, contestants)) < share) & (after >= ZERO)
    before = np.where(fresh, ABSENT, after).astype(np.uint32)
    row, contestant = np.nonzero(fresh)
    shuffled = rng.permutation(row.size)
    row, contestant = row[shuffled], contestant[shuffled]
    return before, after, row, contestant, after[row, contestant]


def gained(before, after, row, contestant, code):
    gains = chunk_counts(before, after, row, contestant, code)
    pair = chosen(gains.pair, np.arange(gains.n.size))
    i, j = pair_members(pair)
    keys = list(zip(i.tolist(), j.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    values = zip(*(array.tolist() for array in gains[1:]), strict=True)
    return {key: value for key, value in zip(keys, values, strict=True) if value != (0, 0, 0)}


def difference(before, after):
    old, new = brute_force(before), brute_force(after)
    gains = {key: tuple(y - x for x, y in zip(old[key], new[key], strict=True)) for key in new}
    return {key: value for key, value in gains.items() if value != (0, 0, 0)}


@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 7), st.sampled_from([0.02, 0.3, 1.0]), st.booleans())
def test_a_chunk_adds_what_the_tables_differ_by(seed, rows, contestants, share, graded):
    codes = [0, 1, 2, 3, 4, 300] if graded else [0, 1, 2, 3]
    cells = split(np.random.default_rng(seed), rows, contestants, codes, share)
    assert gained(*cells) == difference(*cells[:2])


@pytest.mark.parametrize("codes", [[0, 1, 2, 3], [0, 1, 2, 3, 9]])
@pytest.mark.parametrize(
    ("rows", "contestants", "share", "columns"),
    [
        (12, 30, 1.0, 30),  # all models, dense
        (300, 12, 0.9, 12),  # counts that need wide digits, all of few models
        (200, 30, 0.6, 30),  # the same, all models
        (160, 80, 0.013, 80),  # all models, sparse
        (60, 80, 1.0, 3),  # few models
        (300, 60, 1.0, 4),
        (60, 80, 1.0, 1),  # one model
        (300, 5, 1.0, 1),
        (600, 80, 0.01, 6),  # few models, sparse
    ],
)
def test_every_kind_of_product_agrees_with_loops(rows, contestants, share, columns, codes):
    rng = np.random.default_rng(1)
    before, after, row, contestant, code = split(rng, rows, contestants, codes, share)
    kept = np.isin(contestant, rng.permutation(contestants)[:columns])
    still = np.ones_like(after, bool)
    still[row[kept], contestant[kept]] = False
    after = np.where(still, before, after)
    cells = before, after, row[kept], contestant[kept], code[kept]
    assert gained(*cells) == difference(before, after)


@pytest.mark.parametrize("contestants", [2, 3])
def test_counts_of_the_largest_chunk_are_exact(contestants):
    rows = CHUNK_CELLS // (contestants - 1)
    before = np.full((rows, contestants), ABSENT, np.uint8)
    before[:, 0] = ZERO
    after = before.copy()
    after[:, 1:] = ONE
    row, contestant = np.nonzero(after != before)
    gains = gained(before, after, row, contestant, after[row, contestant].astype(np.uint32))
    assert gains[0, 1] == (rows, 0, rows)
    assert all(gains[i, j] == (rows, 0, 0) for i, j in gains if i > 0)


@given(st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 6))
def test_a_whole_matrix_is_counted_as_by_loops(seed, rows, contestants):
    codes = np.random.default_rng(seed).choice([0, 1, 2, 3, 4, 300], (rows, contestants)).astype(np.uint32)
    i, j = all_pairs(contestants)
    counts = zip(*(array.tolist() for array in matrix_counts(codes)), strict=True)
    assert dict(zip(zip(i.tolist(), j.tolist(), strict=True), counts, strict=True)) == brute_force(codes)


def test_a_matrix_of_several_slabs_is_counted_like_its_parts():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, (2 * counts._SLAB_ROWS + 5, 3)).astype(np.uint8)
    halves = [matrix_counts(codes[:9_000]), matrix_counts(codes[9_000:])]
    for whole, first, second in zip(matrix_counts(codes), *halves, strict=True):
        assert whole.tolist() == (first + second).tolist()


@given(st.integers(0, 40), st.data())
def test_pairs_of_touched_contestants_hold_each_such_pair_once(contestants, data):
    touched = data.draw(st.sets(st.integers(0, contestants - 1)) if contestants else st.just(set()))
    i, j = pairs_of(np.array(sorted(touched), np.int64), contestants)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    need = {(p, q) for q in range(contestants) for p in range(q) if p in touched or q in touched}
    assert len(set(pairs)) == len(pairs)
    assert need <= set(pairs)
    if 2 * len(touched) < contestants:
        assert need == set(pairs)


@given(st.integers(0, 10**6))
def test_pair_indices_are_undone(start):
    pair = np.arange(start, start + 50)
    i, j = pair_members(pair)
    assert ((i >= 0) & (i < j)).all()
    assert (pair_index(i, j) == pair).all()
    assert pair_count(int(j[-1])) <= pair[-1] < pair_count(int(j[-1]) + 1)
