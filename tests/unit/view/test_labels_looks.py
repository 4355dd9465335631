"""The look at which evidence from labels is largest is found without working out all of them."""

import numpy as np
import pytest

from monitor.view.labels import Evidence, LabelledScores, _looks
from stats.evidence.labels import labelled_log_e


def scores(size, every, digits, gap, seed):
    rng = np.random.default_rng(seed)
    judge = np.round(np.clip(rng.random((size, 1)) + rng.normal([[gap, 0]], 0.2, (size, 2)), 0, 1), digits)
    part = judge[::every]
    people = np.round(np.clip(part + rng.normal(0, 0.1, part.shape), 0, 1), digits)
    people[rng.random(part.shape) < 0.05] = np.nan  # labels without a score
    return LabelledScores([str(k) for k in range(size)], every, judge, people, np.ones(len(part), bool))


@pytest.mark.parametrize("digits", [0, 1, 6])
@pytest.mark.parametrize(("every", "gap"), [(1, 0.0), (4, 0.1), (4, -0.3), (10, 0.02)])
def test_the_largest_look_is_that_of_all_looks(digits, every, gap):
    for seed in range(2):
        made = scores(240, every, digits, gap, seed)
        judge, (low, high) = made.of_judge(np.subtract), made.of_people(np.subtract)
        rest, of = np.delete(judge, np.s_[::every]), judge[::every]
        better, worse = (
            np.array(
                [labelled_log_e(sign * rest[: n * (every - 1)], people[:n], sign * of[:n]) for n in _looks(made.count)]
            )
            for sign, people in ((1, low), (-1, -high))
        )
        found, expected = made.decided(), Evidence.largest(better, worse)
        assert (found.log_e, found.better, found.worse) == pytest.approx(
            (expected.log_e, expected.better, expected.worse), abs=1e-9
        )
        ((alone,),) = made.at_largest(np.subtract, [1])
        assert alone == pytest.approx(better.max(), abs=1e-9)


def test_without_a_label_there_is_no_look():
    made = scores(20, 4, 1, 0.0, 1)
    none = LabelledScores(made.ids, 4, made.judge, made.people, np.zeros(5, bool))
    assert none.decided() == Evidence()
    assert [each.size for each in none.at_largest(np.subtract)] == [0, 0]
