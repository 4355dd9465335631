"""The paper's published numbers next to recomputed ones: the command `rankwatch reproduce`."""

from collections.abc import Callable

from monitor.paper.published import PAPER, Paper
from monitor.paper.reproduce.render import as_json, counts, render_table
from monitor.paper.reproduce.rows import Row, Section

__all__ = ["PAPER", "Paper", "Row", "Section", "as_json", "counts", "render_table", "run"]

Progress = Callable[[str, int, int], None]
"""Called with the present step, the number of steps done and the number of all steps."""


def run(full: bool = False, progress: Progress | None = None, paper: Paper = PAPER) -> list[Section]:  # noqa: FBT001, FBT002
    """Recompute every table whose inputs the paper prints."""
    from monitor.paper.reproduce import formulas, simulations, tables  # noqa: PLC0415 - heavy: only a run needs them

    steps: list[tuple[str, Callable[[], Section]]] = [
        (
            "OLL v1 pairs",
            lambda: tables.discordance("Open LLM Leaderboard v1: close pairs", "table discord_oll", paper.oll),
        ),
        ("MMLU-Pro pairs", lambda: tables.discordance("MMLU-Pro: adjacent pairs", "table discord_mmlupro", paper.mmlu)),
        ("arbiters", lambda: tables.arbiters(paper)),
        ("buckets", lambda: tables.buckets(paper)),
        ("verdicts", lambda: tables.verdicts(paper)),
        ("correlation", lambda: tables.rho_shift(paper)),
        ("clusters", lambda: tables.clusters(paper)),
        ("shortcut", lambda: formulas.shortcut(paper)),
        ("calculators", lambda: formulas.calculators(paper)),
        ("inflation", lambda: formulas.inflations(paper)),
        ("prospective design", lambda: formulas.prospective(paper)),
        ("five tests", lambda: formulas.variants(paper)),
    ]
    if full:
        steps += simulations.steps(paper)
    steps.append(("not recomputable", tables.out_of_reach))
    sections = []
    for done, (name, step) in enumerate(steps):
        if progress is not None:
            progress(name, done, len(steps))
        sections.append(step())
    if progress is not None:
        progress("done", len(steps), len(steps))
    return sections
