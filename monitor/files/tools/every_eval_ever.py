"""Every Eval Ever: ``*_samples.jsonl`` of its instance-level schema, with the aggregate document next to it."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import LOWER
from monitor.files.formats.documents import read_beside, text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from monitor.files.streams.regular import Refusal
from schemas.records.text import Fault, shorten


class Evaluation(msgspec.Struct):
    """The score of a sample."""

    score: Any = msgspec.UNSET
    is_correct: Any = None


class Sample(msgspec.Struct):
    """What is read of a sample."""

    model_id: str | None = None
    evaluation_name: str | None = None
    sample_id: Any = None
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)
    error: Any = None
    metadata: dict[str, Any] | None = None


class MetricConfig(msgspec.Struct):
    """What a score means."""

    lower_is_better: bool = False
    max_score: float | None = None


class Aggregate(msgspec.Struct):
    """A result of the aggregate document."""

    evaluation_name: str = ""
    metric_config: MetricConfig = msgspec.field(default_factory=MetricConfig)


class Document(msgspec.Struct):
    """The aggregate document."""

    evaluation_results: list[Aggregate] = []


def lines(log: LogFile) -> Callable[[Sample], Iterator[Entry]]:
    """Return a reader of samples; of several filters of one evaluation the first counts."""
    name = log.path.name.removesuffix(".gz").removesuffix("_samples.jsonl")
    document = read_beside(log.path.with_name(f"{name}.json"), Document) or Document()
    configs = {each.evaluation_name: each.metric_config for each in document.evaluation_results}
    filters: dict[str, str] = {}

    def read(sample: Sample) -> Iterator[Entry]:
        benchmark, item = sample.evaluation_name, text_of(sample.sample_id)
        if benchmark is None or sample.model_id is None or item is None:
            missing = "evaluation_name" if benchmark is None else "model_id" if sample.model_id is None else "sample_id"
            yield Fault(missing, "nothing", f"the sample has no {missing}; convert the log again", benchmark)
            return
        fields = sample.metadata or {}
        kind = fields.get("filter")
        kind = kind if isinstance(kind, str) else "none"
        if benchmark not in filters:
            filters[benchmark] = log.choices.filter.of(benchmark) or kind
            _check(benchmark, configs.get(benchmark), log)
        if kind != filters[benchmark]:
            text = f"filter {shorten(filters[benchmark])} (also available: {shorten(kind)})"
            log.notices.choice(benchmark, text)
            return
        epoch = fields.get("epoch")
        repeat = epoch if isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= 0 else 0
        values = {"score": sample.evaluation.score, "is_correct": sample.evaluation.is_correct}
        given = {name: value for name, value in values.items() if value is not None and value is not msgspec.UNSET}
        values = given or {"score": sample.evaluation.score}
        failure = "error" if sample.error else None
        yield Result(benchmark, sample.model_id, item, values, repeat, fields, failure)

    return read


def _check(benchmark: str, config: MetricConfig | None, log: LogFile) -> None:
    """Refuse scores of which less is better, unless the option asks for them."""
    if config is None or not config.lower_is_better:
        return
    if not (log.choices.metric.of(benchmark) or "").endswith(LOWER):
        reason = (
            f"less is better here; use --metric {shorten(benchmark)}=score{LOWER}, which counts one minus the score"
        )
        raise Refusal("metric", "score", reason, benchmark)


TOOL: Final = Tool("samples of Every Eval Ever", lines=lines, record=Sample, metrics=("score", "is_correct"))
