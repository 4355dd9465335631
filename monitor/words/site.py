"""The words of the first page of an exported site."""

from typing import Final

from monitor.words.counts import counted
from schemas.records.text import Sentence

QUOTE_THE_RANGE: Final = "Quote the range of ranks that the evidence leaves open, not the rank."

SITE_ASSUMES: Final = "The page of each ranking lists what its verdicts assume. Made by rankwatch export."


def rankings(count: int, decided: int, steps: int) -> Sentence:
    """Return how many steps of all rankings are real.

    >>> rankings(4, 21, 163), rankings(1, 1, 1)
    ('4 rankings: 21 of 163 steps are real.', '1 ranking: 1 of 1 step is real.')
    """
    return (
        f"{counted(count, 'ranking')}: {decided:,} of {counted(steps, 'step')} {'is' if decided == 1 else 'are'} real."
    )
