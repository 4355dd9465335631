"""promptfoo: ``promptfoo eval -o results.json``."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import field_at, item_of, read_document, scalars
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import shorten

_ERROR: Final = 2
_LONGEST_LABEL: Final = 60


class Provider(msgspec.Struct):
    """What answered."""

    id: str = ""
    label: str | None = None

    @property
    def name(self) -> str:
        """The label, or the id where there is none: several labels may share an id."""
        return self.label or self.id


class TestCase(msgspec.Struct):
    """What was tested."""

    vars: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class Row(msgspec.Struct):
    """One answer."""

    provider: Provider
    test_idx: int = msgspec.field(default=0, name="testIdx")
    prompt_idx: int = msgspec.field(default=0, name="promptIdx")
    prompt_id: str = msgspec.field(default="", name="promptId")
    prompt: dict[str, Any] | None = None
    test_case: TestCase = msgspec.field(default_factory=TestCase, name="testCase")
    vars: dict[str, Any] | None = None
    score: Any = msgspec.UNSET
    success: Any = None
    named: dict[str, Any] | None = msgspec.field(default=None, name="namedScores")
    failure: int = msgspec.field(default=0, name="failureReason")


class Rows(msgspec.Struct):
    """The answers of an evaluation."""

    results: list[Row]


class Document(msgspec.Struct):
    """What is read of a file."""

    results: Rows
    config: dict[str, Any] | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of an evaluation, repeats in the order of their test numbers."""
    document = read_document(log.path, Document, TOOL.name)
    rows = sorted(document.results.results, key=lambda row: (row.test_idx, row.prompt_idx))
    asked = [(row.prompt_id, field_at(row.prompt, "label")) for row in rows]
    prompts = list(dict.fromkeys(asked))
    benchmark = field_at(document.config, "description") or "promptfoo"
    if len(prompts) > 1:
        log.note(f"{len(prompts):,} prompts: each provider with each prompt is a model of its own")
    seen: Counter[tuple[str, str]] = Counter()
    for number, row in enumerate(rows, 1):
        model = row.provider.name
        if len(prompts) > 1:
            label = asked[number - 1][1] or ""
            short = 0 < len(label) <= _LONGEST_LABEL and "\n" not in label
            model += f" [{label if short else f'prompt {prompts.index(asked[number - 1]) + 1}'}]"
        item = _item(row)
        repeat = seen[model, item]
        seen[model, item] += 1
        values = {"score": row.score, "success": row.success, **(row.named or {})}
        failure = "error" if row.failure == _ERROR else None
        yield Result(
            benchmark, model, item, values, repeat, scalars(row.test_case.metadata), failure=failure, number=number
        )
    if any(count > 1 for count in seen.values()):
        log.note(f"{shorten(benchmark)}: answers to the same variables are repeats of one item")


def _item(row: Row) -> str:
    """Name an item by its variables: a repeat has a test number of its own."""
    variables = row.vars if row.vars is not None else row.test_case.vars or {}
    values = list(variables.values())
    text = (
        values[0]
        if len(values) == 1 and isinstance(values[0], str)
        else json.dumps(variables, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    )
    return item_of(text)


TOOL: Final = Tool("results of promptfoo", read, metrics=("score",))
