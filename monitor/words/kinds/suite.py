"""The words about the members of a suite."""

from collections import Counter
from typing import Final

from monitor.words.counts import counted
from schemas.results.report import BenchmarkReport, SuiteMember

_NAMED: Final = 3  # models that are named


def members(benchmark: BenchmarkReport) -> list[str]:
    """Return the members of a suite, which models lack one, and what makes the gaps, a sentence each; nothing for other benchmarks."""
    suite = benchmark.suite
    if suite is None:
        return []
    texts = [f"Members: {', '.join(map(_member, suite.members))}."]
    normalised = [f"{m.baseline:g} in {m.benchmark}" for m in suite.members if m.baseline]
    if normalised:
        texts.append(f"Scores count above a baseline, as (x - baseline) / (1 - baseline): {', '.join(normalised)}.")
    if suite.hides:
        texts.append("A benchmark of the same name has events and is not shown; give the suite another name.")
    drivers = Counter(gap.driver for gap in suite.gaps if gap.driver is not None)
    if drivers:
        (first, most), *rest = drivers.most_common()
        parts = "".join(f", {name} of {count:,}" for name, count in rest)
        of = f"{most:,} of {counted(len(suite.gaps), 'gap')} between neighbours in rank"
        texts.append(f"{first} makes the largest part of {of}{parts}.")
    if suite.lacking:
        verb = "lacks" if len(suite.lacking) == 1 else "lack"
        then = "and so a rank here" if suite.missing == "unranked" else "which counts 0"
        first = ", ".join(f"{model} ({', '.join(lacks)})" for model, lacks in list(suite.lacking.items())[:_NAMED])
        more = f" and {len(suite.lacking) - _NAMED:,} more" if len(suite.lacking) > _NAMED else ""
        texts.append(f"{counted(len(suite.lacking), 'model')} {verb} a member {then}: {first}{more}.")
    return texts


def _member(member: SuiteMember) -> str:
    facts = [counted(member.items, "item"), counted(member.models, "model")]
    if member.state == "absent":
        facts = ["no events: no model is ranked"]
    elif member.state == "battles":
        facts = ["battles, which have no score: no model is ranked"]
    elif member.state == "archived":
        facts.append("archived")
    if member.weighted:
        facts.append("by the plain mean over its items, without its own weights")
    return f"{member.benchmark} ({', '.join(facts)})"
