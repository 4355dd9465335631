"""Archives of a state that no export writes: whoever changes one can compute its digest too."""

import io
import json
from hashlib import blake2b

import pytest

from monitor.store.transfer.archive import ArchiveDamaged, read_archive

HEADER = {"topic": "events", "state_version": 12, "statistics_version": 3, "rankwatch_state": 1}
PARTITION = {"partition": 0, "meta": {"off": "7"}, "relays": {}, "outbox": [["1-1", {"latches": "AAAA", "count": "1"}]]}
BENCHMARK = {
    "partition": 0,
    "benchmark": "quiz",
    "born": [0, 0],
    "spec": {"a": "1"},
    "strings": {"m": "AAAA"},
    "scores": ["AAAA"],
}


def read(*lines):
    """Read an archive of these lines, with the right last one."""
    data = [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines]
    end = {"end": len(data), "blake2b": blake2b(b"".join(data), digest_size=16).hexdigest()}
    header, rest = read_archive(io.BytesIO(b"".join(data) + json.dumps(end).encode() + b"\n"))
    return [header, *rest]


def test_what_an_export_writes_is_read():
    _, partition, benchmark = read(HEADER, PARTITION, BENCHMARK)
    assert partition.outbox == [("1-1", {"latches": b"\0\0\0", "count": "1"})]
    assert (benchmark.strings, benchmark.scores) == ({"m": b"\0\0\0"}, [b"\0\0\0"])


@pytest.mark.fault(
    "attacks",
    "an exported state with fields of other kinds and the right digest",
    "refused with the line; nothing is imported",
)
@pytest.mark.parametrize(
    ("line", "change", "found"),
    [
        (1, {"topic": 5}, r"line 1 .*\$\.topic"),
        (1, {"state_version": "a"}, r"line 1 .*\$\.state_version"),
        (2, {"partition": "x:y"}, r"line 2 .*\$\.partition"),
        (2, {"partition": -1}, r"line 2 .*\$\.partition"),
        (2, {"partition": 10**30}, r"line 2 .*"),
        (2, {"meta": [1]}, r"line 2 .*\$\.meta"),
        (2, {"meta": {"off": None}}, r"line 2 .*\$\.meta"),
        (2, {"relays": {"a": None}}, r"line 2 .*\$\.relays"),
        (2, {"outbox": [["no id", {"latches": "", "count": "1"}]]}, r"line 2 .*\$\.outbox"),
        (2, {"outbox": [["1-1", {"latches": "", "count": "9" * 5_000}]]}, r"line 2 .*outbox"),
        (2, {"more": 1}, r"line 2 .*`more`"),
        (3, {"partition": [0]}, r"line 3 .*\$\.partition"),
        (3, {"benchmark": 5}, r"line 3 .*\$\.benchmark"),
        (3, {"benchmark": "a\n\u202eb"}, r"line 3: the name of the benchmark .*U\+"),
        (3, {"benchmark": ""}, r"line 3: the name of the benchmark is empty"),
        (3, {"born": "abc"}, r"line 3 .*\$\.born"),
        (3, {"born": [10**40, -5]}, r"line 3 .*"),
        (3, {"spec": {"a": None}}, r"line 3 .*\$\.spec"),
        (3, {"strings": {"m": "%"}}, r"line 3 .*"),
        (3, {"scores": 7}, r"line 3 .*\$\.scores"),
    ],
)
def test_a_changed_archive_is_refused_by_its_line(line, change, found):
    lines = [HEADER, PARTITION, BENCHMARK]
    lines[line - 1] = lines[line - 1] | change
    with pytest.raises(ArchiveDamaged, match=found):
        read(*lines)


def test_nested_json_is_refused():
    with pytest.raises(ArchiveDamaged, match="line 2 is not JSON"):
        read(HEADER, b"[" * 200_000 + b"\n")
