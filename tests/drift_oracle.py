"""The monitors of a sentinel in plain Python, run by run over the whole bag: it shares the bets with the product, and nothing else."""

import hashlib
import math
from collections import defaultdict

import numpy as np

from stats.drift.detector import log_bet

DROPS = (0.5, 1, 2, 4)


def split(seed, monitor, run):
    digest = hashlib.sha256(f"{seed}\n{monitor}\n{run}".encode()).digest()
    return ((int.from_bytes(digest[:8], "big") >> 11) + 0.5) / 2**53


def score(run, mean, spread):
    total = sum((run[item] - mean[item]) / math.sqrt(spread[item]) for item in run if item in mean)
    return round(total / math.sqrt(max(1, sum(item in mean for item in run))), 9)


def p_value(bag, u, coverage):
    """The rank of the last run of a bag, each a score by item."""
    held = defaultdict(list)
    for run in bag:
        for item, x in run.items():
            held[item].append(x)
    held = {item: xs for item, xs in held.items() if len(xs) >= max(1, coverage * len(bag))}
    mean = {item: sum(xs) / len(xs) for item, xs in held.items()}
    spread = {item: (sum((x - mean[item]) ** 2 for x in xs) + 0.5) / (len(xs) + 1) for item, xs in held.items()}
    scores = [score(run, mean, spread) for run in bag]
    below = sum(s < scores[-1] for s in scores)
    return (below + u * sum(s == scores[-1] for s in scores)) / len(bag)


def watch(name, runs, *, seed, sides, bound, coverage=0.8, changes=()):
    """p of each run, and (run, side, most likely start) of each alarm; `runs` has the name and the scores of each, in order."""
    bag, names, p, alarms, capital = [], [], {}, [], {}
    for run, scores in runs:
        if run in changes:
            bag, names, capital = [], [], {}
        bag.append(scores)
        names.append(run)
        p[run] = p_value(bag, split(seed, name, run), coverage)
        t = len(bag)
        sums = {}
        for side in sides:
            q = p[run] if side == "worse" else 1 - p[run]
            if t >= 2:
                capital[side, t] = [0.0] * len(DROPS)
            for nu in range(max(2, t - 364), t + 1):
                bets = log_bet(q, DROPS, nu - 1, t - nu + 1)
                capital[side, nu] = [a + float(b) for a, b in zip(capital[side, nu], bets, strict=True)]
            starts = {nu: sum(map(math.exp, capital[side, nu])) / 4 for nu in range(max(2, t - 364), t + 1)}
            sums[side] = sum(starts.values()), starts
        side = max(sides, key=lambda each: sums[each][0])
        total, starts = sums[side]
        if total >= len(sides) * bound:
            alarms.append((run, side, names[max(starts, key=starts.__getitem__) - 1]))
            bag, names, capital = [], [], {}
    return p, alarms


def sentinel(benchmark, model, runs, *, seed, bound, items, both=False, changes=(), coverage=0.8):
    """The monitors of one model: `runs` has (name, fresh scores, anchor scores) of each closed run, in order."""
    whole = [run for run in runs if len(run[1]) >= max(1, coverage * items)]
    anchored = bool(whole and whole[0][2])
    ranked = [run for run in whole if run[2] or not anchored]
    given = {"seed": seed, "bound": bound, "coverage": coverage, "changes": changes}
    sides = ("worse", "better")
    if not anchored:
        rows = [(name, fresh) for name, fresh, _ in ranked]
        return {"model": watch(f"{benchmark}/{model}/model", rows, sides=sides if both else sides[:1], **given)}
    shifted = [
        (name, {item: (x - np.mean(list(frozen.values())) + 1) / 2 for item, x in fresh.items()})
        for name, fresh, frozen in ranked
    ]
    judge = [(name, frozen) for name, _, frozen in ranked]
    return {
        "model": watch(f"{benchmark}/{model}/model", shifted, sides=sides, **given),
        "judge": watch(f"{benchmark}/{model}/judge", judge, sides=sides, **given),
    }
