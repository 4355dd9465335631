"""Suites of a server: from the members' own states, whichever partitions hold them."""

import json
from urllib.parse import quote

import pytest

from monitor.instruments import ProcessMetrics
from monitor.serve.api.reading.change_feed import START, VerdictHistory
from monitor.serve.metrics.collector import MetricsCollector, WorkerInfo
from monitor.serve.report_cache import ReportCache
from monitor.view.partition_view import PartitionView
from schemas.records.suites import Member, Suite
from tests.fold_log import FoldLog, event
from tests.served import Served

OVERALL = Suite("overall", {"easy": Member(), "hard": Member(3)}, distinct=True)
RIGHT = {"easy": {"ash": 30, "birch": 24, "cedar": 20}, "hard": {"ash": 5, "birch": 15, "cedar": 9}}
SIZES = {"easy": 40, "hard": 25}


class Boards:
    """A log for each benchmark, each a partition of its own."""

    def __init__(self, *suites, names=("easy", "hard"), declared=False, **options):
        self.logs = {name: FoldLog(*([{"declare": name, "items": SIZES[name]}] if declared else [])) for name in names}
        for number, (name, log) in enumerate(self.logs.items()):
            log.partition.number = number
            log.partition.owner = lambda benchmark, name=name, number=number: number if benchmark == name else -1
        self.reports = ReportCache(
            lambda: list(map(PartitionView, self.partitions)), suites=suites or [OVERALL], **options
        )

    @property
    def partitions(self):
        return [log.partition for log in self.logs.values()]

    def send(self, name, *models, items=None):
        self.logs[name].send(
            *(
                event(k, model, int(k < RIGHT[name][model]), benchmark=name)
                for model in models or RIGHT[name]
                for k in range(items or SIZES[name])
            )
        )

    def suite(self):
        """The report of the suite now: a slow one would be reused for a while."""
        self.reports.clear()
        return self.reports.benchmark_report("overall", "all")


def test_a_suite_is_the_weighted_mean_over_members_of_other_partitions():
    boards = Boards()
    boards.send("easy")
    boards.send("hard")
    suite = boards.suite()
    assert boards.reports.names() == ["overall", "easy", "hard"]
    assert {m.model: m.mean for m in suite.models} == pytest.approx(
        {model: 0.25 * RIGHT["easy"][model] / 40 + 0.75 * RIGHT["hard"][model] / 25 for model in RIGHT["easy"]}
    )
    assert {p.status for p in suite.pairs} == {"held"}
    assert all("no anytime verdict" in p.reason for p in suite.pairs)
    for pair in suite.pairs:
        assert (pair.log_e, pair.p_anytime, pair.gap_low, pair.gap_family_low) == (None,) * 4
        assert (pair.decided.anytime, pair.decided.anytime_family, pair.decided.e_bh) == (None,) * 3
    assert any(pair.decided.fixed_n for pair in suite.pairs)


def test_members_and_models_may_come_late():
    boards = Boards()
    boards.send("easy", "ash", "birch")
    first = boards.suite()
    assert (first.models, [m.state for m in first.suite.members]) == ([], ["counts", "absent"])
    assert first.suite.lacking == {"ash": ["hard"], "birch": ["hard"]}
    boards.send("hard", "ash")
    assert [m.model for m in boards.suite().models] == ["ash"]
    boards.send("hard", "birch", "cedar")
    boards.send("easy", "cedar")
    assert [m.model for m in boards.suite().models] == ["birch", "cedar", "ash"]
    assert boards.reports.find("overall") is boards.reports.find("overall")


def test_a_deleted_member_is_absent_again():
    boards = Boards()
    boards.send("easy")
    boards.send("hard")
    assert len(boards.suite().models) == 3
    del boards.logs["hard"].partition.benchmarks["hard"]
    assert boards.suite().models == []
    assert boards.suite().suite.members[1].state == "absent"


def test_battles_are_no_member():
    boards = Boards()
    boards.send("easy")
    boards.logs["hard"].send({"benchmark": "hard", "item_id": "1", "model_a": "ash", "model_b": "birch", "winner": "a"})
    suite = boards.suite()
    assert (suite.models, [m.state for m in suite.suite.members]) == ([], ["counts", "battles"])


def test_a_lead_is_settled_when_every_size_is_declared_and_nothing_missing_can_change_it():
    boards = Boards(declared=True)
    boards.send("easy")
    boards.send("hard", items=20)
    sides = {(p.model_a, p.model_b): p.settled for p in boards.suite().pairs}
    # Of 25 items of weight .75, 5 are missing: they can move a gap by .15.
    scores = {m: (RIGHT["easy"][m] / 40 / 4, 0.75 * min(RIGHT["hard"][m], 20) / 25) for m in RIGHT["easy"]}
    for (a, b), side in sides.items():
        lead = sum(scores[a]) - sum(scores[b])
        assert side == ("a" if lead > 0.15 else "b" if lead < -0.15 else None)
    assert set(sides.values()) == {"a", None}
    boards.send("hard")
    assert {p.settled for p in boards.suite().pairs} == {"a"}


def test_the_summary_of_a_suite_counts_its_verdicts():
    boards = Boards()
    for name, log in boards.logs.items():
        log.send({"declare": name, "items": SIZES[name], "family": {"policy": "capacity", "size": 3}})
        boards.send(name)
    decided = [p for p in boards.suite().pairs if p.decided.anytime_family is not None]
    (summary,) = json.loads(boards.reports.listed_summaries(["overall"]))
    assert summary["decided"] == len(decided)
    assert summary["order"]["policy"] == "completion"


def test_without_every_size_nothing_is_settled():
    boards = Boards()
    boards.send("easy")
    boards.send("hard")
    assert {p.settled for p in boards.suite().pairs} == {None}
    assert "not declared" in boards.suite().result.settled.text


def test_more_items_than_declared_settle_nothing():
    boards = Boards(declared=True)
    boards.send("easy")
    boards.send("hard")
    boards.logs["hard"].send(event("extra", "ash", 1, benchmark="hard"))
    assert {p.settled for p in boards.suite().pairs} == {None}


def test_graded_scores_settle_by_their_weighted_sum():
    boards = Boards(declared=True)
    thirds = [
        event(k, model, score, benchmark="easy") for k in range(40) for model, score in (("ash", 1 / 3), ("birch", 0.3))
    ]
    boards.logs["easy"].send(*thirds)
    level = [event(k, model, 0.7, benchmark="hard") for k in range(25) for model in ("ash", "birch")]
    boards.logs["hard"].send(*level[:-2])
    assert [p.settled for p in boards.suite().pairs] == [None]  # one missing item of 25 weighs .03, the lead is .0083
    boards.logs["hard"].send(*level[-2:])
    assert [(p.model_a, p.settled) for p in boards.suite().pairs] == [("ash", "a")]


def test_models_with_the_same_scores_are_settled_as_equal():
    boards = Boards(declared=True)
    for name, size in SIZES.items():
        boards.logs[name].send(
            *(event(k, m, 0.1 * (k % 7), benchmark=name) for k in range(size) for m in ("ash", "birch"))
        )
    assert [p.settled for p in boards.suite().pairs] == ["tie"]


def test_a_size_beyond_what_can_be_summed_settles_nothing_and_breaks_nothing():
    boards = Boards()
    boards.logs["easy"].send({"declare": "easy", "items": 10**9})
    boards.logs["hard"].send({"declare": "hard", "items": 25})
    boards.send("easy")
    boards.send("hard")
    assert {p.settled for p in boards.suite().pairs} == {None}
    assert [m.items for m in boards.suite().suite.members] == [10**9, 25]


def test_a_suite_hides_a_benchmark_of_its_name_and_reports_it():
    boards = Boards(names=("easy", "hard", "overall"))
    boards.send("easy")
    boards.send("hard")
    assert not boards.suite().suite.hides
    boards.logs["overall"].send(event(1, "mallory", 1, benchmark="overall"))
    assert boards.reports.names() == ["overall", "easy", "hard"]
    assert boards.suite().suite.hides
    assert "mallory" not in {m.model for m in boards.suite().models}
    declared = {"declare": "overall", "order": "trusted"}
    boards = Boards(names=("easy", "hard", "overall"))
    boards.logs["overall"].send(
        declared, *(event(k, m, int(m == "ash"), benchmark="overall") for k in range(30) for m in ("ash", "eve"))
    )
    assert len(boards.logs["overall"].partition.benchmarks["overall"].changes)
    assert VerdictHistory(boards.reports, None).after(START, 10, lambda name: True) == []


def test_a_caller_sees_a_suite_if_it_may_read_every_member():
    boards = Boards()
    boards.send("easy")
    boards.send("hard")
    for readable, names in (
        ({"easy", "overall"}, ["easy"]),
        ({"easy", "hard"}, ["easy", "hard"]),
        ({"easy", "hard", "overall"}, ["overall", "easy", "hard"]),
    ):
        seen = boards.reports.readable_by(readable.__contains__)
        assert seen.names() == names
        assert [s["benchmark"] for s in json.loads(seen.listed_summaries(names))] == names
        assert (seen.find("overall") is None) == ("overall" not in names)
        assert (seen.live_pairs("overall") is None) == ("overall" not in names)


def test_the_pattern_of_what_is_shown_may_leave_only_the_suite():
    boards = Boards(shown=lambda name: name == "overall")
    boards.send("easy")
    boards.send("hard")
    assert boards.reports.names() == ["overall"]
    assert len(boards.suite().models) == 3
    assert [each["events"] for each in json.loads(boards.reports.listed_summaries(["overall"]))] == [195]


def test_the_routes_of_a_board_show_a_suite():
    boards = Boards()
    boards.send("easy")
    boards.send("hard")
    with Served(*boards.partitions, reports={"suites": [OVERALL]}) as served:
        assert [served.get(f"moments?benchmark={name}").json["kept"] for name in ("overall", "easy")] == [False, True]
        summaries = served.request("GET", "/api/v1/summaries").json
        assert [(s["benchmark"], s["members"]) for s in summaries] == [
            ("overall", ["easy", "hard"]),
            ("easy", None),
            ("hard", None),
        ]
        (report,) = served.request("GET", "/api/v1/benchmarks/overall").json["benchmarks"]
        assert [m["benchmark"] for m in report["suite"]["members"]] == ["easy", "hard"]
        everything = served.request("GET", "/api/v1/benchmarks").json["benchmarks"]
        assert [each["benchmark"] for each in everything] == ["overall", "easy", "hard"]
        assert served.request("GET", "/api/v1/board?benchmark=overall").json["report"] == report
        for path in ("pairs", "matrix", "items", "categories", "changes"):
            assert served.request("GET", f"/api/v1/{path}?benchmark=overall").status == 200
        best, second = (m["model"] for m in report["models"][:2])
        path = served.request("GET", f"/api/v1/path?benchmark=overall&model_a={best}&model_b={second}").json
        assert (path["log_e"], path["gap"][-1]) == (None, pytest.approx(report["pairs"][0]["gap"]))
        assert served.request("GET", "/api/v1/pairs?benchmark=overall").headers["rankwatch-offset"]
        for path in ("benchmarks/overall/conflicts", "order?benchmark=overall"):
            answer = served.request("GET", f"/api/v1/{path}")
            assert (answer.status, "Name one of its members: easy, hard" in answer.json["detail"]) == (404, True)


def test_other_suites_and_prices_are_shown_at_once_by_every_answer():
    boards = Boards(declared=True)
    boards.logs["easy"].send({"declare": "easy", "items": 40, "goal": "best", "version": 2})
    boards.send("easy")
    boards.send("hard")
    with Served(*boards.partitions, reports={"suites": [OVERALL]}) as served:

        def shown(name):
            (report,) = served.get(f"benchmarks/{name}").json["benchmarks"]
            view = served.get(f"board?benchmark={name}").json["report"]
            assert view["models"] == report["models"]
            return report

        means = {model["model"]: model["mean"] for model in shown("overall")["models"]}
        assert shown("easy")["goal"]["cost_run"] is None
        served.reports.show_as([Suite("overall", {"easy": Member(), "hard": Member()}, distinct=True)], {"": 0.5})
        later = {model["model"]: model["mean"] for model in shown("overall")["models"]}
        assert means["ash"] == pytest.approx(0.25 * 30 / 40 + 0.75 * 5 / 25)
        assert later["ash"] == pytest.approx(0.5 * 30 / 40 + 0.5 * 5 / 25)
        assert shown("easy")["goal"]["cost_run"] == pytest.approx(0.5 * 3 * 40)
        served.reports.show_as([], {})
        assert served.get("benchmarks/overall").status == 404
        assert shown("easy")["goal"]["cost_run"] is None


@pytest.mark.parametrize("name", ['"><script>', "../../x", "a b?c=d&e", "ünï/⁄"])
def test_hostile_names_of_suites_and_members_are_only_names(name):
    suite = Suite(name, {"easy": Member(), f"{name}/member": Member()})
    boards = Boards(suite, names=("easy", f"{name}/member"))
    boards.send("easy")
    boards.logs[f"{name}/member"].send(event(1, "ash", 1, benchmark=f"{name}/member"))
    with Served(*boards.partitions, reports={"suites": [suite]}) as served:
        (report,) = served.request("GET", f"/api/v1/benchmarks/{quote(name, safe='')}").json["benchmarks"]
        assert (report["benchmark"], [m["model"] for m in report["models"]]) == (name, ["ash"])


def test_the_metrics_of_a_suite_have_names_of_their_own():
    boards = Boards(OVERALL, Suite("later", {"easy": Member(), "nothing": Member()}))
    boards.send("easy")
    boards.send("hard", "ash", "birch")
    worker = WorkerInfo("serve", "topic", "", False, lambda: 2, dict, lambda: True)
    text = MetricsCollector(boards.reports, worker, ProcessMetrics().registry).scrape("")[0].decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if "suite=" in line)
    assert lines['rankwatch_suite_members{state="counts",suite="overall"}'] == "2.0"
    assert lines['rankwatch_suite_members{state="absent",suite="later"}'] == "1.0"
    assert lines['rankwatch_suite_models{suite="overall"}'] == "2.0"
    assert lines['rankwatch_suite_models_unranked{suite="overall"}'] == "1.0"
    assert float(lines['rankwatch_suite_model_mean_ratio{suite="overall",model="birch"}']) == pytest.approx(0.6)
    assert not any('benchmark="overall"' in line for line in text.splitlines())
