"""EvalScope: ``reviews/MODEL/DATASET_SUBSET.jsonl``, one reviewed sample a line."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import scalars, text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import Fault, shorten


class Score(msgspec.Struct):
    """The values of a sample."""

    value: dict[str, Any] = {}
    main_score_name: str | None = None


class SampleScore(msgspec.Struct):
    """The score of a sample."""

    score: Score = msgspec.field(default_factory=Score)
    sample_id: int | str | None = None
    group_id: int | str | None = None
    sample_metadata: dict[str, Any] | None = None


class Review(msgspec.Struct):
    """What is read of a review."""

    index: int | str | None = None
    sample_score: SampleScore = msgspec.field(default_factory=SampleScore)


def lines(log: LogFile) -> Callable[[Review], Iterator[Entry]]:
    """Return a reader of reviews; samples of one group are repeats of one item, named by their ids."""
    model, benchmark = log.path.parent.name, log.path.name.partition(".jsonl")[0]
    if log.model is None:
        log.note(f"the model is called {shorten(model)}, like the folder")

    def read(review: Review) -> Iterator[Entry]:
        scored = review.sample_score
        item = text_of(scored.group_id if scored.group_id is not None else review.index)
        if item is None:
            yield Fault(
                "index", "nothing", "the review has neither index nor group_id; run the review again", benchmark
            )
            return
        sample, group = scored.sample_id, scored.group_id
        repeated = isinstance(sample, int) and isinstance(group, int) and sample != group and sample >= 0
        values, main = scored.score.value, scored.score.main_score_name
        if main in values:
            values = {main: values[main], **values}
        yield Result(benchmark, model, item, values, sample if repeated else 0, scalars(scored.sample_metadata))  # type: ignore[arg-type]

    return read


TOOL: Final = Tool("reviews of EvalScope", lines=lines, record=Review, metrics=("acc", "pass@1", "score"))
