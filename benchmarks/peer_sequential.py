"""Time updates of one pair's evidence, item by item, with each package: ``PYTHON benchmarks/peer_sequential.py NAME B C REPEATS``.

Run by the Python of an environment in which the packages are installed. The stream has B wins and C losses in a seeded order; the evidence
is read after every item, as a monitor needs it. Prints updates per second and the final ln e.
"""

import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable


def plain(stream: list[int]) -> float:
    """Follow the default mixture in plain Python: ln B(1 + b, 1 + c) + (b + c) ln 2."""
    b = c = 0
    log_e = 0.0
    for won in stream:
        b, c = b + won, c + 1 - won
        log_e = math.lgamma(1 + b) + math.lgamma(1 + c) - math.lgamma(2 + b + c) + (b + c) * math.log(2)
    return log_e


def online_fdr(stream: list[int]) -> float:
    """Follow a mixture of 98 likelihood ratios: the paper's grid."""
    from online_fdr.e_values.processes import MixtureLikelihoodRatioEProcess

    def ratio(theta: float) -> Callable[[int], float]:
        up, down = math.log(2 * theta), math.log(2 - 2 * theta)
        return lambda won: up if won else down

    ratios = [ratio(k / 100) for k in range(1, 100) if k != 50]
    process = MixtureLikelihoodRatioEProcess(ratios)
    for won in stream:
        process.update(won)
    return process.log_current


def sequential_analysis(stream: list[int]) -> float:
    """Follow its sign test: the same hypothesis, bets that adapt instead of a mixture."""
    from sequential_analysis.procedures.betting import SequentialSignTest

    test = SequentialSignTest(stop_on_reject=False)
    state = test.initial_state()
    for won in stream:
        state, out = test.step(state, {"x": 2.0 * won - 1.0})
    return out.log_wealth


def savvi(stream: list[int]) -> float:
    """Follow its multinomial test with two outcomes and a flat prior; without its interval, which it solves for by optimisation."""
    import numpy as np
    from savvi.multinomial import Multinomial

    test = Multinomial(0.05, np.array([0.5, 0.5]), k=2)
    outcomes = np.array([[0, 1], [1, 0]])
    for won in stream:
        test.update(outcomes[won])
        test.calculate_p_value()
    return math.log(test.odds)


def ville(stream: list[int]) -> float:
    """Follow its Bernoulli test, one observation at a time."""
    from ville import BernoulliTest

    test = BernoulliTest(0.5)
    for won in stream:
        test.update(won)
    return float(test._log_e[-1][-1])  # noqa: SLF001 - the public property joins the whole past at every call


def ville_at_once(stream: list[int]) -> float:
    """Do the same over a stream that is complete: the whole path in one call."""
    from ville import BernoulliTest

    return float(BernoulliTest(0.5).fit(stream)._log_e[-1][-1])  # noqa: SLF001


def main() -> None:
    """Time one of the functions above."""
    name, b, c, repeats = sys.argv[1], *map(int, sys.argv[2:5])
    stream = [1] * b + [0] * c
    random.Random(1).shuffle(stream)
    update = globals()[name]
    log_e = update(stream)
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        update(stream)
        taken.append(time.perf_counter() - begin)
    print(json.dumps([len(stream) / statistics.median(taken), log_e]))


if __name__ == "__main__":
    main()
