"""Ragas: the table of an evaluation, ``result.to_pandas()`` written as CSV or JSON."""

from collections.abc import Iterator
from typing import Final

from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Tool
from monitor.files.tools.scored_rows import metrics_of, read_rows, results_of, texts

_ITEM: Final = ("user_input", "question")
_METRICS: Final = ("answer_correctness", "factual_correctness", "faithfulness")
_SAMPLE: Final = {  # the columns of a sample, in any version; every other column of numbers is a metric
    *_ITEM, "id", "model", "response", "answer", "retrieved_contexts", "contexts", "retrieved_context_ids", "reference",
    "reference_contexts", "reference_context_ids", "reference_tool_calls", "multi_responses", "ground_truth", "ground_truths", "rubrics",
    "rubric", "persona_name", "query_style", "query_length", "synthesizer_name", "",
}  # fmt: skip


def read(log: LogFile) -> Iterator[Entry]:
    """Return the samples of an evaluation: the question is the item, and the file the model."""
    rows = read_rows(log)
    named = next(rows[name] for name in _ITEM if name in rows)
    models = texts(rows["model"]) if "model" in rows else None
    yield from results_of(log, "ragas", texts(named), metrics_of(rows, _SAMPLE), models=models)


TOOL: Final = Tool("a table of ragas", read, metrics=_METRICS)
