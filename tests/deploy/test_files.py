"""What is shipped is what its makers accept: rules, dashboards, manifests, image, unit; and generated files are what their sources say."""

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from monitor.serve.metrics.catalogue import CATALOGUE
from monitor.serve.metrics.catalogue_page import render
from tests.deploy import operator_schemas

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def alerts(name):
    """The alerting rules of a file."""
    groups = yaml.safe_load((DEPLOY / "prometheus/rules" / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


RULES = alerts("alerts.yml")
BUDGETS = alerts("objectives.yml")


def accepts(*command):
    """Run a tool that has to be content; skip without it."""
    tool = shutil.which(command[0]) or shutil.which(str(Path(sys.executable).with_name(command[0])))
    if tool is None:
        pytest.skip(f"needs {command[0]}")
    ended = subprocess.run([tool, *map(str, command[1:])], capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def names_in(text):
    return set(re.findall(r"\brankwatch_\w+", text))


def known():
    names = {m.exposed for m in CATALOGUE}
    return names | {m.name + end for m in CATALOGUE if m.kind == "histogram" for end in ("_bucket", "_count", "_sum")}


def test_the_page_of_metrics_is_written_from_the_catalogue():
    assert (ROOT / "docs/reference/metrics.md").read_text() == render(), "run `make schemas`"


def test_no_metric_has_an_item_and_each_is_described():
    assert len({m.name for m in CATALOGUE}) == len(CATALOGUE)
    for metric in CATALOGUE:
        assert not {"item", "item_id"} & set(metric.labels)
        assert metric.help.endswith(".")


def test_the_dashboards_are_written_from_their_code():
    from deploy.grafana.dashboards import FOLDER, render

    dashboards = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert dashboards == render(), "run `make schemas`"


def test_every_name_that_is_asked_for_is_in_the_catalogue():
    dashboards = [path.read_text() for path in (DEPLOY / "grafana/dashboards").iterdir()]
    rules = [
        (DEPLOY / "prometheus/rules" / name).read_text() for name in ("alerts.yml", "recording.yml", "objectives.yml")
    ]
    recorded = {
        "rankwatch_decided_age",
        "rankwatch_reversed_age",
        "rankwatch_last_event_age",
        "rankwatch_lag",
        "rankwatch_events",
        "rankwatch_stale",
        "rankwatch_unavailable",
    }
    for text in (*dashboards, *rules):
        assert names_in(text) - known() - recorded == set()


def test_every_alert_says_what_happened_and_where_to_read_on():
    headings = re.findall(r"^## (.*)$", (ROOT / "docs/how-to/runbooks.md").read_text(), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    boards = {json.loads(path.read_text())["uid"] for path in (DEPLOY / "grafana/dashboards").iterdir()}
    page = (ROOT / "docs/how-to/alerts.md").read_text()
    for rule in (*RULES, *BUDGETS):
        notes = rule["annotations"]
        assert notes["summary"]
        assert notes["description"]
        base, _, anchor = notes["runbook_url"].partition("#")
        assert base == "{{ $externalLabels.runbooks }}"
        assert anchor in anchors
        assert notes["dashboard"].split("/")[2] in boards
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert "resolution" not in rule["expr"]
        assert "unresolved" not in rule["expr"]
        assert f"`{rule['alert']}`" in page


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = yaml.safe_load((DEPLOY / "prometheus/tests/alerts_test.yml").read_text())["tests"]
    tested = [(case["name"].partition(" ")[0], bool(case["promql_expr_test"][0]["exp_samples"])) for case in cases]
    assert sorted(tested) == sorted((rule["alert"], fires) for rule in RULES for fires in (True, False))
    assert "SUCCESS" in accepts("promtool", "test", "rules", DEPLOY / "prometheus/tests/alerts_test.yml")


def test_the_rules_of_objectives_are_written_from_their_file():
    from deploy.prometheus.objectives import RULES, render

    assert RULES.read_text() == render(), "run `make schemas`"


def test_every_budget_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = yaml.safe_load((DEPLOY / "prometheus/tests/objectives_test.yml").read_text())["tests"]
    tested = set()
    for case in cases:
        (asked,) = case["promql_expr_test"]
        if severity := re.search(r'ALERTS{.*sloth_severity="(\w+)"', asked["expr"]):
            tested.add((case["name"].partition(" ")[0], severity[1], bool(asked["exp_samples"])))
    alerts = {(rule["alert"], rule["labels"]["sloth_severity"]) for rule in BUDGETS}
    assert {each[:2] for each in tested if each[2]} == alerts
    assert {each[0] for each in tested if not each[2]} == {name for name, _ in alerts}
    assert "SUCCESS" in accepts("promtool", "test", "rules", DEPLOY / "prometheus/tests/objectives_test.yml")


def test_the_burn_rates_spend_the_share_of_the_budget_that_they_promise():
    from deploy.prometheus.objectives import BURNS, DAYS

    hours = {"1h": 1, "6h": 6, "1d": 24, "3d": 72}
    spent = [burn.rate * hours[burn.long] / (DAYS * 24) for burns in BURNS.values() for burn in burns]
    assert spent == pytest.approx([0.02, 0.05, 0.1, 0.1])


def test_prometheus_and_alertmanager_take_their_configuration():
    accepts("promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus/prometheus.yml")
    accepts("promtool", "check", "rules", *(DEPLOY / "prometheus/rules").iterdir())
    accepts("amtool", "check-config", DEPLOY / "alertmanager/alertmanager.yml")


def test_the_compose_file_follows_its_specification():
    package = Path(find_spec("check_jsonschema").origin).parent
    schema = json.loads((package / "builtin_schemas/vendor/compose-spec.json").read_text())
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    jsonschema.Draft7Validator(schema).validate(compose)
    for name, service in compose["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert not service["user"].startswith("0"), name
        assert re.search(r":v?\d", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        for volume in service.get("volumes", ()):
            if isinstance(volume, str) and volume.startswith("./"):
                assert (ROOT / volume.partition(":")[0]).exists(), volume


@pytest.mark.parametrize("overlay", ["dev", "production", "next"])
def test_the_overlays_follow_the_schemas_of_kubernetes(overlay, tmp_path):
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl, which builds the overlays")
    built = tmp_path / "built.yaml"
    built.write_text(accepts("kubectl", "kustomize", DEPLOY / "kubernetes/overlays" / overlay))
    resources = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(built.read_text())}
    assert "passed" in accepts("kubernetes-validate", "-k", "1.30", "--strict", "--no-warn", built)
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for (kind, _), each in resources.items()
        if kind in {"Deployment", "StatefulSet"}
    ]
    for (kind, name), each in resources.items():
        spec = each.get("spec", {})
        if kind in {"Service", "PodDisruptionBudget", "PodMonitor"}:
            selected = spec["selector"].get("matchLabels", spec["selector"])
            assert any(selected.items() <= label.items() for label in labels), (kind, name)
        if kind == "HorizontalPodAutoscaler":
            target = resources[spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"]]
            assert "replicas" not in target["spec"], "the autoscaler sets it"
        if kind in {"Deployment", "StatefulSet"}:
            pod = spec["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"]
            for container in pod["containers"]:
                assert container["resources"]["limits"]["memory"], name
                assert "cpu" not in container["resources"]["limits"], name
    if overlay == "next":
        assert not {"Ingress", "PodMonitor", "ScrapeConfig"} & {kind for kind, _ in resources}
        assert {each["metadata"].get("namespace", "rankwatch-next") for each in resources.values()} == {
            "rankwatch-next"
        }
        settings = resources["ConfigMap", "rankwatch"]["data"]
        assert settings["RANKWATCH_GROUP"] == "rankwatch.next"
        assert settings["RANKWATCH_VERDICT_TOPIC"] == "rankwatch.verdicts.next"


def test_the_resources_of_the_operator_follow_its_schemas():
    schemas = operator_schemas.load()
    resources = list(yaml.safe_load_all((DEPLOY / "kubernetes/overlays/production/monitoring.yaml").read_text()))
    assert {each["kind"] for each in resources} == {kind for _, kind in schemas}
    for each in resources:
        checked = jsonschema.Draft7Validator(schemas[each["apiVersion"], each["kind"]])
        checked.validate(each)
        assert not checked.is_valid(each | {"spec": each["spec"] | {"scrapeIntervall": "15s"}}), "it knows every field"


def test_every_manifest_is_part_of_an_overlay():
    folder = DEPLOY / "kubernetes"
    for file in folder.rglob("kustomization.yaml"):
        listed = {name for name in yaml.safe_load(file.read_text())["resources"] if not name.startswith("..")}
        assert listed == {path.name for path in file.parent.iterdir()} - {"kustomization.yaml"}, file


def test_the_jobs_of_the_operator_are_those_of_prometheus():
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    pods, readers = yaml.safe_load_all((DEPLOY / "kubernetes/overlays/production/monitoring.yaml").read_text())
    (endpoint,) = pods["spec"]["podMetricsEndpoints"]
    assert endpoint.get("params") == jobs["rankwatch"].get("params")
    assert endpoint["relabelings"][0]["replacement"] in jobs
    assert readers["spec"]["staticConfigs"][0]["labels"]["job"] in jobs


def test_the_image_the_unit_and_the_yaml_pass_their_linters():
    accepts("hadolint", DEPLOY / "Dockerfile")
    accepts("yamllint", "--strict", "-c", DEPLOY / ".yamllint", DEPLOY, ROOT / "docker-compose.yml")
    for unit in (DEPLOY / "systemd").iterdir():
        assert "OK" in accepts("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit)


def test_a_documented_command_in_a_container_has_the_login_of_the_store():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    commands = re.findall(
        r"docker compose exec (\S+) (sh \S+ )?(?:rankwatch |(?=doctor|board|state))", (DEPLOY / "README.md").read_text()
    )
    assert commands
    for service, script in commands:
        mounts = [each for each in compose["services"][service]["volumes"] if isinstance(each, str)]
        assert any(each.split(":")[1] == script.removeprefix("sh ").strip() for each in mounts)
