"""What a gate can know before it runs, in words."""

from collections.abc import Iterator
from typing import Final

from monitor.words.counts import counted
from monitor.words.gates import margin as in_points
from schemas.records.text import Sentence, shorten
from schemas.results.gate_check import Attained, GateCheck

SIGN: Final = {"possible": "●", "only_wins": "○", "impossible": "○", None: "○"}
_SOURCES: Final = {
    "noise": "as two runs of the baseline do",
    "models": "as the other models in the files do",
    "assumed": "as models of one family do (4 %) or different models (13 %)",
}
_LARGEST: Final = 0.2  # a larger margin is no advice
FLAKY: Final = "A list to look at: cases that score differently from run to run while nothing changes."


def headline(check: GateCheck) -> Sentence:
    """Return whether the gate can pass at all."""
    by = in_points(check.margin, relative=False)
    if check.attainable is None:
        return f"Equal answers pass a margin of {by} from {counted(check.equal_items, 'item')} on."
    items = counted(check.items or 0, "item")
    return {
        "impossible": f"With {items} no outcome can pass a margin of {by}.",
        "only_wins": f"With {items} only a better model can pass.",
        "possible": f"With {items} equal answers can pass a margin of {by}.",
    }[check.attainable]


def not_run(found: Attained) -> Sentence:
    """Return that a gate ended before its first call.

    >>> not_run(Attained("only_wins", 50, 149))
    'with 50 items only a better model can pass'
    """
    items = counted(found.items, "item")
    return f"with {items} {'no outcome' if found.code == 'impossible' else 'only a better model'} can pass"


def cannot_pass(found: Attained, by: str) -> Sentence:
    """Return why a gate ends before its first call, and the items that it takes."""
    needed = "" if found.equal_items is None else f" on fewer than {found.equal_items:,} items"
    lack = f"answers as good as the old ones cannot exclude a loss of {by}{needed}"
    if found.code == "impossible":
        return f"{not_run(found)}: {lack}; add items, or declare a larger margin before the run"
    return f"{not_run(found)}: {lack}; add items, or add --run-anyway"


def remedies(check: GateCheck) -> Iterator[Sentence]:
    """Yield what the headline rests on, and what would change it before the run."""
    by = in_points(check.margin, relative=False)
    if check.attainable != "possible":
        yield f"Answers as good as the old ones cannot exclude a loss of {by} on fewer than {check.equal_items:,} items ({check.rule})."
        yield f"A candidate that is right everywhere passes from {counted(check.best_items, 'item')} on."
    if check.attainable in {"only_wins", "impossible"}:
        add = f"Add {counted(check.equal_items - (check.items or 0), 'item')}"
        larger = (
            f", or declare a margin of {in_points(check.least_margin, relative=False)}"
            if check.least_margin and check.least_margin <= _LARGEST
            else ""
        )
        run = "; --run-anyway goes on" if check.attainable == "only_wins" else ""
        yield f"{add}{larger}, before the run{run}. No model was called."
    if check.equal_items_once is not None and check.attainable != "possible":
        yield f"With one repeat an item the exact test decides: equal answers pass from {counted(check.equal_items_once, 'item')} on."
    if check.losses_needed is not None:
        yield f"No outcome fails before the baseline alone has {counted(check.losses_needed, 'item')} right."


def flips(check: GateCheck) -> Iterator[Sentence]:
    """Yield how often an unchanged model is red, and how often a verdict of this gate errs."""
    found = check.flips
    by = in_points(check.margin, relative=False)
    if found is None:
        yield "No case was run twice, so the noise is not known: give several runs or repeats of the baseline."
    else:
        yield (
            f"If you compare means, an unchanged model drops by more than {by} in {_percent(found.red)} of runs of {_suite(check)}, "
            f"and two runs disagree in {_percent(found.disagree)}."
        )
        yield _less(check)
        yield "If the old answers are kept, half of that noise is theirs: it stays until you run the baseline again."
    yield (
        f"This gate errs less: at most {_percent(check.alpha)} of models that are worse by {by} pass, and at most "
        f"{_percent(check.alpha / 2)} of unchanged models fail. It pays with undecided verdicts."
    )


def _less(check: GateCheck) -> Sentence:
    found = check.flips
    assert found is not None
    level = _percent(found.level)
    if found.red <= found.level:
        return f"That is at most {level}: enough for a gate on means."
    if found.answers_needed is None or found.repeats_needed is None or found.items_needed is None:
        return f"No number of repeats lowers that to {level} without a margin."
    items = counted(check.items or 0, "case")
    return (
        f"At most {level} takes {found.answers_needed:,.0f} answers: {items} with {counted(int(found.repeats_needed), 'repeat')} each, or "
        f"{counted(int(found.items_needed), 'case')} with {counted(check.repeats, 'repeat')} each."
    )


def _suite(check: GateCheck) -> str:
    return f"{counted(check.items or 0, 'case')} with {counted(check.repeats, 'repeat')} each"


def source(check: GateCheck) -> Sentence:
    """Return what was read."""
    if check.benchmark is None or check.baseline is None:
        return "No results were given."
    answers = "" if check.flips is None else f", {counted(check.flips.answers, 'answer')} to cases that were run twice"
    return f"{shorten(check.baseline)} on {shorten(check.benchmark)}: {100 * (check.mean or 0):.2f} %{answers}."


def shown(check: GateCheck) -> Sentence:
    """Return what the table of rates holds."""
    by = in_points(check.margin, relative=False)
    how = "simulated from these runs" if check.rule == "bets" else "exact"
    return (
        f"What a gate can show with a margin of {by}, as shares of gates ({how}). Candidates differ from the baseline on so many items "
        f"{_SOURCES[check.shown[0].source]}; a worse one is worse by exactly the margin, and differs on as many at least."
    )


def flaky(check: GateCheck) -> Sentence:
    """Return how many cases are flaky, and the share of the noise that the first few carry."""
    first = check.flaky[:3]
    if not first:
        return "No case scored differently from run to run."
    if len(check.flaky) == 1:
        return "1 case scores differently from run to run: it carries all of the noise."
    share = f"{100 * sum(each.share for each in first):.0f} %"
    return f"{len(check.flaky):,} cases score differently from run to run. The first {len(first)} carry {share} of the noise."


def _percent(share: float) -> str:
    """Return a probability in percent, with two digits below 10 %.

    >>> _percent(0.2701), _percent(0.025), _percent(0.0004)
    ('27 %', '2.5 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"
