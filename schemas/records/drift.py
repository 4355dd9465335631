"""The declaration of a sentinel: a benchmark on which one model is run many times, and watched for drift."""

from typing import Annotated, Literal, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from schemas.records.names import Name


class DriftSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every monitor: the declared rate of false alarms, and how runs are read."""

    years: float = 5
    runs_a_year: float = 365
    monitors: int = 1  # monitors that share one false alarm in `years`
    both: bool = False
    ever: float | None = None  # chance of any false alarm in a segment; replaces `years`
    assume: Literal["exchangeable-runs", "independent-items"] = "exchangeable-runs"
    strata: Literal["weekday"] | None = None
    missing: Literal["ignore", "fail"] = "ignore"
    min_coverage: float = 0.8
    items: int | None = None  # items of a whole run; None: as many as the first run has
    seed: str | None = None
    changes: tuple[str, ...] = ()  # the first runs after an announced change
    judge: str | None = None
    """The judge of frozen answers, which then are in every run; None: the first run shows whether there are any."""
    anchors: int | None = None  # frozen answers of a whole run

    @property
    def anchored(self) -> bool:
        """Whether frozen answers are declared."""
        return self.judge is not None or self.anchors is not None

    @property
    def per_model(self) -> int:
        """Monitors of a model: with frozen answers one of its judge too."""
        return 2 if self.anchored else 1

    @property
    def false_alarm_runs(self) -> float:
        """The bound A: one false alarm is expected in so many runs of one monitor."""
        return self.years * self.runs_a_year * self.monitors


class DriftSpec(BaseModel):
    """How a sentinel is watched: the rate of false alarms, and what holds while nothing changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runs_per_year: Annotated[float, Field(ge=1, le=1_000_000, allow_inf_nan=False)] = 365
    years: Annotated[float, Field(ge=0.01, le=1000, allow_inf_nan=False)] = Field(
        5, description="years of runs in which one false alarm is expected"
    )
    monitors: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        1, description="monitors that share that false alarm; with 1, each has its own"
    )
    ever: Annotated[float, Field(ge=1e-9, le=0.5)] | None = Field(
        None, description="chance of any false alarm, ever, in a history; replaces years"
    )
    direction: Literal["worse", "both"] = "worse"
    assume: Literal["exchangeable-runs", "independent-items"] = "exchangeable-runs"
    strata: Literal["weekday"] | None = Field(None, description="weekday: a run is ranked among those of its weekday")
    missing: Literal["ignore", "fail"] = "ignore"
    min_coverage: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="least share of the items in a run that is ranked"
    )
    judge: Name | None = Field(
        None, description="the judge of frozen answers (role: anchor): they are in every run, and it has a monitor"
    )
    anchors: Annotated[StrictInt, Field(ge=1, le=10**9)] | None = Field(
        None, description="frozen answers of a whole run"
    )
    seed: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="splits ties between runs; null: follows from the declaration"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.anchors is not None and self.judge is None:
            raise ValueError("anchors are judged again in every run; declare their judge too")
        if self.monitors > 1 and self.monitors < self.settings(None).per_model:
            raise ValueError("monitors are too few: a model with frozen answers has two; declare at least 2")
        return self

    def settings(self, items: int | None) -> DriftSettings:
        """Return what the monitors go by."""
        return DriftSettings(
            years=self.years,
            runs_a_year=self.runs_per_year,
            monitors=self.monitors,
            both=self.direction == "both",
            ever=self.ever,
            assume=self.assume,
            strata=self.strata,
            missing=self.missing,
            min_coverage=self.min_coverage,
            items=items,
            seed=self.seed,
            judge=self.judge,
            anchors=self.anchors,
        )
