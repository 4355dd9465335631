"""Short segments are joined to what one fold takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.engine.state.pairs.counts import CHUNK_CELLS
from monitor.ingest.fold_files import join_segments
from schemas.records.packed import Segment


def segments(sizes):
    """Segments whose events are numbered."""
    start = 0
    for number, size in enumerate(sizes):
        yield Segment([], list(range(start, start + size)), [{"line": number}], number, number, f"file {number}")
        start += size


@given(st.lists(st.integers(0, CHUNK_CELLS + 500), max_size=12))
def test_nothing_is_lost_and_a_join_fits_a_fold(sizes):
    joined = list(join_segments(segments(sizes)))
    assert [event for part, _ in joined for event in part.events] == list(range(sum(sizes)))
    assert [reject["line"] for part, _ in joined for reject in part.rejects] == list(range(len(sizes)))
    for part, begins in joined:
        assert len(part.events) <= CHUNK_CELLS or len(begins) == 1
        for place, path in begins:
            number = int(path.split()[1])
            assert part.events[place : place + 1] in ([sum(sizes[:number])], [])


def test_a_declaration_begins_a_join():
    first, second = segments([2, 3])
    joined = list(join_segments([first, second._replace(declarations=["declared"])]))
    assert [len(part.events) for part, _ in joined] == [2, 3]


@pytest.mark.parametrize(("sizes", "joins"), [([CHUNK_CELLS // 2] * 4, 2), ([CHUNK_CELLS // 2 + 1] * 4, 4), ([], 0)])
def test_a_join_is_closed_before_it_is_too_long(sizes, joins):
    assert len(list(join_segments(segments(sizes)))) == joins
