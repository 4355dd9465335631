"""What a reader of files found besides the scores that were folded: it limits what the files may be taken for."""

from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.records.text import Sentence


class Refused(NamedTuple):
    """A file that was not read, or not to its end, and why; `benchmark` is the one that it holds, where that is known."""

    path: str
    reason: Sentence
    benchmark: str | None = None


@dataclass
class Reading:
    """What is known of the files of one benchmark; empty for a log.

    Attributes
    ----------
    refused : list of Refused
        Of this benchmark, or of one that is not known.
    elsewhere : list of Refused
        Of benchmarks without any result.
    unread : int
        Items whose every line was rejected; a line that names no item counts as one.
    failed : dict of str to int
        Results without a score because the run of the item failed, by what the harness names as the reason.
    differing : str
        Why scores of one item id are not scores of one item, or the models have other items, and what to do; empty if nothing shows it.
    notes : list of str
        What was chosen, or assumed, to read the files.
    at_best : str or None
        The model whose scores in conflict count at their best, and those of all others at their worst, as in a gate: so a verdict
        that it is worse chooses none of them.
    excess : str
        Why the command fails: too large a share of the files or lines was refused; empty if it was not.
    """

    refused: list[Refused] = field(default_factory=list)
    elsewhere: list[Refused] = field(default_factory=list)
    unread: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    differing: Sentence = ""
    notes: list[Sentence] = field(default_factory=list)
    at_best: str | None = None
    excess: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing shows that the files are not the whole benchmark."""
        return not self.refused and not self.differing
