"""Codes of the score matrix, one small integer for each distinct score, and how arrays grow."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.records.scores import ONE, SCORE_UNIT, ZERO

NARROW: Final = 254  # distinct scores that fit into one byte, next to `ABSENT` and `SKIPPED`

Codes = NDArray[np.uint8] | NDArray[np.uint32]
Counts = NDArray[np.int32]


class ScoreTable:
    """Scores in units of `SCORE_UNIT` by code, and codes by score."""

    def __init__(self) -> None:
        self.code_of = {0: ZERO, SCORE_UNIT: ONE}
        self._by_code = np.array([0, 0, 0, SCORE_UNIT], np.int64)

    def __len__(self) -> int:
        """Return the number of distinct scores; 0 and 1 are always among them."""
        return len(self.code_of)

    @property
    def by_code(self) -> NDArray[np.int64]:
        """Score of each code; 0 for absent and skipped."""
        return self._by_code[: 2 + len(self.code_of)]

    def add(self, score: int) -> int:
        """Add a score, and return its code."""
        code = self.code_of[score] = len(self.code_of) + 2
        if code == self._by_code.size:
            self._by_code = np.concatenate([self._by_code, np.zeros(code // 8 + 64, np.int64)])
        self._by_code[code] = score
        return code

    def codes_of(self, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the codes of scores; add those that are new."""
        distinct, index = np.unique(scores, return_inverse=True)
        codes = [self.code_of[score] if score in self.code_of else self.add(score) for score in distinct.tolist()]
        return np.array(codes, np.int64)[index]


def grown(array: NDArray[Any], *shape: int, spare: float = 1 / 16) -> NDArray[Any]:
    """Return an array of at least this shape that starts with the given one, with some spare room and zeros after it."""
    sizes = list(zip(array.shape, shape, strict=True))
    if all(have >= need for have, need in sizes):
        return array
    target = [have if have >= need else max(need, int(have * (1 + spare)) + 2) for have, need in sizes]
    result = np.zeros(target, array.dtype)
    result[tuple(slice(0, have) for have in array.shape)] = array
    return result
