"""What the monitors of a sentinel go by: a benchmark on which one model is run many times, and watched for drift."""

from typing import Literal

import msgspec


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
