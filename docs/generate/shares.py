"""Compute the shares of alpha under `spending` next to equal ones."""

from math import comb, exp, log

import numpy as np

from stats.families.error_control import spending_alpha

_MODELS = (2, 3, 10, 30, 100)


def table(alpha: float = 0.05) -> str:
    """Return the level of the first and of the last pair of some numbers of models, and what the last one costs."""
    lines = [
        "| models | pairs | p that decides: equal shares | `spending`, first pair | `spending`, last pair | nats more for the last |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for models in _MODELS:
        pairs = comb(models, 2)
        first, last = spending_alpha(np.array([1, pairs]), alpha).tolist()
        more = log(alpha / pairs / last)
        levels = " | ".join(f"{level:.2g}" for level in (alpha / pairs, first, last))
        lines.append(f"| {models} | {pairs:,} | {levels} | {more:.2f} (a factor of {exp(more):.0f}) |")
    return "\n".join(lines)
