"""The dashboards by the rules that a dashboard linter goes by: nothing unexplained, nothing unreadable, nothing asked that is not there."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from monitor.serve.metrics.catalogue import CATALOGUE

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}
COLUMNS = 24
BUILT_IN = {"__rate_interval", "__interval", "__range", "__from", "__to"}

pytestmark = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=list(DASHBOARDS))


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] not in {"row", "text"}]


def test_each_panel_says_what_it_shows(dashboard):
    assert dashboard["title"]
    assert dashboard["uid"]
    for panel in panels(dashboard):
        assert panel["title"].strip()
        assert panel["type"] == "stat" or panel["description"].strip(), panel["title"]
        if panel["type"] in {"stat", "timeseries"}:
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_lie_side_by_side_within_the_page(dashboard):
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    for place in places:
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= COLUMNS
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


def test_every_target_asks_the_provisioned_source_under_a_letter_of_its_own(dashboard):
    (file,) = (FOLDER / "provisioning" / "datasources").glob("*.y*ml")
    known = {source["uid"] for source in yaml.safe_load(file.read_text())["datasources"]}
    for panel in panels(dashboard):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters
        assert len(set(letters)) == len(letters)
        assert {target["datasource"]["uid"] for target in panel["targets"]} <= known


def test_variables_that_are_used_are_declared_and_the_other_way_round(dashboard):
    declared = {variable["name"] for variable in dashboard.get("templating", {}).get("list", [])}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"]))) - BUILT_IN
    used = {name for name in used if not name.startswith("__")}
    assert used <= declared
    assert declared <= used | set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard.get("templating", {}))))


def test_rates_are_taken_of_counters_alone_and_counters_are_not_averaged(dashboard):
    counters = {f"{metric.name.removesuffix('_total')}_total" for metric in CATALOGUE if metric.kind == "counter"}
    histograms = {f"{metric.name}_bucket" for metric in CATALOGUE if metric.kind == "histogram"}
    for panel in panels(dashboard):
        for target in panel["targets"]:
            for name in re.findall(r"(?:rate|increase)\((rankwatch_\w+)", target["expr"]):
                assert name in counters | histograms, target["expr"]
            for name in re.findall(r"avg\w*\((rankwatch_\w+)", target["expr"]):
                assert name not in counters, target["expr"]
