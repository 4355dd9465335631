"""The rules of the objectives: `python -m deploy.prometheus.objectives` writes rules/objectives.yml from objectives.yml.

Input and output are those of Sloth, which no package registry has, so Sloth can replace this module: the same names, labels, windows and
conditions. The windows and burn rates are those of "The Site Reliability Workbook", chapter 5, for a period of 30 days.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

SPEC: Final = Path(__file__).with_name("objectives.yml")
RULES: Final = Path(__file__).with_name("rules") / "objectives.yml"
DAYS: Final = 30
WINDOWS: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
HEADER: Final = (
    "# Written from objectives.yml by `python -m deploy.prometheus.objectives`, as Sloth writes it. Do not edit.\n"
)


class Burn(NamedTuple):
    """A burn rate that is too high over a long window, and still over a short one."""

    short: str
    long: str
    rate: float


BURNS: Final = {
    "page": (Burn("5m", "1h", 14.4), Burn("30m", "6h", 6)),
    "ticket": (Burn("2h", "1d", 3), Burn("6h", "3d", 1)),
}
"""At these rates 2 %, 5 %, 10 % and 10 % of the budget are spent within the long window."""


def render() -> str:
    """Return the rules as YAML."""
    spec = yaml.safe_load(SPEC.read_text("utf-8"))
    groups = [group for slo in spec["slos"] for group in _groups(spec["service"], slo)]
    return HEADER + yaml.safe_dump({"groups": groups}, sort_keys=False, width=10_000, allow_unicode=True)


def _groups(service: str, slo: dict[str, Any]) -> list[dict[str, Any]]:
    name = f"{service}-{slo['name']}"
    labels = {"sloth_id": name, "sloth_service": service, "sloth_slo": slo["name"]}
    return [
        {"name": f"sloth-slo-sli-recordings-{name}", "rules": [*_ratios(slo["sli"], labels), _whole_period(labels)]},
        {"name": f"sloth-slo-meta-recordings-{name}", "rules": _meta(slo, labels)},
        {"name": f"sloth-slo-alerts-{name}", "rules": _alerts(slo, labels)},
    ]


def _ratios(sli: dict[str, Any], labels: dict[str, str]) -> list[dict[str, Any]]:
    events = sli.get("events", {})
    query = f"{events['error_query']} / {events['total_query']}" if events else sli["raw"]["error_ratio_query"]
    return [
        {
            "record": f"slo:sli_error:ratio_rate{window}",
            "expr": query.replace("{{.window}}", window),
            "labels": labels | {"sloth_window": window},
        }
        for window in WINDOWS
    ]


def _whole_period(labels: dict[str, str]) -> dict[str, Any]:
    """Return the ratio over the period, as the mean of the shortest windows, one after the other; those without data count as good.

    Sloth takes the mean of all samples there are, so a service of ten minutes that took one minute to start has spent its budget 20 times.
    """
    short, period = f"slo:sli_error:ratio_rate5m{_selector(labels)}", f"{DAYS}d"
    return {
        "record": f"slo:sli_error:ratio_rate{period}",
        "expr": f"(sum_over_time({short}[{period}:5m]) or 0 * {short}) / {DAYS * 24 * 12}",
        "labels": labels | {"sloth_window": period},
    }


def _meta(slo: dict[str, Any], labels: dict[str, str]) -> list[dict[str, Any]]:
    ratio, own = slo["objective"] / 100, _selector(labels)
    on = "on(sloth_id, sloth_slo, sloth_service) group_left"
    budget = f"{on} slo:error_budget:ratio{own}"
    records = {
        "slo:objective:ratio": f"vector({ratio:g})",
        "slo:error_budget:ratio": f"vector(1-{ratio:g})",
        "slo:time_period:days": f"vector({DAYS})",
        "slo:current_burn_rate:ratio": f"slo:sli_error:ratio_rate5m{own} / {budget}",
        "slo:period_burn_rate:ratio": f"slo:sli_error:ratio_rate{DAYS}d{own} / {budget}",
        "slo:period_error_budget_remaining:ratio": f"1 - slo:period_burn_rate:ratio{own}",
    }
    return [{"record": record, "expr": expr, "labels": labels} for record, expr in records.items()]


def _alerts(slo: dict[str, Any], labels: dict[str, str]) -> list[dict[str, Any]]:
    alerting, rules = slo["alerting"], []
    for severity, burns in BURNS.items():
        own = alerting[f"{severity}_alert"]
        if not own.get("disable"):
            expr = " or ".join(_burning(burn, 1 - slo["objective"] / 100, labels) for burn in burns)
            rules.append(
                {
                    "alert": alerting["name"],
                    "expr": expr,
                    "labels": {**own["labels"], "sloth_severity": severity},
                    "annotations": alerting["annotations"],
                }
            )
    return rules


def _burning(burn: Burn, budget: float, labels: dict[str, str]) -> str:
    both = (
        f"max(slo:sli_error:ratio_rate{window}{_selector(labels)} > ({burn.rate:g} * {budget:g})) without (sloth_window)"
        for window in (burn.short, burn.long)
    )
    return f"({' and '.join(both)})"


def _selector(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def main() -> None:
    """Write the file."""
    RULES.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
