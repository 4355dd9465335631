"""What the HTTP API answers beyond the report: lists for navigation, pages, paths, matrices, and problems."""

from pydantic import BaseModel, ConfigDict, Field

from schemas.changes import VerdictChange
from schemas.events import Spec
from schemas.report import OrderReport, PairReport, Status


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")


class Problem(_Answer):
    """What went wrong with a request (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list["RecordError"] | None = Field(None, description="the records or parameters that are wrong")
    errors_total: int | None = Field(None, description="how many there are, where not all are listed")


class RecordError(_Answer):
    """One record of a body, or one parameter, that cannot be taken."""

    line: int | None = Field(None, description="line of the body, or place in the array, from 1; null for a parameter")
    field: str
    found: str
    reason: str


class BenchmarkSummary(_Answer):
    """One benchmark in a list for navigation."""

    benchmark: str
    items: int
    events: int
    models: int
    pairs: int
    decided: int = Field(description="pairs with a family-wise verdict that counts")
    order: OrderReport
    rejected: int
    conflicts: int


class PairPage(_Answer):
    """Some pairs of a benchmark."""

    pairs: list[PairReport]
    total: int = Field(description="pairs that the filters let through")
    next_cursor: str | None = Field(description="give it as `cursor` to go on; null at the end")


class PathReport(_Answer):
    """The e-process of a pair along its shared items, and the interval closing in; lists are null where scores are graded."""

    benchmark: str
    model_a: str
    model_b: str
    order: str = Field(
        description="in which order the items stand; but for a committed order not the one in which the verdict saw them"
    )
    n: list[int] = Field(description="shared items so far; of a committed order, items of the prefix, skipped ones too")
    log_e: list[float] | None
    log_e_a: list[float] | None
    log_e_b: list[float] | None
    gap: list[float]
    gap_low: list[float] | None
    gap_high: list[float] | None
    log_threshold: float = Field(description="ln 1/alpha")
    log_family_threshold: float | None = Field(
        description="ln 1/alpha_j; null for a pair without a place in its family"
    )


class Matrix(_Answer):
    """Every pair of a benchmark at once, over the models by rank."""

    benchmark: str
    models: list[str]
    decided: list[list[int]] = Field(
        description="family-wise: 1 where the row's model is better, -1 where the column's is, 0 undecided"
    )
    statuses: list[Status] = Field(description="what the codes of `status` stand for")
    status: list[list[int]] = Field(description="index into `statuses`; -1 on the diagonal")


class ChangePage(_Answer):
    """Verdict changes in the order of the log."""

    changes: list[VerdictChange]
    next: str | None = Field(
        description="id to give as `after` to go on: that of the last change here, or the one that was given"
    )


class Update(_Answer):
    """The state of a benchmark has moved."""

    benchmark: str
    events: int


class Accepted(_Answer):
    """Everything in the request is durable in the log."""

    accepted: int = Field(description="events")
    declarations: int
    rejected: list[RecordError] = Field(description="always empty: a request with a bad record is refused whole")


class DeclarationTaken(_Answer):
    """A declaration is durable in the log."""

    benchmark: str
    place: str = Field(description="where it stands in the log")
    in_force: bool = Field(description="whether it has been folded already; if not, GET tells when it is")
    spec: Spec


class OpenPair(_Answer):
    """A pair that stopping now would leave open."""

    other: str
    status: Status
    items_to_decision: float | None
    reason: str


class EarlyStop(_Answer):
    """Whether the run of a model may stop, and what would be left undecided."""

    benchmark: str
    model: str
    may_stop: bool = Field(
        description="true when every pair of the model is decided family-wise, equivalent or exhausted"
    )
    reason: str
    decided: list[str] = Field(description="the models against which it is decided family-wise")
    undecided: list[OpenPair] = Field(description="every other pair, with its status")


Problem.model_rebuild()
