"""The words that differ by kind of score: what pairs are compared on, what was counted, and what to know besides."""

from collections.abc import Sequence
from typing import ClassVar, Final

from monitor.words import battles
from monitor.words.assumptions import TEXTS
from monitor.words.columns import HEADS, RATED, skipped
from monitor.words.counts import counted
from monitor.words.order import POLICIES, battle_counts
from schemas.results.assumptions import BATTLES
from schemas.results.battles import BattlesReport, JudgeReport
from schemas.results.report import BenchmarkReport

_NAMED: Final = 3


class OfItems:
    """Words about scores of items."""

    unit = "item"
    heads: ClassVar = HEADS
    policies: ClassVar = POLICIES
    reading: ClassVar[list[str]] = ["Scores are in percent."]
    unscored: ClassVar[str | None] = None  # why tables of scores omit the benchmark
    judges: Sequence[JudgeReport] = ()
    of_weights: ClassVar = "cluster"  # what has a weight

    def how(self, b: BenchmarkReport) -> str:
        """Return how verdicts are given, and what they assume."""
        made = ", and that ".join(filter(None, (b.assumption, b.family_assumption)))
        how = f"Order policy {b.order.policy}: {POLICIES[b.order.policy]}."
        return f"{how} Assumes that {made}." if made else how

    def counts(self, b: BenchmarkReport) -> str:
        """Return how much was read."""
        what = "item" if b.unit_items is None else "unit"
        items = counted(b.items, what)
        if b.declared_items is not None and b.items < b.declared_items:
            items = f"{b.items:,} of {counted(b.declared_items, what)}"
        if b.unit_items is not None:
            items += f" of {counted(b.unit_items, 'item')}"
        skips = f", {text}" if (text := skipped(b.skipped)) else ""
        return f"{items}, {counted(len(b.models), 'model')}, {counted(b.events, 'event')}{skips}"

    def conflicts(self, count: int, models: str) -> str:
        """Return that scores contradict earlier ones."""
        scores = "1 score contradicts" if count == 1 else f"{count:,} scores contradict"
        return f"{scores} an earlier score of the same model, item and repeat{models}. The earlier score counts."

    def conflict_advice(self, b: BenchmarkReport) -> str:
        """Return what to do about conflicts: an alias merges two models, and a newer epoch replaces the scores of one."""
        of_aliases = [m for m in b.models if m.aliases and m.model in b.conflicts_by_model]
        advice = [
            f"The scores of {m.model} include those of {', '.join(m.aliases)} (--alias); "
            "if these are different models or runs, omit the alias."
            for m in of_aliases[:_NAMED]
        ]
        if len(b.conflicts_by_model) > len(of_aliases) or not of_aliases:
            advice.append(
                "If one file holds both scores, delete one, or number them as repeats (field repeat)."
                " To replace the scores of a model, send all of them in another file under a newer epoch (--epoch next)."
            )
        return " ".join(advice)

    def checks(self) -> list[str]:
        """Return what to check before the ranking is quoted, a sentence or two each."""
        return []

    def notes(self) -> list[str]:
        """Return what a reader needs to know before trusting a rank."""
        return []

    def decided(self, better: str, worse: str, n: int, wins: int, losses: int) -> str:
        """Return the counts of a decided pair."""
        return f"of {n:,} shared items, only {better} is right on {wins:,} and only {worse} on {losses:,}"

    def exhausted(self, missing: int, ignored: int) -> str | None:
        """Return that nothing more comes of an undecided pair; None where items are missing."""
        if missing:
            return None
        end = "The runs have ended" if ignored else "Every item is scored"
        return f"{end}, and the evidence does not decide which model is better."

    def informative(self, informative: int, n: int) -> str:
        """Return how many of what a pair shares are no ties."""
        return f"Informative items: {informative:,} of {n:,} shared (exactly one of the two models is right)."

    def other_leader(self, first: str, second: str) -> str:
        """Return why the lower-ranked model of a pair leads it."""
        return (
            f"{second} leads on the shared items, although {first} has the higher mean on its own items: the two were scored on "
            "different items."
        )


class OfMembers(OfItems):
    """Words about the items of the members of a suite."""

    of_weights: ClassVar = "benchmark"

    def how(self, b: BenchmarkReport) -> str:
        if b.order.policy != "none":
            return super().how(b)
        return "The suite has no anytime verdict: ranking, tests at a planned n and settled leads rest on the scores so far."


class OfBattles(OfItems):
    """Words about battles; of one pair no report is needed."""

    unit = "prompt"
    heads: ClassVar = HEADS | RATED
    reading: ClassVar[list[str]] = []
    unscored: ClassVar = "the benchmark is omitted: ratings of battles are no scores of items"
    policies: ClassVar = {**POLICIES, "trusted": f"asserted that {TEXTS[BATTLES]}"}

    def __init__(self, report: BattlesReport | None = None) -> None:
        self._report = report
        self.judges = () if report is None else report.judges

    def counts(self, b: BenchmarkReport) -> str:
        assert self._report is not None
        return f"{counted(len(b.models), 'model')}, {battles.counts(self._report)}"

    def conflicts(self, count: int, models: str) -> str:
        votes = "1 vote contradicts" if count == 1 else f"{count:,} votes contradict"
        same = "judge on the same prompt, models, position and repeat"
        return f"{votes} an earlier vote of the same {same}{models}. The earlier vote counts."

    def conflict_advice(self, b: BenchmarkReport) -> str:
        return "If these are further votes, number them (field repeat)."

    def checks(self) -> list[str]:
        assert self._report is not None
        return battles.checks(self._report)

    def notes(self) -> list[str]:
        return [battles.RATING_NOTE, *self.checks()]

    def decided(self, better: str, worse: str, n: int, wins: int, losses: int) -> str:
        return battle_counts(better, worse, n, wins, losses)

    def exhausted(self, missing: int, ignored: int) -> str:
        return "No further battles come, and the evidence does not decide which model is better."

    def informative(self, informative: int, n: int) -> str:
        return f"Decisive prompts: {informative:,} of {n:,}; the others are ties."

    def other_leader(self, first: str, second: str) -> str:
        return (
            f"{second} wins more of their direct battles, although {first} has the higher rating, which counts the battles with all other "
            "models."
        )


WORDS: Final = {"item": OfItems(), "prompt": OfBattles()}  # by what pairs are compared on


def words_of(report: BenchmarkReport) -> OfItems:
    """Return the words for the scores of a report."""
    if report.battles is not None:
        return OfBattles(report.battles)
    return OfItems() if report.suite is None else OfMembers()
