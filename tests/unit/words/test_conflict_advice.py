"""What a report advises about conflicts."""

import pytest

from monitor.words import header
from tests.report_factory import benchmark, model

EPOCH = (
    "If one file holds both scores, delete one, or number them as repeats (field repeat). "
    "To replace the scores of a model, send all of them in another file under a newer epoch (--epoch next)."
)
ALIAS = (
    "The scores of old include those of new, newer (--alias); if these are different models or runs, omit the alias."
)


@pytest.mark.parametrize(
    ("by_model", "advice"),
    [({"x": 3}, [EPOCH]), ({"old": 3}, [ALIAS]), ({"old": 3, "x": 2}, [ALIAS, EPOCH]), ({"gone": 1}, [EPOCH])],
)
def test_conflicts_of_an_alias_are_no_reason_for_a_newer_epoch(by_model, advice):
    models = [model("old", aliases=["new", "newer"]), model("x", rank=2)]
    sentence = header.conflicts(benchmark(models=models, conflicts=sum(by_model.values()), conflicts_by_model=by_model))
    assert sentence.endswith(f"--conflicts FILE lists them. {' '.join(advice)}")
    assert "an earlier score of the same model, item and repeat: " in sentence
    assert "The earlier score counts." in sentence


def test_no_conflicts_need_no_advice():
    assert header.conflicts(benchmark(conflicts=0)) is None
