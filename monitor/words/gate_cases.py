"""Each case of a gate against a floor, in words."""

from collections.abc import Iterator, Sequence
from typing import Final

from monitor.words.counts import EQUAL_RUNS, counted
from monitor.words.gates import ON_UNDECIDED
from monitor.words.numbers import apart
from schemas.records.text import Sentence, shorten
from schemas.results.gate_cases import GateCases, JudgedCase

_NAMED: Final = 5
STATES: Final = {"reaches": "reached", "below": "below", "open": "open"}


def floor(found: GateCases) -> str:
    """Return the floor in words."""
    shown = f"{found.floor:.2f}" if round(found.floor, 2) == found.floor else f"{found.floor:g}"
    return shown + (f" for {found.k} answers in a row" if found.k > 1 else "")


def headline(found: GateCases) -> Sentence:
    """Return the verdict on all cases."""
    all_cases = len(found.cases)
    of = f"{found.reached:,} of {counted(all_cases, 'case')} {'reaches' if found.reached == 1 else 'reach'} it"
    still = f", {found.open:,} {'is' if found.open == 1 else 'are'} open" if found.open else ""
    who = f"{shorten(found.candidate)} on {shorten(found.benchmark)}"
    if found.verdict == "pass":
        return f"pass: {who} reaches the floor of {floor(found)} in {'its case' if all_cases == 1 else f'all {all_cases:,} cases'}"
    if found.verdict == "fail":
        lost = f"{_first(found.below)} {'is' if len(found.below) == 1 else 'are'} below the floor of {floor(found)}"
        return f"fail: {lost} ({who}). {of[:1].upper()}{of[1:]}{still}"
    if found.answers < found.repeats_needed:
        return f"undecided: below {counted(found.repeats_needed, 'repeat')} no case can reach {floor(found)}; {who} has {found.answers:,}"
    return f"undecided: {who} has a floor of {floor(found)}. {of[:1].upper()}{of[1:]}{still}"


def remarks(found: GateCases) -> Iterator[Sentence]:
    """Yield what the repeats allow, the mean over cases, what got worse, and which flag changes an undecided gate."""
    over = counted(len(found.cases), "case")
    yield f"Below {counted(found.repeats_needed, 'repeat')} no case can reach {floor(found)}."
    if found.mean is not None:
        error = "" if found.standard_error is None else f" (standard error {found.standard_error:.3f} over cases)"
        what = "One answer is right" if found.k == 1 else f"{found.k} answers in a row are right"
        yield f"{what} with a chance of {found.mean:.3f}, in the mean over cases{error}."
    if alone := sum(each.state == "open" and each.high < found.floor for each in found.cases):
        yield f"The upper bound of {counted(alone, 'open case')} is below the floor, but not with {over} counted (Holm)."
    if found.baseline is not None:
        yield _worse(found, shorten(found.baseline))
    if found.skipped:
        yield f"{counted(found.skipped, 'answer')} without a readable score left out, so the gate cannot pass: score them, a failure 0."
    if found.conflicts:
        yield f"{counted(found.conflicts, 'score')} of an answer that has one already: the first counts. Name each run, or its repeat."
    if found.equal_runs:
        yield EQUAL_RUNS
    if found.verdict == "undecided":
        yield ON_UNDECIDED[found.on_undecided]
    elif found.verdict == "pass":
        yield f"At most {100 * found.alpha:.3g} % chance that this gate passes while a case is below its floor."
    else:
        yield f"At most {100 * found.alpha:.3g} % chance of this verdict if no case is below its floor (Holm over {over})."


def _worse(found: GateCases, baseline: str) -> Sentence:
    judged = f"Fisher's exact test, Holm over {counted(len(found.cases), 'case')}"
    if not found.worse:
        return f"No case is shown to have got worse than with {baseline} ({judged})."
    return f"Worse than with {baseline}: {_first(found.worse)} ({judged}). This does not change the verdict."


def was(case: JudgedCase) -> str:
    """Return how often the baseline was right."""
    return "" if case.old_of is None else f"{case.old_right:,} of {case.old_of:,}"


def right(case: JudgedCase) -> str:
    """Return how often the candidate is right."""
    return f"{case.right:,} of {case.of:,}"


def bounds(case: JudgedCase, found: GateCases) -> tuple[str, str]:
    """Return the bounds of a case, with the digits that differ from the floor."""
    low, high = (apart(_share, value, found.floor)[0] for value in (case.low, case.high))
    return low, high


def _share(value: float, more: int = 0) -> str:
    return f"{value:.{2 + more}f}"


def more(shown: int, cases: int) -> Sentence:
    """Return how many cases the table leaves out."""
    return f"{counted(cases - shown, 'more case')} with wrong answers; --format json has all."


def _first(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(map(shorten, names[:_NAMED])) + (f" and {rest:,} more" if rest > 0 else "")
