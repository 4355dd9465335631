"""What the page writes of a pair: the verdict in one sentence, and the numbers that show why."""

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.live_pairs import LivePairs
from stats.fixed_n.mcnemar import exact_p
from tests.fold_log import FoldLog, packed, paired

ALIKE = 40


def of_page(won, lost, *, items=None, policy="completion"):
    """The page of a pair of which one model wins and loses so many items, and 40 are alike."""
    declared = {"items": items or won + lost + ALIKE} if policy == "completion" else {}
    log = FoldLog({"declare": "bench", "order": {"policy": policy}, "family": {"models": ["ash", "birch"]}, **declared})
    log.send(packed(paired(won, lost, ALIKE), ["ash", "birch"]))
    return LivePairs(board_view(log.bench)).of_page(np.array([0]))


@pytest.mark.parametrize(
    ("won", "lost", "items", "policy", "headline", "turned"),
    [
        (20, 10, None, "completion", "A tie: ash is 14.29 points ahead of birch, not decided.", "ash: 20 items won, 10 lost. 21 and 9 would decide it: 1 item turned."),
        (10, 20, None, "completion", "A tie: birch is 14.29 points ahead of ash, not decided.", "birch: 20 items won, 10 lost. 21 and 9 would decide it: 1 item turned."),
        (24, 6, None, "completion", "ash is better than birch: 25.71 points ahead, decided.", "ash: 24 items won, 6 lost. 21 and 9 would still decide it: 4 items turned would not."),
        (5, 5, None, "completion", "A tie: ash and birch are level on 50 shared items, not decided.", "ash: 5 items won, 5 lost. 9 and 1 would decide it: 4 items turned."),
        (20, 10, 100, "completion", "Open: ash is 14.29 points ahead of birch, and 30 items are missing.", "ash: 20 items won, 10 lost."),
        (3, 1, None, "trusted", "Not decided yet: ash is 4.55 points ahead of birch after 44 items.", "ash: 3 items won, 1 lost."),
    ],
)  # fmt: skip
def test_the_verdict_is_one_sentence_and_its_counts_are_those_that_turn_it(won, lost, items, policy, headline, turned):
    page = of_page(won, lost, items=items, policy=policy)
    assert (page["words"].headline, page["words"].turned_note) == (headline, turned)


def test_the_lead_that_is_needed_is_the_least_that_the_exact_test_decides():
    page = of_page(20, 10)
    least = (30 + page["lead_needed"]) // 2
    assert exact_p(np.array([least]), np.array([30 - least]))[0] <= 0.05
    assert exact_p(np.array([least - 1]), np.array([31 - least]))[0] > 0.05
    assert (page["missing"], of_page(20, 10, items=100)["missing"]) == (0, 30)
    assert of_page(20, 10, policy="trusted")["lead_needed"] is None, "there bets decide"


def test_no_number_decides_while_verdicts_are_held():
    words = of_page(20, 10, policy="none")["words"]
    assert (words.number, words.step) == (None, "held")
    assert "not valid while verdicts are held" in next(row.detail for row in words.rows if row.key == "gap")


def test_graded_scores_name_no_exact_test_and_no_items_that_turn():
    log = FoldLog({"declare": "bench", "scores": "graded", "order": {"policy": "completion"}, "items": 40})
    log.send(packed(np.linspace([0.9, 0.2], [0.7, 0.4], 40), ["ash", "birch"]))
    words = LivePairs(board_view(log.bench)).of_page(np.array([0]))["words"]
    assert words.number == "p of this pair"
    assert words.turned_note is None
