"""AlpacaEval: ``annotations.json`` of a model against one baseline."""

import hashlib
import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool
from schemas.records.text import shorten

_LEAST, _MOST = 1, 2  # a preference is from 1 (the baseline is better) to 2 (the model is)


class Annotation(msgspec.Struct):
    """The preference between two answers."""

    instruction: str
    generator_1: str
    generator_2: str
    preference: Any = None
    annotator: Any = None
    dataset: str | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return a score for each instruction: how probable it is that the model's answer is preferred to the baseline's."""
    annotations = read_document(log.path, list[Annotation], TOOL.name)
    for number, row in enumerate(annotations, 1):
        if number == 1:
            baseline = f"baseline {row.generator_1}, annotator {shorten(row.annotator)}"
            yield Run(_BENCHMARK, row.generator_2, version=baseline)
            log.notices.choice(
                _BENCHMARK, f"the score is the preference for the model over {shorten(row.generator_1)}, from 0 to 1"
            )
        elif (row.generator_1, row.generator_2) != (annotations[0].generator_1, annotations[0].generator_2):
            yield Run(_BENCHMARK, row.generator_2, version=f"baseline {row.generator_1}")
        value = row.preference
        number_given = isinstance(value, int | float) and not isinstance(value, bool)
        score = value - _LEAST if number_given and _LEAST <= value <= _MOST else value
        failure = "no preference" if value is None or (isinstance(value, float) and math.isnan(value)) else None
        if score == 0 and value == 0:
            score, failure = 0.5, None  # early versions write a draw as 0
        elif number_given and not _LEAST <= value <= _MOST:
            score = math.inf
        item = hashlib.sha256(row.instruction.encode("utf-8", "replace")).hexdigest()[:16]
        tags = {"dataset": row.dataset} if row.dataset else {}
        yield Result(
            _BENCHMARK, row.generator_2, item, {"preference": score}, tags=tags, failure=failure, number=number
        )


_BENCHMARK: Final = "alpaca_eval"

TOOL: Final = Tool("annotations of AlpacaEval", read, cluster="dataset")
