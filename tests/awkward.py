"""One corpus of awkward records, and what each comes to on every way into rankwatch."""

import json
from typing import Any, NamedTuple

GOOD = {"benchmark": "bench", "item_id": "17", "model": "m", "score": 1.0}
FIRST = {"benchmark": "bench", "item_id": "first", "model": "m", "score": 0.0}
LAST = {"benchmark": "bench", "item_id": "last", "model": "m", "score": 1.0}


class Record(NamedTuple):
    """A record and its answer: an event, declaration or end of a run, a field whose value refuses it, or None if it is skipped.

    `remedy` is in the reason of a refusal, and in the clause of a conversion.
    """

    data: bytes
    answer: dict[str, Any] | str | None
    remedy: str = ""


def made(answer, remedy="", **fields):
    """A record with other fields."""
    return Record(json.dumps({**GOOD, **fields}).encode(), answer, remedy)


def changed(remedy="", **pairs):
    """A record that is read with other values than it is written with: `field=(written, read)`."""
    written = {field: pair[0] for field, pair in pairs.items()}
    return made({**GOOD, **{field: pair[1] for field, pair in pairs.items()}}, remedy, **written)


def declaration(remedy="", answer=None, **fields):
    """A declaration, and the same one as it is read (or the field that refuses it)."""
    read = {"declare": "bench", **(answer or {})} if isinstance(answer, dict) else answer
    return Record(json.dumps({"declare": "bench", **fields}).encode(), read, remedy)


def end(remedy="", answer=None, **fields):
    """The end of a run, and the same one as it is read (or the field that refuses it)."""
    read = {"ended": "bench", **answer} if isinstance(answer, dict) else answer
    return Record(json.dumps({"ended": "bench", **fields}).encode(), read, remedy)


TEXT = "is read as text"
WHOLE = "is read as a whole number"
WRITES = "is read as the number or boolean that it writes"
BLANK = "score is blank or NaN and is read as null"
LINE = json.dumps(GOOD).encode()

RECORDS: dict[str, Record] = {
    "a plain event": Record(LINE, GOOD),
    "carriage return": Record(LINE + b"\r", GOOD),
    "spaces around": Record(b" \t" + LINE + b" \t", GOOD),
    "byte order mark": Record(b"\xef\xbb\xbf" + LINE, GOOD),
    "integer item id": changed(f"item_id is a number and {TEXT}", item_id=(17, "17")),
    "whole float as item id": changed(f"item_id is a number and {TEXT}", item_id=(17.0, "17")),
    "integer model": changed(f"model is a number and {TEXT}", model=(7, "7")),
    "integer benchmark": changed(f"benchmark is a number and {TEXT}", benchmark=(2024, "2024")),
    "integer cluster": changed(f"cluster is a number and {TEXT}", cluster=(3, "3")),
    "fraction as item id": made("item_id", "is not a string", item_id=1.5),
    "boolean item id": made("item_id", "is not a string", item_id=True),
    "null item id": made("item_id", "is not a string", item_id=None),
    "empty item id": made("item_id", "is too short", item_id=""),
    "score as text": changed(f"score is text and {WRITES}", score=("1", 1.0)),
    "fraction as text": changed(f"score is text and {WRITES}", score=(" 0.5 ", 0.5)),
    "boolean": changed(score=(True, True)),
    "boolean as text": changed(f"score is text and {WRITES}", score=("true", True)),
    "False as text": changed(f"score is text and {WRITES}", score=("False", False)),
    "null": changed(score=(None, None)),
    "null as text": changed(BLANK, score=("null", None)),
    "other text": made("score", "is not a number", score="correct"),
    "decimal comma": made("score", "is not a number", score="0,5"),
    "empty text": changed(BLANK, score=("", None)),
    "percent": made("score", "--scale 100", score=85),
    "percent as text": made("score", "--scale 100", score="85"),
    "percent sign": made("score", "is not a number", score="85%"),
    "beyond percent": made("score", "out of range", score=1200),
    "negative": made("score", "out of range", score=-0.1),
    "NaN": changed(BLANK, score=(float("nan"), None)),
    "Infinity": made("score", "use a number from 0 to 1", score=float("inf")),
    "no score": Record(json.dumps({k: v for k, v in GOOD.items() if k != "score"}).encode(), "score", "missing"),
    "list as score": made("score", "is not a number", score=[1]),
    "nested arrays that are not read": Record(LINE[:-1] + b', "attributes": [[[1], [2]], {"a": []}]}', GOOD),
    "array of events": Record(b"[" + LINE + b"]", "record", "use a JSON object"),
    "nested array": Record(b"[[[1]]]", "record", "use a JSON object"),
    "duplicate key": Record(LINE[:-1] + b', "item_id": "18"}', "item_id", "twice"),
    "duplicate key of another type": Record(
        LINE.replace(b'"score": 1.0', b'"score": "x", "score": 0'), "score", "twice"
    ),
    "repeat as text": changed("repeat is text and is read as a whole number", repeat=("2", 2)),
    "whole float as epoch": changed("epoch is a decimal number and is read as a whole number", epoch=(1.0, 1)),
    "null repeat": made(GOOD, "repeat is null and is read as 0", repeat=None),
    "half a surrogate pair as run": made("run", "half a surrogate pair", run="\ud800"),
    "half a surrogate pair in a role": made("run", "half a surrogate pair", role={"of": "\udfff"}),
    "half a repeat": made("repeat", "whole number", repeat=1.5),
    "half a line": Record(LINE[:40], "record", "is not valid JSON"),
    "not UTF-8": Record(LINE.replace(b'"17"', b'"\xff"'), "record", "is not valid UTF-8"),
    "UTF-16 without a mark": Record(LINE.decode().encode("utf-16-le"), "record", "is not valid JSON"),
    "very long record": Record(
        LINE[:-1] + b', "attributes": "' + b"x" * 1_000_000 + b'"}', "record", "more than 1,000,000"
    ),
    "deeply nested": Record(LINE[:-1] + b', "attributes": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", "record", "nested"),
    "blank": Record(b"", None),
    "white space": Record(b" \t\r", None),
    "a declaration": declaration(answer={"items": 3}, items=3),
    "a declaration after a byte order mark": Record(
        b'\xef\xbb\xbf{"declare":"bench","items":3}', {"declare": "bench", "items": 3}
    ),
    "a declaration with spaces around": Record(b' {"declare":"bench","items":3} \r', {"declare": "bench", "items": 3}),
    "integer benchmark of a declaration": declaration(
        f"declare is a number and {TEXT}", {"declare": "2024", "items": 3}, declare=2024, items=3
    ),
    "item count as text": declaration(f"items is text and {WHOLE}", {"items": 3}, items="3"),
    "whole float as item count": declaration(f"items is a decimal number and {WHOLE}", {"items": 3}, items=3.0),
    "repeats as text": declaration(f"repeats is text and {WHOLE}", {"items": 3, "repeats": 2}, items=3, repeats="2"),
    "version as text": declaration(f"version is text and {WHOLE}", {"items": 3, "version": 2}, items=3, version="2"),
    "all repeats": declaration(answer={"items": 3, "repeats": "all"}, items=3, repeats="all"),
    "alpha as text": declaration(
        "alpha is text and is read as a number", {"items": 3, "alpha": 0.01}, items=3, alpha="0.01"
    ),
    "integer item ids": declaration(
        f"item_ids holds a number, which {TEXT}", {"item_ids": ["first", "17", "last"]}, item_ids=["first", 17, "last"]
    ),
    "integer model in an alias": declaration(
        f"aliases holds a number, which {TEXT}", {"items": 3, "aliases": {"m": "7"}}, items=3, aliases={"m": 7}
    ),
    "integer models in a family": declaration(
        "family names models by numbers, or has a size in text; they are converted",
        {"items": 3, "family": {"pairs": [["7", "m"]], "size": 2, "policy": "capacity"}},
        items=3,
        family={"pairs": [[7, "m"]], "size": "2", "policy": "capacity"},
    ),
    "null item count": declaration(answer={"items": None}, items=None),
    "half an item": declaration(answer="items", remedy="whole number", items=1.5),
    "item count of no items": declaration(answer="items", remedy="whole number", items="none"),
    "boolean benchmark of a declaration": declaration(answer="declare", remedy="is not a string", declare=True),
    "unknown field of a declaration": declaration(answer="item", remedy="is unknown", item=3),
    "the end of a run": end(answer={"model": "m"}, model="m"),
    "the end of a run after a byte order mark": Record(
        b'\xef\xbb\xbf{"ended":"bench","model":"m"}', {"ended": "bench", "model": "m"}
    ),
    "the end of an integer model": end(f"model is a number and {TEXT}", {"model": "7"}, model=7),
    "the end of an integer benchmark": end(
        f"ended is a number and {TEXT}", {"ended": "2024", "model": "m"}, ended=2024, model="m"
    ),
    "the end of an epoch as text": end(f"epoch is text and {WHOLE}", {"model": "m", "epoch": 2}, model="m", epoch="2"),
    "base as a whole float": end(
        f"base is a decimal number and {WHOLE}", {"model": "m", "epoch": 2, "base": 1}, model="m", epoch=2, base=1.0
    ),
    "the end of a null epoch": end(answer={"model": "m"}, model="m", epoch=None),
    "the end of a boolean model": end(answer="model", remedy="is not a string", model=True),
    "the end of half an epoch": end(answer="epoch", remedy="whole number", model="m", epoch=1.5),
}
