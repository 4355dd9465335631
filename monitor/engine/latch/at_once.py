"""Pairs that are judged all at once: at the end of runs, on the items they share, and when a benchmark is declared again."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Peaks, Trajectory, first_against
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.pairs.pair_state import PairState
from stats.evidence.curtailed import curtailed_leader_log_p
from stats.evidence.eprocess import log_e_value
from stats.evidence.graded import graded_log_e
from stats.numerics.pairs import Index


class AtOnce:
    """One step of pairs, with their present sums; the event is the first of its batch.

    `ignored`: what is missing does not count against the leader under policy completion.
    """

    def __init__(self, pairs: PairState, graded: GradedPairs | None, pair: Index, *, ignored: bool) -> None:
        self._pairs, self._graded, self._ignored = pairs, graded, ignored
        pair = np.sort(pair)
        self._pair = pair[(pairs.n[pair] > 0) & ~pairs.closed[pair] & pairs.comparable(pair)]

    def near(self) -> Iterator[Peaks]:
        """Yield every pair."""
        steps = self.counts(self._pair)
        yield Peaks.of(steps.pair, steps.evidence, steps.side)
        yield Peaks.turning(steps.pair[self._pairs.may_reverse(steps.pair, steps.lead, steps.lead)])

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - one step
        """Return the state of some pairs, which the event does not change."""
        return self.counts(pair)

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - one step
        """Return the same."""
        return self.counts(pair)

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - one step
        """Return the same."""
        return self.counts(pair)

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the steps of pairs that were decided before, and for the other model."""
        return first_against(self.counts(pair), pair, side, since)

    def counts(self, pair: Index) -> Trajectory:
        """Return the state of pairs as their only step."""
        pairs, graded = self._pairs, self._graded
        n, b, c = pairs.n[pair], pairs.b[pair], pairs.c[pair]
        none = np.zeros_like(n)
        complete = pairs.spec.order.policy == "completion"
        missing = pairs.missing(n) if complete and not self._ignored else none
        lead, side = b - c, np.sign(b - c)
        if graded is not None:
            capital, lead = graded.capital[pair], graded.leads(graded.lead[pair], n)
            b = c = none
            if complete:
                for_first, for_second = graded.bound(pair, missing)
                evidence, side = np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)
            else:
                evidence, side = graded_log_e(capital), np.sign(lead)
        elif complete:
            evidence = -curtailed_leader_log_p(b, c, missing)
        else:
            evidence = log_e_value(b, c, pairs.spec.mixture)
        when, step = np.zeros((2, pair.size), np.int64)
        return Trajectory(pair, when, n, b, c, lead, missing, evidence, side, step + 1)
