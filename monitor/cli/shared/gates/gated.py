"""`gate --run`: the baseline, the folder and the command of an evaluation that stops when its gate is decided."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.app.gated_evaluation import EvaluationError, EvaluationFolder, Plan, Scores, evaluate, parse_command
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.cli.shared.files import read_results
from monitor.cli.shared.options import DeclareOptions, ScoreOptions
from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.ingest.files.paths import show
from monitor.report.gates.margin import Margin, Question
from monitor.report.pairs.item_means import scores_by_item
from schemas.records.text import shorten
from schemas.results.gate import GateComparison


@dataclass(frozen=True)
class RunCall:
    """What `gate --run` was called with."""

    command: str
    folder: Path
    budget: int | None
    block: int | None
    seed: str | None


def evaluate_gate(
    partition: Partition,
    models: tuple[str, str],
    benchmark: str | None,
    margin: Margin,
    call: RunCall,
    logs: ScoreOptions,
    alpha: float,
    max_rejected: float,
) -> tuple[GateComparison, str]:
    """Evaluate the candidate until its gate is decided; return the comparison, and what was evaluated and saved.

    Parameters
    ----------
    partition : Partition
        Results of the baseline.
    models : (str, str)
        Candidate and baseline.
    benchmark : str or None
    margin : Margin
    call : RunCall
    logs : ScoreOptions
        How to read what the command writes.
    alpha, max_rejected : float
    """
    candidate, baseline = models
    chosen = _benchmark(partition, baseline, benchmark)
    known = {item: score for item, score in scores_by_item(chosen, baseline).items() if score is not None}
    question = Question(chosen.name, candidate, baseline, margin, alpha)

    def read(path: Path) -> Scores:
        output = read_results([str(path)], max_rejected, logs, DeclareOptions(), part=True)
        return _candidate_scores(output, chosen.name, candidate)

    try:
        command = parse_command(call.command)
        folder = EvaluationFolder(call.folder, read, note)
        seed = call.seed or secrets.token_hex(8)
        plan = Plan.of(question, sorted(known), seed, call.block)
        plan = folder.open(plan, command, known, seeded=call.seed is not None)
        done = folder.done()
        if done:
            note(f"{show(call.folder)}: {len(done)} blocks are done; the evaluation goes on")

        def progress(items: int, now: GateComparison) -> None:
            note(
                f"{items:,} of {len(plan.items):,} items: p = {now.p_not_worse:.3g} of not worse, {now.p_worse:.3g} of worse; "
                f"decided at <= {alpha:g}"
            )

        comparison = evaluate(
            plan, known, done, lambda number, ids: folder.run(command, number, ids), call.budget, progress
        )
    except EvaluationError as error:
        stop(str(error))
    except OSError as error:
        stop(file_error(error, call.folder))
    return comparison, saved(comparison, len(plan.items), call.budget)


def saved(comparison: GateComparison, items: int, budget: int | None) -> str:
    """Return how many items were evaluated, and how many were saved."""
    left = items - comparison.n
    share = f"{left:,} items ({100 * left / items:.0f} %) were not evaluated" if left else "none were left"
    spent = ", the budget" if budget is not None and comparison.n >= budget and comparison.decided_at_n is None else ""
    return f"evaluated {comparison.n:,} of {items:,} items{spent}; {share}"


def _benchmark(partition: Partition, baseline: str, name: str | None) -> Benchmark:
    benchmarks = {
        each.name: each for each in partition.benchmarks.values() if any(c.model == baseline for c in each.contestants)
    }
    if not benchmarks:
        models = sorted({c.model for each in partition.benchmarks.values() for c in each.contestants})
        stop(f"the baseline {show(baseline)} has no results; the files have {_join(models)}", USAGE)
    if name is not None and name not in benchmarks:
        stop(
            f"--benchmark {show(name)}: the baseline has no results there; choose one of {_join(sorted(benchmarks))}",
            USAGE,
        )
    if name is None and len(benchmarks) > 1:
        stop(
            f"the baseline has results of {len(benchmarks)} benchmarks; choose one with --benchmark: {_join(sorted(benchmarks))}",
            USAGE,
        )
    return benchmarks[name] if name is not None else next(iter(benchmarks.values()))


def _candidate_scores(output: Partition, benchmark: str, candidate: str) -> Scores:
    """Return the candidate's scores in the output of a block; an output of one model, or one benchmark, needs no name."""
    benchmarks = {each.name: each for each in output.benchmarks.values() if each.contestants}
    chosen = benchmarks.get(benchmark) or (next(iter(benchmarks.values())) if len(benchmarks) == 1 else None)
    if chosen is None:
        raise EvaluationError(f"the output has no results of {benchmark}, but of {_join(sorted(benchmarks))}")
    models = list(dict.fromkeys(each.model for each in chosen.contestants))
    if candidate in models:
        return scores_by_item(chosen, candidate)
    if len(models) > 1:
        raise EvaluationError(
            f"the output has no results of {candidate}, but of {_join(models)}; name one of them in --pair"
        )
    return scores_by_item(chosen, models[0])


def _join(names: Sequence[str]) -> str:
    return ", ".join(shorten(name) for name in names[:10]) + (
        f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    )
