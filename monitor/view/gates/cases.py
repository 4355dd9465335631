"""Each case of a gate against a floor."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from monitor.view.gates.check import Answers
from monitor.words.gate_cases import headline
from schemas.records.names import natural
from schemas.results.gate_cases import CaseState, GateCases, JudgedCase
from stats.families.error_control import holm
from stats.gates.cases import below_p, case_bounds, lost_p, pass_k, repeats_for_floor

EXITS: Final[Mapping[str, int]] = {"pass": 0, "undecided": 3, "fail": 4}
_UNDECIDED: Final[Mapping[str, int]] = {"pass": 0, "wait": 3, "fail": 4}


def judge_cases(
    benchmark: str,
    candidate: str,
    answers: Answers,
    floor: float,
    k: int = 1,
    alpha: float = 0.05,
    on_undecided: Literal["pass", "fail", "wait"] = "wait",
    *,
    baseline: str | None = None,
    old: Answers | None = None,
    skipped: int = 0,
    conflicts: int = 0,
    equal_runs: bool = False,
) -> GateCases:
    """Judge each case by its repeats; a case that the baseline alone has is without an answer, so it stays open."""
    old = old or {}
    names = sorted({*answers, *old}, key=natural)
    right, of = _counted(answers, names)
    old_right, old_of = _counted(old, names)
    low, high = case_bounds(right, of, k, alpha)
    # "Every case reaches it" needs no correction; "some case is below it" is as many chances of a false alarm as there are cases.
    p_below = holm(below_p(right, of, floor, k))
    p_worse = _worse(right, of, old_right, old_of) if baseline is not None else None
    p = right / np.maximum(of, 1)
    noise = np.where(of > 1, of * p * (1 - p) / np.maximum(of - 1, 1), 0.0)
    states: list[CaseState] = [
        "reaches" if at_least >= floor else "below" if p_of <= alpha else "open"
        for at_least, p_of in zip(low.tolist(), p_below.tolist(), strict=True)
    ]
    cases = tuple(
        JudgedCase(
            case=name,
            right=int(right[i]),
            of=int(of[i]),
            low=float(low[i]),
            high=float(high[i]),
            state=states[i],
            p_below=float(p_below[i]),
            share=float(noise[i] / max(noise.sum(), 1e-300)),
            old_right=None if baseline is None else int(old_right[i]),
            old_of=None if baseline is None else int(old_of[i]),
            p_worse=None if p_worse is None else float(p_worse[i]),
        )
        for i, name in enumerate(names)
    )
    below = tuple(each.case for each in cases if each.state == "below")
    verdict: Literal["pass", "fail", "undecided"] = (
        "fail" if below else "pass" if not skipped and states.count("reaches") == len(states) else "undecided"
    )
    estimates = pass_k(right, of, k)
    estimates = estimates[~np.isnan(estimates)]
    found = GateCases(
        verdict=verdict,
        headline="",
        exit_code=_UNDECIDED[on_undecided] if verdict == "undecided" else EXITS[verdict],
        on_undecided=on_undecided,
        benchmark=benchmark,
        candidate=candidate,
        baseline=baseline,
        floor=floor,
        k=k,
        alpha=alpha,
        answers=int(of.max()),
        repeats_needed=repeats_for_floor(floor, k, alpha),
        reached=states.count("reaches"),
        below=below,
        open=states.count("open"),
        mean=float(estimates.mean()) if estimates.size else None,
        standard_error=float(estimates.std(ddof=1) / np.sqrt(estimates.size)) if estimates.size > 1 else None,
        worse=tuple(each.case for each in cases if each.p_worse is not None and each.p_worse <= alpha),
        skipped=skipped,
        conflicts=conflicts,
        equal_runs=equal_runs,
        cases=cases,
    )
    return msgspec.structs.replace(found, headline=headline(found))


def _counted(answers: Answers, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    right = np.array([sum(answers.get(name, ())) for name in names], np.float64)
    return right, np.array([len(answers.get(name, ())) for name in names], np.float64)


def _worse(right: np.ndarray, of: np.ndarray, old_right: np.ndarray, old_of: np.ndarray) -> np.ndarray:
    counts = np.stack([right, of, old_right, old_of], axis=1).astype(int).tolist()
    return holm(np.array([lost_p(*each) for each in counts]))
