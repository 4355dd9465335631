"""The shipped Prometheus, Alertmanager and dashboards on a live daemon, from the first event to the alert that a stream has stopped."""

import hashlib
import hmac
import json
import random
import re
import shutil
import urllib.request
from collections import Counter

import pytest

from monitor.serve.metrics.catalogue import CATALOGUE
from tests.commands import Watch, events, get, until, write
from tests.deploy.monitoring import DEPLOY, STALLED_SECONDS, Receiver, running
from tests.ports import free_port

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


def board(name, models, items):
    """A benchmark whose models are in one order on every item range: each beats the next on a share of its own."""
    for item in range(items):
        for model in range(models):
            right = item * models < items * (models - model)
            yield {"benchmark": name, "item_id": f"i{item}", "model": f"m{model:02}", "score": int(right)}


def post(url, body):
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-ndjson"}, method="POST")
    with urllib.request.urlopen(request) as response:
        assert response.status == 200


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


@pytest.mark.fault(
    "readers",
    "an import of 29 models, then a live decision that meets the goal, with real Prometheus and Alertmanager",
    "no notification; then one",
)
@pytest.mark.smoke
def test_from_the_first_event_to_the_last_alert(tmp_path):
    records = events(random.Random(5), SKILLS, ITEMS, cluster="all")
    results = tmp_path / "results"
    results.mkdir()
    path = write(results / "bench.jsonl", records[:30])
    write(results / "old.jsonl", board("old", 29, 200))
    receiver, alerts_port = Receiver(), free_port()
    settings = {
        "RANKWATCH_POLL_SECONDS": "0.1",
        "RANKWATCH_WEBHOOK_URL": f"{receiver.url}/verdicts",
        "RANKWATCH_WEBHOOK_SECRET": SECRET,
        "RANKWATCH_NOTIFY_ALERTMANAGER_URL": f"http://127.0.0.1:{alerts_port}",
        "RANKWATCH_NOTIFY_WEBHOOK_URL": f"{receiver.url}/notices",
        "RANKWATCH_NOTIFY_WAIT_SECONDS": "0.2",
        "RANKWATCH_NOTIFY_PER_MINUTE": "100",
        "RANKWATCH_NOTIFY_HELD_SECONDS": "2",
        "RANKWATCH_NOTIFY_STALLED_SECONDS": str(STALLED_SECONDS),
        "RANKWATCH_PRIVATE_ADDRESSES": "127.0.0.1",
        "RANKWATCH_PORT": str(free_port()),
    }
    prices = ("--price", "alpha=0.01", "--price", "bravo=0.01", "--price", "charlie=0.01")
    flags = (results, "--items", f"bench={ITEMS}", "--items", "old=200", "--goal", "bench=best", *prices)
    with (
        Watch(tmp_path / "data", *flags, **settings) as watch,
        running(tmp_path / "monitoring", watch.url.removeprefix("http://"), receiver, alerts_port) as prometheus,
    ):
        # An import of 29 models, and a quiet run: items come, nothing is wrong, nothing new is decided.
        for item in range(10, 15):
            write(path, records[3 * item : 3 * item + 3], mode="a")
            read = f'rankwatch_events_total{{benchmark="bench"}} == {3 * item + 3}'
            until(lambda read=read: prometheus.query(read), "a scrape of the item")
        until(lambda: prometheus.query('rankwatch_pairs_decided{benchmark="old"} > 300'), "the import")
        until(lambda: prometheus.query("rankwatch_notifications_omitted_total > 300"), "the changes that are no news")
        assert prometheus.firing() == set()
        assert receiver.events() == []

        # Most of the rest: two models stay undecided, and not every item comes.
        write(path, records[45 : 3 * (ITEMS - 5)], mode="a")
        until(receiver.events, "the notification")
        until(lambda: prometheus.query("sum(rankwatch_outbox_entries) == 0"), "the end of the outbox")
        (event,) = receiver.events()
        assert event == ("RankwatchGoalMet", "bench", "Goal met on bench (best): alpha is the best of 3 models.")

        write(results / "turning.jsonl", turning())
        post(f"{watch.url}/api/v1/events", b"\n".join(json.dumps(each).encode() for each in board("loose", 3, 5)))
        until(lambda: ("RankwatchDecisionsReversed", "turning") in receiver.alerts("firing"), "the reversal")

        (report,) = (
            b
            for b in json.loads(get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
            if b["benchmark"] == "bench"
        )
        until(
            lambda: prometheus.query(f'rankwatch_events_total{{benchmark="bench"}} == {report["events"]}'),
            "a scrape of the end",
        )
        same_numbers(prometheus, report)
        every_panel(prometheus)
        every_metric(watch.url)

        until(lambda: ("RankwatchIngestStalled", "bench") in receiver.alerts("firing"), "the stalled alert")
        assert prometheus.firing() == {"RankwatchIngestStalled"}
        without_prometheus(receiver)
        webhook_got_each_change_once(receiver, tmp_path / "data/verdicts.jsonl")
        assert watch.stop() == 0
        assert SECRET not in "".join([*watch.lines, *watch.errors])
    receiver.close()


@pytest.mark.fault(
    "readers",
    "500 verdict changes at once; then every board goes to another process",
    "at most 3 notifications, one of them a digest; then none",
)
@pytest.mark.full
def test_a_storm_is_a_digest_and_a_handover_is_no_news(tmp_path):
    receiver, alerts_port = Receiver(), free_port()
    results = tmp_path / "results"
    results.mkdir()
    write(results / "live.jsonl", board("live", 2, 1))
    settings = {
        "RANKWATCH_NOTIFY_ALERTMANAGER_URL": f"http://127.0.0.1:{alerts_port}",
        "RANKWATCH_NOTIFY_WAIT_SECONDS": "0.2",
        "RANKWATCH_PRIVATE_ADDRESSES": "127.0.0.1",
        "RANKWATCH_PORT": str(free_port()),
    }
    with Watch(tmp_path / "data", results, "--order", "trusted", **settings) as watch:
        target = watch.url.removeprefix("http://")
        with running(tmp_path / "monitoring", target, receiver, alerts_port) as prometheus:
            # Decisions on 12 boards at once.
            body = b"\n".join(json.dumps(each).encode() for n in range(12) for each in board(f"b{n}", 10, 150))
            post(f"{watch.url}/api/v1/events", body)
            decided = "sum(rankwatch_verdict_changes_total{kind='decided', procedure='anytime_family'})"
            until(lambda: prometheus.query(f"{decided} >= 200"), "200 decisions")
            until(receiver.events, "the digest")
            relayed = 'rankwatch_relayed_total{publisher="notify-alertmanager"}'
            until(
                lambda: prometheus.query(f"sum({relayed}) >= 500 and sum(rankwatch_outbox_entries) == 0"), "the outbox"
            )
            # Each board moves to another process, which decides one pair more.
            assert watch.stop() == 0
            before = receiver.events()
            assert len(before) <= 3
            assert "RankwatchDigest" in {name for name, *_ in before}
            with Watch(tmp_path / "data", results, "--order", "trusted", **settings) as other:
                until(lambda: get(f"{other.url}/readyz")[0] == 200, "the other")
                body = b"\n".join(json.dumps(each).encode() for each in board("last", 2, 150))
                post(f"{other.url}/api/v1/events", body)
                until(lambda: len(receiver.events()) > len(before), "the last decision")
                assert {benchmark for _, benchmark, _ in receiver.events()[len(before) :]} == {"last"}
    receiver.close()


def without_prometheus(receiver):
    """A target of notifications gets changes and states from rankwatch itself, each once."""
    until(lambda: ("RankwatchIngestStalled", "bench") in notices(receiver), "the stalled notification")
    until(lambda: ("RankwatchHeld", "loose") in notices(receiver), "the held notification")
    sent = notices(receiver)
    assert set(sent.values()) == {1}, sent
    assert {name for name, _ in sent} >= {"RankwatchGoalMet", "RankwatchDecisionsReversed"}
    assert {benchmark for name, benchmark in sent if name == "RankwatchHeld"} == {"loose"}
    assert "old" not in {benchmark for _, benchmark in sent}


def notices(receiver):
    """How often each notification was posted, by alert and benchmark; those of a benchmark that stalls again are others."""
    posts = [json.loads(body) for path, _, body in list(receiver.posts) if path == "/notices"]
    ids = Counter(each["id"] for each in posts)
    return {(each["alert"], each["benchmark"]): ids[each["id"]] for each in posts}


def same_numbers(prometheus, report):
    """Every number of the pairs is the one that the report has."""
    for models in (("alpha", "bravo"), ("alpha", "charlie"), ("bravo", "charlie")):
        for metric, value in reported_values(report, *models).items():
            series = of_pair(metric, *models)
            if value is not None:  # where a scrape fails, its series are gone until the next one
                until(lambda series=series: prometheus.query(series), f"a scrape of {metric}")
            samples = prometheus.query(series)
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
    """The whole catalogue but suites and sentinels, which this monitor has none of, is exposed, and nothing besides."""
    of_process = {"_bucket", "_count", "_sum", "_created"}
    exposed = series(url)
    expected = {
        m.exposed
        for m in CATALOGUE
        if m.kind != "histogram" and "watch" in m.modes and not {"suite", "of"} & {*m.labels}
    }
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
