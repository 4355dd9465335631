"""The admission of a newcomer in words."""

from collections.abc import Iterator, Sequence

from monitor.words.counts import counted, listed
from schemas.records.text import Sentence, shorten
from schemas.results.admission import Certificate

_NAMED = 3


def headline(certificate: Certificate) -> Sentence:
    """Return the answer in one line."""
    result, model = certificate.result, shorten(certificate.commitment.model)
    items, models = len(certificate.board.items), len(certificate.board.models) + 1
    after = f"after {result.items_run:,} of {counted(items, 'item')}"
    first, last = result.first_rank, result.last_rank
    if result.contradicts:
        return f"{model}: no rank is left {after}. Check that the items followed the committed order, and how they were scored."
    if last - first < _NAMED:
        *others, final = [f"{rank:,}" for rank in range(first, last + 1)]
        return f"{model} is rank {', '.join(others)}{' or ' if others else ''}{final} of {models:,}, {after}."
    return f"{model} is between rank {first:,} and {last:,} of {models:,}, {after}."


def opponents(certificate: Certificate) -> Sentence:
    """Return how many models have a lower and a higher total, and which are open."""
    result, sides = certificate.result, {"above": list[str](), "below": list[str](), "open": list[str]()}
    for each in result.opponents:
        sides[each.side].append(shorten(each.model))
    text = f"Higher than {counted(len(sides['above']), 'model')} and lower than {len(sides['below']):,}"
    if not (open_ := sides["open"]):
        return f"{text}; none is open."
    known = result.least == result.most and all(each.low == each.high for each in certificate.board.models)
    names = f": {listed(open_)}" if len(open_) <= _NAMED else ""
    return f"{text}; {'one is' if len(open_) == 1 else f'{len(open_):,} are'} {'equal' if known else 'open'}{names}."


def score(certificate: Certificate) -> Sentence:
    """Return the scores that are still possible, rounded outward, and the one so far."""
    result, board = certificate.result, certificate.board
    full = board.unit * len(board.items)
    low, high = 1000 * result.least // full / 10, -(-1000 * result.most // full) / 10
    shown = f"{100 * result.least / full:.1f}" if result.least == result.most else f"{low:.1f} to {high:.1f}"
    scored = result.items_run - result.skipped
    so_far = f"; {result.total / board.unit / scored * 100:.1f} % on the items scored" if scored else ""
    skipped = f" ({counted(result.skipped, 'item')} skipped: any score)" if result.skipped else ""
    return f"Score on all {len(board.items):,} items: {shown} %{so_far}{skipped}."


def goal(text: str, state: str, left: int, *, among: bool | None) -> Sentence:
    """Return whether the goal is met, and what that saves."""
    if state == "met":
        answer = "" if among is None else f", and the newcomer is {'' if among else 'not '}among them"
        saved = f": {counted(left, 'item')} need not be run" if left else ""
        return f"The goal {text} is met{answer}{saved}."
    return f"The goal {text} is {state}: {counted(left, 'item')} left." if left else f"The goal {text} is {state}."


def promise(certificate: Certificate) -> Sentence:
    """Return what the statements hold for, and what they assume."""
    commitment = certificate.commitment
    seed = "the given seed was chosen" if commitment.seed_given else "the order was committed"
    return (
        f"At most {100 * commitment.alpha:g} % chance that any of this is ever wrong, for this newcomer alone and about these items. "
        f"Assumes that {seed} before the first score."
    )


def claim(certificate: Certificate) -> Sentence:
    """Return what the statements are about, and what they are not."""
    items = counted(len(certificate.board.items), "item")
    return f"Settled, about these {items}: they do not show that the model is better on items of this kind."


def ahead(model: str, items: int, following: str) -> Sentence:
    """Return which scores do not count yet."""
    verb = "lies" if items == 1 else "lie"
    waiting = f"{counted(items, 'score')} of {shorten(model)} {verb} ahead of the order"
    return f"{waiting}: the next item is {shorten(following)}; it needs a score or a skip"


def lines(certificate: Certificate) -> Iterator[Sentence]:
    """Yield what a certificate states, the answer first."""
    yield headline(certificate)
    yield opponents(certificate)
    yield score(certificate)


def verified(path: str, certificate: Certificate) -> Sequence[Sentence]:
    """Return what a certificate that verifies shows, and what it does not."""
    commitment = certificate.commitment
    return [
        f"{path} verifies: every number follows from its {counted(len(certificate.scores), 'score')}.",
        *lines(certificate),
        promise(certificate),
        f"Board {commitment.board[:12]}, {len(certificate.board.models):,} models; written by rankwatch {shorten(certificate.rankwatch)}.",
        f"Order by seed {shorten(commitment.seed)}, committed {commitment.at:%Y-%m-%d %H:%M %Z}.",
        "It is not signed: compare its board and seed with those that were published before the first score.",
    ]


def planned(goal: str, items: int, median: int, nine_of_ten: int) -> Sentence:
    """Return what a newcomer needs."""
    usual, most = share(median, items), share(nine_of_ten, items)
    return f"The goal {goal} takes {usual} of {counted(items, 'item')} at the median; 9 of 10 newcomers need at most {most}."


def replays(benchmark: str, newcomers: int, orders: int) -> Sentence:
    """Return where a plan is known from."""
    how = f"each admitted to the others along {counted(orders, 'random order')}"
    return f"{counted(newcomers, 'model')} of {shorten(benchmark)}, {how}. A model among others of nearly its score needs most."


def share(items: int, of: int) -> Sentence:
    """Return a part of the items in percent.

    >>> share(1_299, 12_032), share(3, 12_032)
    ('11 %', '0.02 %')
    """
    percent = 100 * items / of
    return f"{percent:.0f} %" if percent >= 1 or not items else f"{percent:.1g} %"
