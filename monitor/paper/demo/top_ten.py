"""The paper's MMLU-Pro top ten and its verdict table."""

from typing import Final

from monitor.paper.published import PAPER, PublishedPair

PAIRS: Final[tuple[PublishedPair, ...]] = PAPER.mmlu  # the nine pairs of neighbours in rank, as printed

ITEMS: Final = PAIRS[0].items

MODELS: Final = (  # the ten models by published rank
    "calme-3.2-78b",
    "calme-3.1-78b",
    "CalmeRys-78B-Orpo",
    "calme-2.4-rys-78b",
    "Reflection-70B",
    "Arcee-Blitz",
    "Homer-Qwen2.5-72B",
    "ultiima-72B-v1.5",
    "Qwen2.5-72B",
    "QwentileSwap",
)

UNRESOLVED: Final = {"fixed_n": 4, "bonferroni": 4, "anytime": 5, "clustered": 6}
"""The paper's verdict table: how many of nine pairs are unresolved, by procedure."""
