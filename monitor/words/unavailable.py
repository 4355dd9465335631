"""Why something is not computed: ratings, verdicts by category, replays."""

from typing import Final

UNRATED: Final = {  # why a model has no finite rating
    "won": "it won every battle, so its rating has no upper bound",
    "lost": "it lost every battle, so its rating has no lower bound",
    "apart": "it is in a group of models that won, or lost, every battle with the rated ones",
}

HELD: Final = "the verdicts of this benchmark are held"
GRADED_CATEGORIES: Final = "scores between 0 and 1 have no verdicts by category"
NO_COMMON_ITEM: Final = "no item has a score of every model"
TOO_MANY_SCORES: Final = "there are too many scores for a replay"
NOT_REPLAYED: Final = "only scores 0 and 1 with equal weights are replayed"


def categories_under(policy: str) -> str:
    """Return that an order policy has no verdicts by category."""
    return f"the order policy {policy} has no verdicts by category"


def replay_of(most: int) -> str:
    """Return that a board has too many models for a replay, or too few."""
    return f"boards of 2 to {most} models are replayed"
