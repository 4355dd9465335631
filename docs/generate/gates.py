"""The table of what a gate can show: how-to/gate-for-50-cases.md."""

from monitor.view.gates.check import check_gate

_MARGIN, _ALPHA = 0.03, 0.05


def table() -> str:
    """Return how often gates of several sizes pass and fail, for models that are alike and for those worse by the margin."""
    shown = check_gate(None, _MARGIN, _ALPHA, None, 1).shown
    rows = [
        f"| {each.items:,} | {each.discordance:.0%} | {each.equal_passed:.1%} | {each.equal_failed:.1%} "
        f"| {max(0.0, 1 - each.equal_passed - each.equal_failed):.1%} | {each.worse_passed:.1%} | {each.worse_failed:.1%} |"
        for each in shown
    ]
    head = "| items | differ | equal: pass | fail | undecided | worse by 3 points: pass | fail |"
    return "\n".join((head, "|--:|--:|--:|--:|--:|--:|--:|", *rows))
