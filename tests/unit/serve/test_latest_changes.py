"""What the page asks of the API beyond pages in order: the latest changes, and one pair by its two names."""

import random

from tests.commands import events
from tests.served import Served, folded

SKILLS = {"alpha": 0.95, "bravo": 0.5, "charlie": 0.05}


def test_the_latest_changes_come_first():
    records = events(random.Random(1), SKILLS, 80)
    with Served(folded(records, items=80)) as served:
        in_order = served.get("changes?benchmark=bench").json["changes"]
        assert len(in_order) > 3
        assert served.get("changes?benchmark=bench&newest=true").json["changes"] == in_order[::-1]
        latest = served.get("changes?benchmark=bench&newest=true&limit=2").json
        assert latest["changes"] == [in_order[-1], in_order[-2]]
        # A page that goes on from there has what came since: nothing yet.
        assert served.get(f"changes?benchmark=bench&after={latest['next']}").json["changes"] == []


def test_a_benchmark_without_changes_has_no_latest():
    with Served(folded(events(random.Random(2), SKILLS, 2), items=80)) as served:
        assert served.get("changes?benchmark=bench&newest=true").json == {"changes": [], "next": None}


def test_a_pair_is_found_by_its_two_names():
    records = events(random.Random(3), SKILLS, 20)
    with Served(folded(records, items=20)) as served:
        for model, other in (("alpha", "charlie"), ("charlie", "alpha")):
            page = served.get(f"pairs?benchmark=bench&model={model}&other={other}").json
            assert [(p["model_a"], p["model_b"]) for p in page["pairs"]] == [("alpha", "charlie")]
            assert page["total"] == 1
        assert served.get("pairs?benchmark=bench&model=alpha&other=alpha").json["total"] == 2
        assert served.get("pairs?benchmark=bench&model=alpha&other=nobody").status == 404
