"""The shipped Prometheus, Alertmanager and dashboards on a live daemon, from the first event to the alert that a stream has stopped."""

import hashlib
import hmac
import json
import random
import re
import shutil
import time

import pytest

from monitor.serve.metrics.catalogue import CATALOGUE
from tests.commands import Watch, events, get, until, write
from tests.deploy.monitoring import DEPLOY, Receiver, running

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.skipif(
        not all(map(shutil.which, ("prometheus", "prometheus-alertmanager"))),
        reason="needs prometheus and prometheus-alertmanager (Debian packages of these names)",
    ),
]

SKILLS = {"alpha": 0.95, "bravo": 0.5, "charlie": 0.5}
ITEMS = 130
SECRET = "not to be seen"


def turning():
    """A benchmark whose decision is reversed by what comes later."""
    yield {"declare": "turning", "order": "trusted"}
    for item in range(90):
        for model, score in (("early", item < 30), ("late", item >= 30)):
            yield {"benchmark": "turning", "item_id": f"i{item}", "model": model, "score": int(score)}


def expressions(name):
    """Every expression of a dashboard, by panel."""
    board = json.loads((DEPLOY / f"grafana/dashboards/{name}.json").read_text())
    return {(panel["title"], t["refId"]): t["expr"] for panel in board["panels"] for t in panel.get("targets", ())}


def series(url):
    """Names of the series that are exposed."""
    return {re.match(r"\w+", line)[0] for line in get(f"{url}/metrics")[1].splitlines() if not line.startswith("#")}


def reported_values(report, model_a, model_b):
    """What the report says of a pair, as the metrics name it."""
    (pair,) = (p for p in report["pairs"] if {p["model_a"], p["model_b"]} == {model_a, model_b})
    sign = 1 if pair["model_a"] == model_a else -1
    better = pair["decided"]["anytime_family"]
    low, high = pair["gap_family_low"], pair["gap_family_high"]
    return {
        "rankwatch_pair_items": pair["n"],
        "rankwatch_pair_gap_ratio": sign * pair["gap"],
        'rankwatch_pair_gap_low_ratio{procedure="anytime_family"}': low if sign > 0 else -high,
        'rankwatch_pair_gap_high_ratio{procedure="anytime_family"}': high if sign > 0 else -low,
        "rankwatch_pair_log_e": pair["log_e"],
        'rankwatch_pair_log_e_directional{side="a"}': pair["log_e_a" if sign > 0 else "log_e_b"],
        'rankwatch_pair_resolution_ratio{procedure="fixed_n"}': pair["resolution_ratio"],
        "rankwatch_pair_items_to_decision": pair["items_to_decision"],
        'rankwatch_pair_decided{procedure="anytime_family"}': sign * {None: 0, "a": 1, "b": -1}[better],
    }


def of_pair(metric, model_a, model_b):
    labels = f'benchmark="bench",model_a="{model_a}",model_b="{model_b}"'
    name, _, more = metric.partition("{")
    return f"{name}{{{labels},{more}" if more else f"{name}{{{labels}}}"


@pytest.mark.smoke
def test_from_the_first_event_to_the_last_alert(tmp_path):
    records = events(random.Random(5), SKILLS, ITEMS, cluster="all")
    results = tmp_path / "results"
    results.mkdir()
    path = write(results / "bench.jsonl", records[:30])
    receiver = Receiver()
    settings = {
        "RANKWATCH_POLL_SECONDS": "0.1",
        "RANKWATCH_WEBHOOK_URL": f"{receiver.url}/verdicts",
        "RANKWATCH_WEBHOOK_SECRET": SECRET,
    }
    with Watch(tmp_path / "data", results, "--items", f"bench={ITEMS}", "--goal", "bench=best", **settings) as watch:
        url = watch.url
        with running(tmp_path / "monitoring", url.removeprefix("http://"), receiver) as prometheus:
            # A quiet run: items come, nothing is wrong, nothing is decided.
            for item in range(10, 20):
                write(path, records[3 * item : 3 * item + 3], mode="a")
                time.sleep(0.4)
            until(lambda: prometheus.query('rankwatch_items{benchmark="bench"}'), "the first scrape")
            assert prometheus.firing() == set()
            assert receiver.posts == []

            # Most of the rest: two models stay undecided, and not every item comes.
            write(path, records[60 : 3 * (ITEMS - 5)], mode="a")
            decided = time.monotonic()
            until(lambda: ("RankwatchPairDecided", "bench") in receiver.alerts("firing"), "the alert")
            assert time.monotonic() - decided < 60
            write(results / "turning.jsonl", turning())
            until(lambda: ("RankwatchDecisionReversed", "turning") in receiver.alerts("firing"), "the reversal")

            (report,) = (
                b
                for b in json.loads(get(f"{url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
                if b["benchmark"] == "bench"
            )
            until(
                lambda: prometheus.query(f'rankwatch_events_total{{benchmark="bench"}} == {report["events"]}'),
                "a scrape of the end",
            )
            same_numbers(prometheus, report)
            every_panel(prometheus)
            every_metric(url)

            until(lambda: ("RankwatchIngestStalled", "bench") in receiver.alerts("firing"), "the stalled alert")
            until(lambda: ("RankwatchPairDecided", "bench") in receiver.alerts("resolved"), "the end of the alert")
            until(lambda: "RankwatchPairDecided" not in prometheus.firing(), "the end of the other benchmark's")
            assert receiver.alerts("firing") <= {
                ("RankwatchPairDecided", "bench"),
                ("RankwatchPairDecided", "turning"),
                ("RankwatchRankingDecided", "turning"),
                ("RankwatchRankingSettled", "bench"),
                ("RankwatchDecisionReversed", "turning"),
                ("RankwatchIngestStalled", "bench"),
                ("RankwatchIngestStalled", "turning"),
            }
        webhook_got_each_change_once(receiver, tmp_path / "data/verdicts.jsonl")
        assert watch.stop() == 0
        assert SECRET not in "".join([*watch.lines, *watch.errors])
    receiver.close()


def same_numbers(prometheus, report):
    """Every number of the pairs is the one that the report has."""
    for models in (("alpha", "bravo"), ("alpha", "charlie"), ("bravo", "charlie")):
        for metric, value in reported_values(report, *models).items():
            samples = prometheus.query(of_pair(metric, *models))
            assert [v for _, v in samples] == ([] if value is None else [pytest.approx(value)]), metric


def every_panel(prometheus):
    """Every expression about boards has an answer for a decided pair or for an undecided one; test_stack.py asks for the rest."""
    for name in ("leaderboard", "pair"):
        for place, expr in expressions(name).items():
            answers = []
            for benchmark, a, b in (("bench", "alpha", "bravo"), ("bench", "bravo", "charlie")):
                filled = expr.replace("$benchmark", benchmark).replace("$model_a", a).replace("$model_b", b)
                answers += prometheus.query(filled)
            assert answers, (name, *place, expr)


def every_metric(url):
    """The whole catalogue is exposed, and nothing besides."""
    of_process = {"_bucket", "_count", "_sum", "_created"}
    exposed = series(url)
    expected = {m.exposed for m in CATALOGUE if m.kind != "histogram" and "watch" in m.modes}
    assert expected <= exposed
    names = [m.name for m in CATALOGUE]
    assert all(name in expected or any(name == n + end for n in names for end in of_process) for name in exposed)


def webhook_got_each_change_once(receiver, feed):
    """The changes of the feed, each once, in order, signed."""
    changes = [json.loads(line) for line in feed.read_text().splitlines()]
    posts = [(headers, body) for path, headers, body in receiver.posts if path == "/verdicts"]
    sent = [change for _, body in posts for change in json.loads(body)["changes"]]
    assert [c["id"] for c in sent] == [f"rankwatch.events/0/{c['id']}" for c in changes]
    assert [c["sentence"] for c in sent] == [c["sentence"] for c in changes]
    for headers, body in posts:
        at, digest = re.fullmatch(r"t=(\d+),v1=(\w+)", headers["Rankwatch-Signature"]).groups()
        assert hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest() == digest
