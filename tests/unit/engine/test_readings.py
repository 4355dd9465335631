"""What the fold keeps of the reading of files: by the log alone, however it is chunked and wherever it starts again."""

import json

import pytest

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk
from schemas.records.declaration import Declaration
from schemas.records.decode import decode_block
from schemas.records.packed import Segment, SourceSpan, encode_span
from schemas.records.text import Found
from tests.memory_store import MemoryStore

ITEMS = 30


def reject(item=None, *, benchmark="quiz", path="a", **more):
    found = {"source": path, "line": 1, "field": "score", "found": "?", "reason": "no score", "benchmark": benchmark}
    return {**found, **({} if item is None else {"item_id": item}), **more}


def scores(*items, benchmark="quiz"):
    lines = [
        {"benchmark": benchmark, "item_id": str(item), "model": model, "score": int(model == "new")}
        for item in items
        for model in ("new", "old")
    ]
    return decode_block("".join(json.dumps(line) + "\n" for line in lines).encode())


def span(path, start, end, *, events=(), rejects=(), found=None, generation=0, declare=()):
    """A record of a span of a watched file."""
    segment = Segment(list(declare), list(events), list(rejects), end, end, path, tuple(range(1, len(declare) + 1)))
    return encode_span(segment, SourceSpan(path, generation, f"{generation}-{end}", end), start, found)


DECLARED = b'{"declare": "quiz", "items": 30, "order": "trusted"}'
LOG = [
    DECLARED,
    span("a", 0, 10, events=scores(*range(12)), rejects=[reject("20"), reject("5"), reject(), reject("")]),
    span("b", 0, 10, rejects=[reject(None, benchmark=None, path="b")]),
    span("c", 0, 10, rejects=[reject("1", benchmark="other", path="c", refuses=True)]),
    span("c", 10, 20, events=scores(1, benchmark="other")),
    DECLARED.replace(b"trusted", b"completion"),
    span("d", 0, 10, declare=[Declaration(declare="quiz", items=40)], events=scores(12)),
    span("a", 0, 10, events=scores(20), rejects=[reject("21")], generation=1),
    span(
        "e",
        0,
        10,
        events=scores(*range(13, 20)),
        found=Found(notes={"quiz": ["scorer match"]}, failed={"quiz": {"error": 2}}),
    ),
    span("b", 0, 10, events=scores(21, 22), generation=1),
    span("f", 0, 10, events=scores(23), rejects=[reject("24", above=80.0)]),
    span("e", 10, 20, events=scores(24, 25), found=Found(differing={"quiz": "item 1 differs"})),
]


def chunk(first, last):
    return Chunk(0, first, last, range(first, last), LOG[first:last])


def shown(partition):
    """What a partition shows of the reading of files, and its verdict changes."""
    return {
        name: (benchmark.reading, benchmark.unread, sorted(benchmark.changes), dict(benchmark.counters))
        for name, benchmark in partition.benchmarks.items()
    }


def folded(size, *, restart=False):
    """The state after each multiple of `size` records."""
    partition, store, states = Partition(), MemoryStore(), []
    for first in range(0, len(LOG), size):
        last = min(first + size, len(LOG))
        store.commit(partition.fold(chunk(first, last)))
        if restart:
            partition = Partition.restore(store.state)
        states.append(shown(partition))
    return states


def test_what_is_not_read_is_by_file_and_ends_with_its_repair():
    quiz = [state["quiz"] for state in folded(1)]
    assert [unread for _, unread, *_ in quiz] == [0, 2, 2, 2, 2, 2, 2, 1, 1, 0, 1, 0]
    assert [[each.path for each in reading.refused] for reading, *_ in quiz][1:4] == [[], ["b"], ["b"]]
    assert [each.path for each in quiz[3][0].elsewhere] == ["c"]
    assert quiz[4][0].elsewhere == [], "it has a result now"
    assert [each.path for each in quiz[8][0].refused] == ["b"]
    assert quiz[9][0].refused == [], "another generation of the file is read"
    assert folded(1)[9]["other"][0].refused[0].path == "c", "this one ended where it was refused"


def test_refused_declarations_are_kept_with_their_place():
    found = [(each.file, each.place, each.field) for each in folded(1)[6]["quiz"][0].declarations]
    assert found == [("d", 1, "order"), (None, 5, "order")]


def test_scores_on_another_scale_and_items_that_differ_end_the_verdicts_for_good():
    states = folded(1)
    assert [bool(state["quiz"][0].hold) for state in states] == [False] * 10 + [True] * 2
    last = states[-1]["quiz"]
    assert last[0].differing == "item 1 differs"
    assert "--scale 100" in last[0].off_scale
    assert any("invalidated" in each for each in last[2])
    assert [each for each in last[2] if "invalidated" not in each] == [
        each for each in states[9]["quiz"][2] if "invalidated" not in each
    ], "nothing is decided or settled afterwards"


@pytest.mark.parametrize("size", range(1, len(LOG) + 1))
def test_it_does_not_depend_on_the_chunks_nor_on_a_restart(size):
    every = folded(1)
    ends = [min(first + size, len(LOG)) - 1 for first in range(0, len(LOG), size)]
    assert folded(size) == [every[end] for end in ends]
    assert folded(size, restart=True) == [every[end] for end in ends]


def test_a_deleted_board_forgets_what_its_files_lacked():
    partition = Partition()
    partition.fold(chunk(0, len(LOG)))
    records = [b'{"board": "delete", "benchmark": "quiz"}', b'{"board": "reopen", "benchmark": "quiz"}', DECLARED]
    start = partition.off
    partition.fold(Chunk(0, start, start + 3, range(start, start + 3), records))
    reading = partition.benchmarks["quiz"].reading
    assert (reading.hold, reading.declarations, partition.benchmarks["quiz"].unread) == ("", [], 0)


def test_damage_ends_where_the_file_can_be_read_on():
    log = [
        DECLARED,
        span("a", 0, 10, events=scores(1)),
        span("a", 10, 10, rejects=[reject()]),
        span("a", 10, 20, events=scores(2)),
        span("b", 0, 0, rejects=[reject(None, benchmark=None, path="b")]),
        span("b", 0, 10, events=scores(3)),
    ]
    partition, store, shown = Partition(), MemoryStore(), []
    for k, record in enumerate(log):
        store.commit(partition.fold(Chunk(0, k, k + 1, [k], [record])))
        partition = Partition.restore(store.state)
        quiz = partition.benchmarks["quiz"]
        shown.append((quiz.unread, [each.path for each in quiz.reading.refused]))
    assert shown == [(0, []), (0, []), (1, []), (0, []), (0, ["b"]), (0, [])]
