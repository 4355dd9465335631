"""docker-compose.yml run without Docker: from demo data to an alert at the receiver, every query of every dashboard, and every repair.

The situations are a benchmark that is being evaluated, one without a declaration, and one of 200 models.
"""

import json
import random
import re
import urllib.parse
import urllib.request
from math import isnan

import pytest

from tests.commands import get, until
from tests.deploy.drills import Drills
from tests.deploy.monitoring import DEPLOY, Prometheus
from tests.stack import programs
from tests.stack.compose import services
from tests.stack.stack import Stack

ABSENT = programs.missing({each.image for each in services().values()})
pytestmark = [pytest.mark.deploy, pytest.mark.skipif(bool(ABSENT), reason="; ".join(ABSENT))]

DASHBOARDS = {
    path.stem: json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
}
MODELS = {"live": 4, "held": 3, "many": 200}
PAIRS = {"live": 6, "held": 3, "many": 300}
"""Pairs with series: all, up to the cap."""
WITHOUT = {
    "held": {"decided at", "Decided since", "Reversed", "items to decision", "Items to decision"},
    "many": {"items to decision", "Items to decision"},
}
"""Queries without an answer: nothing is decided while verdicts are held, and no item is to come in a complete benchmark."""


def held():
    """Results without a declaration: no verdict rests on anything."""
    rng = random.Random(1)
    for item in range(40):
        for model, skill in (("ash", 0.9), ("bay", 0.5), ("fig", 0.4)):
            yield {"benchmark": "held", "item_id": f"i{item}", "model": model, "score": int(rng.random() < skill)}


def many():
    """A complete benchmark of 200 models."""
    rng = random.Random(2)
    yield {"declare": "many", "items": 40}
    for item in range(40):
        for model in range(200):
            score = int(rng.random() < model / 200)
            yield {"benchmark": "many", "item_id": f"i{item}", "model": f"m{model:03}", "score": score}


SENTINELS = {
    "sentinel": {"direction": "both"},
    "sentinel-judge": {"judge": "j", "anchors": 20},
    "sentinel-held": {"assume": "independent-items", "years": 1000, "runs_per_year": 100_000},
}
"""Declarations of sentinels that report each kind of alarm."""


def sentinels():
    """Runs of a model that gets worse and then better, of one whose judge moves, and of one that varies as a whole."""
    for name, drift in SENTINELS.items():
        rng = random.Random(3)
        yield {"declare": name, "items": 20, "drift": {"seed": "s", "years": 1, "runs_per_year": 50} | drift}
        for run in range(44):
            shift = rng.gauss(0, 0.3) if name == "sentinel-held" else -0.7 * (20 <= run < 32)
            for role in ({}, {"role": "anchor"})[: 1 + ("judge" in drift)]:
                for item in range(20):
                    score = int(rng.random() < 0.8 + shift)
                    made = {"benchmark": name, "item_id": f"i{item}", "model": "guard", "run": f"r{run:02}"}
                    yield made | {"score": score} | role


class Service:
    """The running stack, as its users meet it."""

    def __init__(self, stack):
        self.stack = stack
        self.url = stack.url("balancer", 8642)
        self.prometheus = Prometheus(stack.port(stack.services["prometheus"], 1, 9090))
        self.token = (stack.volume("secrets") / "writer" / "rankwatch-token").read_text()

    def post(self, records, token):
        """Post events; return the status."""
        body = "".join(json.dumps(record) + "\n" for record in records).encode()
        headers = {"Content-Type": "application/x-ndjson"} | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(f"{self.url}/api/v1/events", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def alerts(self):
        """Return what the receiver has printed."""
        (receiver,) = self.stack.of("alert-receiver")
        return [json.loads(line) for line in receiver.log.read_text().splitlines()]

    def summary(self, benchmark):
        """Return the summary of a benchmark, or None."""
        summaries = json.loads(get(f"{self.url}/api/v1/summaries")[1])
        return next((each for each in summaries if each["benchmark"] == benchmark), None)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Stack(tmp_path_factory.mktemp("stack"), free_ports=True, interval=1) as stack:
        service = Service(stack)
        assert service.post(held(), service.token) == 200
        assert service.post(many(), service.token) == 200
        assert service.post(sentinels(), service.token) == 200
        yield service


def test_anyone_may_read_and_only_the_token_writes(service):
    status, text = get(f"{service.url}/api/v1/caller")
    assert (status, json.loads(text)["signed_in"]) == (200, False)
    assert get(service.url)[0] == 200
    assert service.post(held(), None) == 401
    assert service.post(held(), "x" * 48) == 401


def test_demo_data_leads_to_a_verdict_and_to_an_alert_at_the_receiver(service):
    until(lambda: (service.summary("demo") or {"events": 0})["events"] == 450, "the events of deploy/compose/examples")
    until(lambda: (service.summary("live") or {"decided": 0})["decided"], "a verdict on the live benchmark")
    until(lambda: any(a["status"] == "firing" and a.get("benchmark") == "live" for a in service.alerts()), "its alert")
    (sent,) = service.stack.of("feed")
    assert sent.process.wait(60) == 0


def test_prometheus_scrapes_every_worker_and_the_boards_once(service):
    expected = {("prometheus", 1.0), ("rankwatch", 2.0), ("rankwatch-readers", 1.0)}
    until(
        lambda: {(x["job"], n) for x, n in service.prometheus.query("sum by (job) (up)")} == expected, "all targets up"
    )
    until(lambda: service.prometheus.query("rankwatch_models"), "boards")
    counted = service.prometheus.query("count by (benchmark) (rankwatch_models)")
    assert {n for _, n in counted} == {1.0}
    counts = service.prometheus.query('sum by (job) (rankwatch_chunk_records_count{job="rankwatch"})')
    assert all(n > 0 for _, n in counts)
    assert counts


@pytest.mark.parametrize("benchmark", MODELS)
def test_every_query_of_every_dashboard_is_answered_with_its_labels(service, benchmark):
    until(
        lambda: service.prometheus.query(f'rankwatch_models{{benchmark="{benchmark}"}} == {MODELS[benchmark]}'),
        "boards",
    )
    until(lambda: (service.summary("live") or {"decided": 0})["decided"], "a decided pair")
    until(
        lambda: service.prometheus.query('rankwatch_pairs_decided{benchmark="live",procedure="anytime_family"} > 0'),
        "it",
    )
    pairs = service.prometheus.query(f'rankwatch_pair_decided{{benchmark="{benchmark}",procedure="anytime_family"}}')
    assert len(pairs) <= PAIRS[benchmark]
    chosen = {bool(decided): (labels["model_a"], labels["model_b"]) for labels, decided in pairs}.values()
    for name, dashboard in DASHBOARDS.items():
        for title, expr in queries(dashboard):
            filled = [
                expr.replace("$benchmark", benchmark).replace("$model_a", a).replace("$model_b", b) for a, b in chosen
            ]

            def answered(filled=filled):
                return [row for each in filled for row in service.prometheus.query(each)]

            labels = grouping(expr)
            empty = title in WITHOUT.get(benchmark, ())
            # Where a scrape takes too long, its series are gone until the next one.
            answers = answered() if empty else until(answered, f"{name}, {title}: {expr}")
            assert {frozenset(each) for each, _ in answers} <= {frozenset(labels)}, (name, title, expr, answers[:2])
            if name == "objectives":
                assert not any(map(isnan, (value for _, value in answers))), (title, expr)


def test_the_numbers_on_the_leaderboard_are_those_of_the_reader(service):
    numbers = {title: expr for title, expr in queries(DASHBOARDS["leaderboard"]) if "by (" not in expr}
    for benchmark, models in MODELS.items():
        shown = {
            title: service.prometheus.query(expr.replace("$benchmark", benchmark)) for title, expr in numbers.items()
        }
        shown = {title: value for title, ((_, value),) in shown.items()}
        assert shown["Models"] == models
        assert shown["Held"] == (benchmark == "held")
        if benchmark != "live":
            assert shown["Items"] == 40
            assert shown["Pairs decided"] == service.summary(benchmark)["decided"]


def test_verdict_changes_are_marked_and_variables_have_values(service):
    for name in ("leaderboard", "pair"):
        (mark,) = DASHBOARDS[name]["annotations"]["list"]
        assert mark["expr"].count("offset 1m") == 2
        expr = mark["expr"].replace("offset 1m", "offset 5s")
        found = until(lambda expr=expr: service.prometheus.over_time(expr.replace("$benchmark", "live")), "a mark", 60)
        assert {tuple(labels) for labels in found} == {("kind",)}
        assert service.prometheus.over_time(expr.replace("$benchmark", "held")) == []
    for dashboard in DASHBOARDS.values():
        for variable in dashboard.get("templating", {}).get("list", ()):
            expr, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
            expr = expr.replace("$benchmark", "live").replace("$model_a", "elm")
            wanted = {"benchmark": set(MODELS), "model_a": {"elm", "fir"}, "model_b": {"fir", "oak", "yew"}}[label]
            until(
                lambda expr=expr, label=label, wanted=wanted: (
                    {labels[label] for labels, _ in service.prometheus.query(expr)} >= wanted
                ),
                f"the values of {label}",
                60,
            )


@pytest.mark.fault(
    "readers",
    "in the stack of `docker-compose.yml`: unreadable records, Valkey stopped or full, broker, worker and readers killed",
    "each leads to its alert; the action in the alert's runbook repairs it",
)
def test_each_fault_leads_to_an_alert_and_its_runbook_to_the_repair(service, tmp_path):
    drills = Drills(service, tmp_path)
    drills.evaluate()
    drills.bad_producer()
    drills.flood()
    drills.slow_store()
    drills.full_disk()
    drills.killed_broker()
    drills.killed_worker()
    drills.killed_readers()


def queries(dashboard):
    """Yield the title and the expression of each query; a column of a table is named by itself."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["legendFormat"] if panel["type"] == "table" else panel["title"], target["expr"]


def grouping(expr):
    """Return the labels that an expression leaves on its results."""
    if expr.startswith(("histogram_quantile", "max(rankwatch_partitions", "sum(max by")):
        return []
    found = re.search(r"\bby \(([^)]*)\)", expr)
    return re.split(r", *", found[1]) if found else []
