"""The facts above a benchmark: what was read, what its verdicts assume, and the thresholds."""

from collections.abc import Sequence
from math import exp, isfinite, log, log1p
from typing import Final

from monitor.words import numbers as form
from monitor.words.columns import GOAL
from monitor.words.counts import counted
from monitor.words.flags import with_flags
from monitor.words.kinds import words_of
from monitor.words.order import LOOKS, at_the_end, because
from monitor.words.reading import skips_of
from schemas.results.reasons import Fact, Reason, has, without
from schemas.results.report import BenchmarkReport, GoalReport, GoalRun, ModelReport, ResultLine

NO_RESULTS: Final = "No results: no score was read."
NO_PAIR: Final = "There is no pair to compare: it takes two models with scores on the same items."

PATH_ORDER: Final = (
    "The path takes the items in the order in which they were first seen, or in the committed order if there is one. The order changes the "
    "path, not its endpoint; only a committed order shows the path that led to the verdict."
)
TWO_WORDS: Final = (
    "Decided: there is evidence which model is better on items of this kind, in this mix of categories. Resolved: a planned test of "
    f"N items detects a gap of this size (q = N/N* is at least 1). These are two separate questions: {form.Q_IS_NO_EVIDENCE}."
)
PLANNED: Final = (
    "Fixed n, Bonferroni, Holm, Benjamini-Hochberg and clustered are valid at a planned n only. Bonferroni, Holm and Benjamini-Hochberg "
    "take all pairs of this report as one family."
)

_NAMED: Final = 3  # models with conflicts that are named
_SUSPICIONS: Final = (Reason.SUSPECT_ORDER, Reason.ORDER_REFUTED)  # findings about the arrival order


def result(benchmark: BenchmarkReport) -> list[tuple[str, ResultLine]]:
    """Return the goal, who is best, how many steps are real and what would change that, as far as they are known, each with its word."""
    lines, goal = benchmark.result, benchmark.goal
    found = [] if goal is None else [("goal", goal_line(goal))]
    found += [] if goal is None or goal.verified is None else [("verified", goal.verified)]
    if lines is not None:
        named = (("best", lines.best), ("steps", lines.steps), ("details", lines.change))
        found += [(word, line) for word, line in named if line is not None]
    return found


def goal_line(g: GoalReport) -> ResultLine:
    """Return the goal, whether it is met, and how much was run for it."""
    state = {"met": "met", "open": f"open ({g.goal})", "impossible": f"out of reach ({g.goal})"}[g.state]
    return ResultLine(yes=g.state == "met", text=f"Goal {state}: {g.reason} {_spent(g)}")


def _spent(g: GoalReport) -> str:
    """Return how many scores were run, of how many, and what they cost."""
    cost = f" {text}" if (text := cost_sentence(g)) else ""
    if g.items_full is None or g.saved_ratio is None:
        return f"Run so far: {counted(g.items_run, 'score')}.{cost}"
    return f"Run so far: {g.items_run:,} of {counted(g.items_full, 'score')}, {100 * g.saved_ratio:.1f} % saved.{cost}"


def cost_sentence(g: GoalReport) -> str:
    """Return what was run and saved in money; nothing without prices."""
    lacking = [run.model for run in g.by_model if run.cost_run is None]
    if len(lacking) == len(g.by_model):
        return ""
    if g.cost_run is None:
        rest = f" and {counted(len(lacking) - 1, 'more model')}" if len(lacking) > 1 else ""
        return f"Cost: not known, since {lacking[0]}{rest} {'have' if rest else 'has'} no price."
    saved = "" if g.cost_saved is None else f", {form.money(g.cost_saved)} saved"
    return f"Cost: {form.money(g.cost_run)}{saved}."


def goal_table(goal: GoalReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the columns and rows of what each model ran for a goal, by rank; the first and the last column are text."""
    priced = any(run.cost_run is not None for run in goal.by_model)
    columns = tuple(head for key, head in GOAL.items() if priced or key not in {"cost_run", "cost_saved"})
    return columns, [_goal_row(run, priced=priced) for run in goal.by_model]


def _goal_row(run: GoalRun, *, priced: bool) -> tuple[str, ...]:
    money = [form.MISSING if cost is None else form.money(cost) for cost in (run.cost_run, run.cost_saved)]
    return (
        run.model,
        f"{run.items_run:,}",
        form.MISSING if run.items_full is None else f"{run.items_full:,}",
        form.MISSING if run.saved_ratio is None else f"{100 * run.saved_ratio:.1f}",
        *(money if priced else ()),
        "no" if run.left else "yes",
    )


def counts(benchmark: BenchmarkReport) -> str:
    """Return how much was read."""
    return words_of(benchmark).counts(benchmark)


def conflicts(benchmark: BenchmarkReport, *, advice: bool = True) -> str | None:
    """Return which models have scores that contradict earlier ones, and what to do; None without conflicts."""
    b, words = benchmark, words_of(benchmark)
    if not b.conflicts:
        return None
    most = list(b.conflicts_by_model.items())
    names = "".join(f"{', ' if k else ': '}{model} ({count:,})" for k, (model, count) in enumerate(most[:_NAMED]))
    rest = f" and {counted(len(most) - _NAMED, 'more model')}" if len(most) > _NAMED else ""
    text = f"{words.conflicts(b.conflicts, names + rest)} --conflicts FILE lists them."
    return f"{text} {words.conflict_advice(b)}" if advice else text


def epochs(benchmark: BenchmarkReport) -> str | None:
    """Return which epochs were read, and what is not ranked; None where there is only one."""
    b = benchmark
    if len(b.epochs) < 2:
        return None
    text = f"{', '.join(map(str, b.epochs))} were read; a model is ranked by its newest"
    if not b.unranked:
        return text
    verb = "is" if b.unranked == 1 else "are"
    return f"{text}, and {counted(b.unranked, 'score')} on items that only an earlier epoch has {verb} not ranked (--inherit keeps them)"


def clusters(benchmark: BenchmarkReport) -> str | None:
    """Return how many clusters the items are in, and the effective number; None without clusters."""
    count = benchmark.clusters
    if count is None:
        return None
    return f"{counted(count.clusters, 'cluster')}, effective number {count.effective_clusters:.1f}"


def weights(benchmark: BenchmarkReport) -> str | None:
    """Return what each cluster counts, and how the ranking differs from the unweighted one; None where every item counts the same."""
    given = benchmark.weights
    if given is None:
        return None
    noun = words_of(benchmark).of_weights
    if given.equal:
        text = f"each of the {counted(len(given.clusters), noun)} counts the same"
    else:
        heaviest = sorted(given.clusters, key=lambda each: (-each.weight, each.cluster))
        text = ", ".join(f"{each.cluster} {100 * each.weight:.3g} %" for each in heaviest[:_NAMED])
        text += f" and {len(heaviest) - _NAMED:,} more {noun}s" if len(heaviest) > _NAMED else ""
    places = counted(given.places_differ, "place")
    text += f"; the ranking differs from the unweighted one in {places if given.places_differ else 'no place'}"
    if not given.unranked:
        return text
    verb, whose = ("has", "it comes") if given.unranked == 1 else ("have", "they come")
    models = counted(given.unranked, "model")
    return f"{text}; {models} {verb} no score in some {noun} and so no weighted mean: {whose} last"


def cluster_warning(benchmark: BenchmarkReport) -> str | None:
    """Return why to read clustered results with care, or why there are none; None if nothing is wrong."""
    return None if benchmark.clusters is None else benchmark.clusters.warning


def coverage(benchmark: BenchmarkReport) -> str | None:
    """Return what different items do to the ranks, and which pairs contradict them; None where all models have the same items."""
    b = benchmark
    if b.shared_items is None:
        return None
    if not b.shared_items:
        text = "no item has a score of every model, so the means do not compare"
    else:
        moved = [m for m in b.models if m.shared_rank is not None and m.shared_rank != m.rank]
        names = ", ".join(f"{m.model} ({m.rank} to {m.shared_rank})" for m in moved[:_NAMED])
        more = f" and {len(moved) - _NAMED:,} more" if len(moved) > _NAMED else ""
        change = f"these ranks change: {names}{more}" if moved else "no rank changes"
        text = f"means are over different items; on the {counted(b.shared_items, 'item')} that all models have {change}"
    against = [p for p in b.pairs if p.gap is not None and p.gap < 0 and p.status != "superseded"]
    if against:
        first = ", ".join(f"{p.model_b} over {p.model_a}" for p in against[:_NAMED])
        more = f" and {len(against) - _NAMED:,} more" if len(against) > _NAMED else ""
        text += f"; the lower-ranked model leads on the shared items of {counted(len(against), 'pair')}: {first}{more}"
    return text


def short_checks(benchmark: BenchmarkReport) -> list[str]:
    """Return what to check before the ranking is quoted, a sentence each; `--verbose` has the details."""
    b = benchmark
    checks = []
    moved = sum(m.shared_rank is not None and m.shared_rank != m.rank for m in b.models)
    if b.shared_items is not None:
        ranks = f"{counted(moved, 'rank')} {'changes' if moved == 1 else 'change'}" if moved else "no rank changes"
        on_shared = f"on the {b.shared_items:,} shared by all, {ranks}"
        checks.append(
            f"Scores are over different items: {on_shared if b.shared_items else 'no item has a score of every model'}."
        )
    warning = order_warning(b)
    # The head of the report names the refused files, and its second line why pairs are held besides.
    said = b.refused and b.incomplete is None
    if warning is not None and not said and not has(b.order.facts, *_SUSPICIONS) and not _is_in_result(b):
        checks.append(f"{warning[0].upper()}{warning[1:]}.")
    checks += [
        f"{name}: {text}."
        for name, text in (("Titles", titles(b)), ("Aliases", aliases(b)), ("Epochs", epochs(b)))
        if text is not None
    ]
    checks += reading(b)
    checks += words_of(b).checks()
    text = conflicts(b, advice=False)
    return checks if text is None else [*checks, text]


def reading(benchmark: BenchmarkReport) -> list[str]:
    """Return who lacks scores, and what was chosen or found in the files, a sentence each."""
    skips = skips_of(benchmark)
    notes = [f"Files: {text}." for text in benchmark.reading[:_NAMED]]
    more = len(benchmark.reading) - _NAMED
    notes += [f"Files: {counted(more, 'more note')} (--format json lists them)."] if more > 0 else []
    return [*([] if skips is None else [skips]), *notes]


def harmless_order(benchmark: BenchmarkReport) -> str | None:
    """Return that the arrival order is suspect where no verdict depends on it; None elsewhere."""
    harmless = has(benchmark.order.facts, *_SUSPICIONS) and not has(_held(benchmark), *_SUSPICIONS)
    return "The arrival order is suspect; no verdict here depends on it." if harmless else None


def _held(benchmark: BenchmarkReport) -> list[Fact]:
    """Return why the line about decided pairs gives no verdict, or no further one."""
    facts = [] if benchmark.result is None else benchmark.result.decided.facts
    return [each for said in facts for each in said.get("because", [])]


def _is_in_result(benchmark: BenchmarkReport) -> bool:
    """Return whether the line about decided pairs gives the reason of the order already."""
    held = _held(benchmark)
    return bool(held) and all(each in held for each in benchmark.order.facts)


def low_coverage(models: int, share: float) -> str:
    """Return how many models lack items."""
    return f"{counted(models, 'model')} with scores on less than {share:.0%} of the items: means over different items may not compare."


def assumed(benchmark: BenchmarkReport, *, several: bool = False) -> str:
    """Return what the verdicts assume, and their error rate, in two sentences; nothing where no verdict is given."""
    # `several` is whether other benchmarks are reported too, each with an alpha of its own.
    b = benchmark
    if b.order.policy == "none":
        return ""
    besides = without(b.order.facts, *_SUSPICIONS, Reason.ASSERTED) if _has_assumed(b) else []
    text = "; ".join(filter(None, (f"Assumes that {b.assumption}", with_flags(because(besides) or ""))))
    also = f" Assumes that {b.family_assumption}." if b.family_assumption is not None else ""
    return f"{text}. {'' if is_held(b) else f'{error_rate(b, several=several)}.'}{also}".strip()


def is_held(benchmark: BenchmarkReport) -> bool:
    """Return whether verdicts are held and none was given before: then there is no chance of a false one to state."""
    held = benchmark.result is not None and benchmark.result.decided.held
    sides = [(pair.decided.anytime, pair.decided.anytime_family) for pair in benchmark.pairs]
    return held and not any(map(any, sides))


def error_rate(benchmark: BenchmarkReport, *, several: bool = False) -> str:
    """Return the chance of a false verdict, over which pairs it holds, and at how many looks; `several` as in `assumed`."""
    b = benchmark
    size = b.family.size if b.family.policy == "capacity" else None
    over = "" if size == 1 else " among all pairs" if size is None else f" among all {counted(size, 'pair')}"
    if b.family.families > 1:
        over = f" in each of {b.family.families} families of pairs, one for each generation of scores"
    outside = f" ({counted(b.family_outside, 'pair')} outside the family)" if b.family_outside else ""
    each = " for each benchmark" if several else ""
    return f"At most {100 * b.alpha:g} % chance of a false verdict{over}{outside}{each}, {LOOKS[b.looks]}"


def family(benchmark: BenchmarkReport) -> str:
    """Return the policy and the size of the family, and how many pairs get no family-wise verdict."""
    size, outside = benchmark.family.size, benchmark.family_outside
    text = f"{benchmark.family.policy}, {'size not fixed' if size is None else counted(size, 'pair')}"
    if benchmark.family.families > 1:
        text += f" in the largest of {benchmark.family.families} families, one for each generation of scores"
    return text if not outside else f"{text}; {counted(outside, 'pair')} outside it, without family-wise verdicts"


def levels(benchmark: BenchmarkReport) -> str:
    """Return alpha, power, mixture and look."""
    look = f", look {benchmark.look:g}" if benchmark.look else ""
    return f"alpha {benchmark.alpha:g}, power {benchmark.power:g}, mixture {benchmark.mixture}{look}"


def log_thresholds(benchmark: BenchmarkReport) -> tuple[float, float | None]:
    """Return ln(1/alpha), and ln(m/alpha) of a family of declared capacity m, of the share of alpha that the bets have."""
    # Under `spending`, and in several families, every pair has its own threshold, so there is no second number.
    policy = benchmark.family
    pair, shared = (
        -log(benchmark.alpha) - log1p(-(benchmark.look or 0)),
        policy.policy == "capacity" and policy.families == 1,
    )
    return pair, pair + log(policy.size) if shared and policy.size else None


def log_e_digits(benchmark: BenchmarkReport) -> int:
    """Return the decimals that show on which side of its thresholds each ln e of the report is."""
    limits = [each for each in log_thresholds(benchmark) if each is not None]
    values = [pair.log_e for pair in benchmark.pairs if pair.log_e is not None and isfinite(pair.log_e)]
    return 2 + form.digits_apart(lambda x, more: form.decimal(x, 2 + more), values, limits)


def thresholds(benchmark: BenchmarkReport) -> str:
    """Return the evidence that decides a pair on its own and in the family."""
    pair, in_family = log_thresholds(benchmark)
    if tests_at_n(benchmark):
        first = "its own threshold" if in_family is None else f"<= {exp(-in_family):.2g}"
        return f"p <= {benchmark.alpha:g} of the exact test for a pair on its own, {first} in the family, more as pairs are decided"
    digits = log_e_digits(benchmark)
    family = None if in_family is None else form.decimal(in_family, digits)
    rest = f">= {family} in the family" if family is not None else "its own threshold in the family"
    text = f"ln e >= {form.decimal(pair, digits)} for a pair on its own, {rest}, less as pairs are decided"
    return f"{text}; or by one exact test of all items with {at_the_end(benchmark.look)}" if benchmark.look else text


def tests_at_n(benchmark: BenchmarkReport) -> bool:
    """Return whether decisions rest on the exact test of a benchmark of known size, and not on e-values."""
    return benchmark.order.policy == "completion" and not benchmark.mixture.startswith("graded")


def registration(benchmark: BenchmarkReport) -> str | None:
    """Return what family-wise verdicts assume of the models that join, how alpha is spent, and why a report may decide other pairs."""
    # None where they assume nothing of it, and where nothing is decided because the benchmark is held.
    held = any(pair.status in {"held", "invalidated"} for pair in benchmark.pairs)
    assumption = benchmark.family_assumption
    if assumption is None or benchmark.order.policy == "none" or held:
        return None
    if benchmark.family.policy != "spending":
        return f"Family-wise verdicts assume that {assumption}."
    spent = (
        "Alpha is spent in the order in which the pairs arrived, because more models may come; family-wise verdicts assume that "
        f"{assumption} (--models declares the models instead)."
    )
    if benchmark.order.policy != "completion":
        return spent  # a report spends it in the same way
    pairs = len(benchmark.models) * (len(benchmark.models) - 1) // 2
    return (
        f"{spent} `rankwatch report` on complete files divides it by the number of pairs ({pairs:,}) unless a family is declared, and may "
        "decide others."
    )


def aliases(benchmark: BenchmarkReport) -> str | None:
    """Return which models include the events of other names; None if none does."""
    named = [f"{model.model} includes {', '.join(model.aliases)}" for model in benchmark.models if model.aliases]
    return "; ".join(named) or None


def titles(benchmark: BenchmarkReport) -> str | None:
    """Return which models are shown under a title; None if none is."""
    named = [f"{model.title} is {model.model}" for model in benchmark.models if model.title is not None]
    return "; ".join(named) or None


def order_sentence(benchmark: BenchmarkReport) -> str:
    """Return what the order policy assumes, and what the report assumes besides or in place of it."""
    reason = benchmark.order.reason
    declared = words_of(benchmark).policies[benchmark.order.policy]
    if not _has_assumed(benchmark):
        return declared
    return str(reason) if has(benchmark.order.facts, Reason.ASSERTED) else f"{declared}; {reason}"


def order_warning(benchmark: BenchmarkReport) -> str | None:
    """Return what is wrong with the order, or missing; None if nothing is."""
    if _has_assumed(benchmark):
        return None
    return benchmark.order.reason or ("the arrival order is suspect" if benchmark.order.suspect else None)


def _has_assumed(benchmark: BenchmarkReport) -> bool:
    """Return whether the reason of the order is what the report assumes, and not what is wrong."""
    return has(benchmark.order.facts[:1], Reason.ASSERTED, Reason.FILES_COMPLETE)


def notes(benchmark: BenchmarkReport, low: Sequence[ModelReport], share: float) -> list[str]:
    """Return what a reader needs to know before trusting a rank; `low` are the models with scores on a smaller share of the items."""
    b = benchmark
    warnings = [*reading(b), *words_of(b).notes()]
    if b.partial is not None:
        warnings.append(f"This benchmark may be partial: {b.partial}.")
    if b.board is not None and b.board.note is not None:
        warnings.append(f"{b.board.note[0].upper()}{b.board.note[1:]}.")
    if (warning := order_warning(b)) is not None:
        warnings.append(f"Order of arrival: {warning}.")
    if (text := coverage(b)) is not None:
        warnings.append(f"{text[0].upper()}{text[1:]}.")
    warnings += [text for text in (cluster_warning(b), conflicts(b)) if text is not None]
    if b.rejected:
        verb = "was rejected and is" if b.rejected == 1 else "were rejected and are"
        warnings.append(f"{counted(b.rejected, 'record')} {verb} not counted.")
    if low:
        names = ", ".join(f"{m.model} ({m.coverage:.1%})" for m in low[:5]) + (", ..." if len(low) > 5 else "")
        warnings.append(
            f"{counted(len(low), 'model')} with scores on less than {share:.0%} of the items: {names}. "
            "Means over different items may not compare; pairs are compared on the items they share."
        )
    return warnings
