"""The texts of notifications: winner, gap, epoch and link, few of them, and nothing that a name may make of them."""

import pytest

from monitor.notify.notification import ALERTS, Wording
from monitor.notify.targets import make_target
from monitor.outbound import Allowed
from monitor.view.values import BoardNews
from schemas.results.report import GoalReport
from tests.store_model import verdict

WORDING = Wording(lambda: "https://rank.example.org/", "https://docs.example.org/runbooks.md")
GOAL = GoalReport(
    goal="best",
    state="met",
    reason="m0 is the best of 3 models.",
    models=["m0"],
    open_pairs=0,
    needed=[],
    items_run=9,
    items_full=None,
    saved_ratio=None,
)


def change(number, a, b, gap, *, kind="decided", after="a", benchmark="mmlu-pro", epoch=0):
    made = verdict(f"{number}-0", benchmark, procedure="anytime_family")
    evidence = made.evidence.replace(n=4000, gap=gap)
    fields = {"kind": kind, "after": after, "epoch_a": epoch, "alpha": 0.05, "evidence": evidence}
    return made.replace(model_a=a, model_b=b, **fields)


def board(*followed, **more):
    empty = {"ranks": {}, "ranking_decided": False, "ranking_settled": False, "goal_met": None}
    return BoardNews(**(empty | more | {"followed": frozenset(followed)}))


def test_decisions_of_neighbours_are_one_notification_with_winner_gap_epoch_and_link():
    changes = [change(1, "a", "b", 0.012), change(2, "c", "d", -0.004, after="b", epoch=2), change(3, "a", "d", 0.1)]
    news = board(("a", "b"), ("c", "d"), ranks={"a": "1", "b": "2 to 3", "c": "4", "d": "3"})
    (made,) = WORDING.of_benchmark("log/0", changes, news)
    assert made.title == "2 new decisions on mmlu-pro: a beats b (+1.2 points), d beats c (+0.4 points)"
    assert made.lines == (
        "a (rank 1) beats b (rank 2 to 3) by 1.2 points on 4,000 shared items, epoch 0; decided family-wise at alpha = 0.05.",
        "d (rank 3) beats c (rank 4) by 0.4 points on 4,000 shared items, epochs 0 and 2; decided family-wise at alpha = 0.05.",
    )
    assert made.link == "https://rank.example.org/#/b/mmlu-pro"
    assert made.runbook == "https://docs.example.org/runbooks.md#new-decisions"


def test_pairs_that_nobody_follows_are_no_news():
    assert WORDING.of_benchmark("log/0", [change(1, "a", "c", 0.1)], board(("a", "b"))) == []
    assert WORDING.of_benchmark("log/0", [verdict("1-0")], None) == []


def test_what_a_decision_completes_heads_its_notification():
    changes = [change(1, "m0", "m1", 0.05)]
    (made,) = WORDING.of_benchmark("log/0", changes, board(("m0", "m1"), ranking_decided=True, goal_met=GOAL))
    assert (made.alert, made.title) == (
        "RankwatchGoalMet",
        "Goal met on mmlu-pro (best): m0 is the best of 3 models.",
    )
    assert made.lines[0] == "Every tie on mmlu-pro is broken: each rank is decided against the next"
    assert made.lines[1].startswith("m0 beats m1 by 5.0 points")


def test_each_other_kind_is_a_notification_of_its_own():
    changes = [
        change(1, "a", "b", 0.01, kind="reversed", after="a"),
        change(2, "a", "b", 0.01, kind="invalidated", after=None),
        change(3, "a", "b", 0.01, kind="superseded", after=None),
    ]
    made = WORDING.of_benchmark("log/0", changes, board())
    assert [(each.alert, each.severity) for each in made] == [
        ("RankwatchDecisionsReversed", "warning"),
        ("RankwatchDecisionsWithdrawn", "warning"),
        ("RankwatchDecisionsSuperseded", "info"),
    ]
    assert made[0].title == "1 reversed decision on mmlu-pro: a now leads b (+1.0 points)"


def test_many_are_named_by_the_first_and_counted():
    changes = [change(n, f"m{n:02}", f"n{n:02}", 0.01) for n in range(30)]
    (made,) = WORDING.of_benchmark("log/0", changes, None)
    assert made.title.endswith("m02 beats n02 (+1.0 points), and 27 more")
    assert made.lines[-1] == "and 20 more"
    digest = WORDING.digest([made._replace(benchmark=f"b{n}", id=str(n)) for n in range(15)])
    assert digest.title.startswith("15 notifications on 15 benchmarks: 30 new decisions")
    assert digest.lines[-1] == "and 5 more"


def test_the_id_depends_on_the_changes_alone():
    changes = [change(1, "a", "b", 0.01)]
    (one,) = WORDING.of_benchmark("log/0", changes, None)
    assert one.id == WORDING.of_benchmark("log/0", changes, board(("a", "b"), ranks={"a": "1"}))[0].id
    assert one.id != WORDING.of_benchmark("log/1", changes, None)[0].id


@pytest.mark.parametrize("kind", ["slack", "discord", "teams", "email", "webhook", "alertmanager"])
def test_a_name_is_text_to_every_service(kind):
    evil = "<!channel> @everyone [click](http://evil.example) &\r\nBcc: x@evil.example\u202e" + "x" * 120
    url = "smtps://u:p@h/?from=a@x.org&to=b@x.org" if kind == "email" else "https://h/secret"
    (made,) = WORDING.of_benchmark("log/0", [change(1, evil, "b", 0.01, benchmark=evil)], None)
    target = make_target(kind, url, Allowed())
    text = target.preview(made)
    assert "secret" not in text
    assert len(text) < 5_000
    if kind == "slack":
        assert "<!channel>" not in text
        assert "&lt;!channel&gt;" in text
    if kind in {"discord", "teams"}:
        assert "[click](" not in text
    if kind == "discord":
        assert '"parse": []' in text
    if kind == "email":
        assert target.message(made)["Bcc"] is None
        assert "\n" not in target.message(made)["Subject"]


def test_every_alert_has_a_section_in_the_runbooks_and_a_row_in_the_table(request):
    docs = request.config.rootpath / "docs/how-to"
    headings = {
        line[3:].lower().replace(" ", "-")
        for line in (docs / "runbooks.md").read_text().splitlines()
        if line.startswith("## ")
    }
    table = (docs / "alerts.md").read_text()
    for alert in ALERTS:
        assert alert.runbook in headings
        assert f"`{alert.name}`" in table
