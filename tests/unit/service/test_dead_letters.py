"""Dead letters are read, chosen and made messages again."""

import asyncio
import json

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.files.dead_letter_file import DeadLetterFile
from monitor.publish.dead_letter_topic import DeadLetterTopic, read_letter
from monitor.service.operations.dead_letters import Choice, KeptLetter, in_file, kinds, replay_of
from schemas.records.chunks import Chunk, DeadLetter
from schemas.records.operations import BoardChange, encode_board_change
from tests.hostile_names import ACCEPTED


def event(**fields):
    return {"benchmark": "b", "item_id": "1", "model": "m", "score": 1} | fields


def letters(*records):
    """What the fold rejects of some records."""
    raw = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    return Partition().fold(Chunk(0, 0, len(raw), range(len(raw)), raw)).dead_letters


def replayed(*chosen):
    return asyncio.run(replay_of([KeptLetter(each) for each in chosen]))


def closed():
    """What a board refuses that is archived, or does not exist."""
    archive, delete = (encode_board_change(BoardChange(action, "b")) for action in ("archive", "delete"))
    ended = {"ended": "b", "model": "m"}
    declared = {"declare": "b", "items": 9}
    late = event(item_id="late")
    return letters(
        declared, event(), archive, late, late, ended, declared | {"items": 10}, archive, delete, event(), delete
    )


def test_what_was_refused_is_sent_again_once_and_never_what_operators_did():
    refused = closed()
    assert sum(each.raw.startswith('{"board"') for each in refused) == 2
    again = replayed(*refused)
    sent = [json.loads(raw) for _, raw in again.messages]
    assert not [each for each in sent if "board" in each]
    assert again.unreadable == 2
    assert {name for name, _ in again.messages} == {"b"}
    events = [each for message in sent for each in message.get("events", [message])]
    assert [each["item_id"] for each in events if "item_id" in each] == ["late", "1"], "each record once"


def test_what_cannot_be_read_is_counted_and_omitted():
    bad = letters(b"no JSON", event(score=7), event(item_id="x" * 3_000, score=7), b"\xff\x00")
    assert len(bad) == 4
    assert replayed(*bad) == ([], 0, 4)


def test_a_letter_that_claims_another_benchmark_sends_nothing():
    letter = DeadLetter(1, 0, "log", None, "x", "y", "z", "mine", json.dumps(event(benchmark="yours")))
    assert replayed(letter) == ([], 0, 1)


def test_conditions_hold_together():
    kept = KeptLetter(DeadLetter(1, 0, "log", None, "score", "1.2", "Out of range", "mmlu-pro", "{", "ci"), 3, 100.0)
    nobody = KeptLetter(DeadLetter(1, 0, "log", None, "record", "{", "is not JSON", None, "{"))
    for choice in (Choice(), Choice("mmlu*"), Choice(producer="ci", reason="out of RANGE"), Choice(since=100.0)):
        assert choice.has(kept), choice
    for choice in (Choice("gsm8k"), Choice("mmlu*", "other"), Choice(reason="JSON"), Choice(since=100.5)):
        assert not choice.has(kept), choice
    assert Choice().has(nobody)
    assert not any(choice.has(nobody) for choice in (Choice("m*"), Choice(producer="c?"), Choice(since=0.0)))
    assert [(count, kind.reason) for kind, count, _ in kinds([nobody, kept, kept])] == [
        (2, "Out of range"),
        (1, "is not JSON"),
    ]


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_letter_is_the_same_in_the_file_and_in_the_topic(name, tmp_path):
    letter = DeadLetter(
        7, 2, f"/{name}.jsonl", 3, "score", name, f"is {name}", name, json.dumps(event(model=name)), "ci"
    )
    with DeadLetterFile(tmp_path / "dead-letters.jsonl") as file:
        file.write([letter])
    assert list(in_file(tmp_path / "dead-letters.jsonl")) == [KeptLetter(letter)]
    message = DeadLetterTopic(None, "evals")._message(5, letter, 4)
    readable = name.encode("utf-8", "backslashreplace").decode() == name
    assert not readable or read_letter(message.key, message.value, message.headers) == (5, letter)


def test_a_file_that_is_cut_or_something_else(tmp_path):
    path = tmp_path / "dead-letters.jsonl"
    with DeadLetterFile(path) as file:
        file.write(letters(b"no JSON", b"none either"))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert len(list(in_file(path))) == (cut >= first)
    for text in (b"{}\n", b"[1]\n", b"\xff\n", b"1\n"):
        path.write_bytes(whole + text)
        with pytest.raises(ValueError, match=r"jsonl:3: this line is not a dead letter"):
            list(in_file(path))
