"""The Grafana dashboards as code: `python -m deploy.grafana.dashboards` writes deploy/grafana/dashboards/*.json."""

import json
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import (
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    text,
    timeseries,
)
from grafana_foundation_sdk.builders.common import ReduceDataOptions, TableSortByFieldState, VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FOLDER: Final = Path(__file__).with_name("dashboards")
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="prometheus")
B: Final = 'benchmark="$benchmark"'
P: Final = 'benchmark="$benchmark", model_a="$model_a", model_b="$model_b"'
WORKERS: Final = 'job="rankwatch"'
READERS: Final = 'job="rankwatch-readers"'
"""Jobs of deploy/prometheus/prometheus.yml. Readers fold too, so what both export is asked of one of them."""
FAMILY: Final = 'procedure="anytime_family"'
BY_PAIR: Final = "max by (model_a, model_b)"
SIDES: Final = {"-1": ("model_b is better", "orange"), "0": ("undecided", "text"), "1": ("model_a is better", "green")}
ANSWERS: Final = {"0": ("no", "text"), "1": ("yes", "orange")}
WORDS: Final = {"Decided": SIDES, "Held": ANSWERS, "Reversed": ANSWERS}
"""What the values of a panel with one number mean, by its title."""
UNITS: Final = {
    "gap": "percentunit",
    "gap low": "percentunit",
    "gap high": "percentunit",
    "mean": "percentunit",
    "mean low": "percentunit",
    "mean high": "percentunit",
    "decided at": "dateTimeAsIso",
    "last score": "dateTimeAsIso",
}
"""Units of columns."""
WIDE: Final = 24


def query(expr: str, legend: str = "", *, ref: str = "A", instant: bool = False) -> prometheus.Dataquery:
    """Make a Prometheus query; use `instant` for tables and single numbers."""
    made = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SOURCE)
    return made.instant().format(PromQueryFormat.TABLE) if instant else made.range()


def lines(title: str, description: str, *queries: tuple[str, str], unit: str = "short", span: int = 12) -> Any:
    """Make a panel with lines over time."""
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    panel = timeseries.Panel().title(title).description(description).datasource(SOURCE)
    panel = panel.unit(unit).span(span).height(9).legend(legend).fill_opacity(0)
    for ref, (expr, name) in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(query(expr, name, ref=ref))
    return panel


def _options(meanings: dict[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        value: {"text": text, "color": color, "index": n} for n, (value, (text, color)) in enumerate(meanings.items())
    }


def words(meanings: dict[str, tuple[str, str]]) -> ValueMap:
    """Show values as words in a colour."""
    results = {
        value: ValueMappingResult(text=meaning, color=color, index=index)
        for index, (value, (meaning, color)) in enumerate(meanings.items())
    }
    return ValueMap(options=results)


def number(title: str, description: str, expr: str, unit: str = "short", span: int = 4) -> Any:
    """Make a panel with one number, or with the words for it."""
    # Over a range, the last value that is not null may be an old one: of a worker that is gone, or of a forecast that is over.
    reduce = ReduceDataOptions().calcs(["lastNotNull"])
    panel = stat.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(4)
    panel = panel.mappings([words(WORDS[title])] if title in WORDS else [])
    return panel.reduce_options(reduce).no_value("none").with_target(query(expr, title, instant=True))


def timeline(title: str, description: str, expr: str, legend: str) -> Any:
    """Make a timeline of decisions: -1, 0, 1."""
    panel = statetimeline.Panel().title(title).description(description).datasource(SOURCE).span(WIDE).height(10)
    return panel.mappings([words(SIDES)]).merge_values(True).with_target(query(expr, legend))


def rows(
    title: str, description: str, columns: dict[str, str], names: dict[str, str], sort: str, height: int = 10
) -> Any:
    """Make a table that joins instant queries on their labels; `columns` are expressions by column, `names` labels by column."""
    panel = table.Panel().title(title).description(description).datasource(SOURCE).span(WIDE).height(height)
    panel = panel.sort_by([TableSortByFieldState().display_name(sort).desc(False)])
    panel = panel.override_by_regexp(".*", [DynamicConfigValue(id_val="custom.minWidth", value=80)])
    for column in [column for column in columns if column in UNITS]:
        panel = panel.override_by_name(column, [DynamicConfigValue(id_val="unit", value=UNITS[column])])
    if "decided at" in columns:
        panel = panel.override_by_name("decided at", [DynamicConfigValue(id_val="custom.width", value=170)])
    if "decided" in columns:
        shown = [{"type": "value", "options": _options(SIDES)}]
        panel = panel.override_by_name("decided", [DynamicConfigValue(id_val="mappings", value=shown)])
    refs = dict(zip("ABCDEFGH", columns, strict=False))
    for ref, column in refs.items():
        panel = panel.with_target(query(columns[column], column, ref=ref, instant=True))
    renamed = {f"Value #{ref}": column for ref, column in refs.items()} | names
    order = {column: place for place, column in enumerate([*names, *(f"Value #{ref}" for ref in refs)])}
    # The value of a query that adds a label is always 1.
    hidden = {"Time": True} | {f"Value #{ref}": True for ref, column in refs.items() if column in names}
    organise = {"excludeByName": hidden, "renameByName": renamed, "indexByName": order}
    panel = panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    return panel.with_transformation(DataTransformerConfig(id_val="organize", options=organise))


def explanation(content: str, height: int = 5) -> Any:
    """Make a panel with text."""
    return text.Panel().title("How to read this").content(content).span(WIDE).height(height)


def variable(name: str, values: str, label: str) -> dashboard.QueryVariable:
    """Make a variable with the values of a label."""
    made = dashboard.QueryVariable(name).label(label).query(values).datasource(SOURCE)
    return made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)


def base(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """Start a dashboard with links to the others."""
    others = dashboard.DashboardLink("rankwatch").type(DashboardLinkType.DASHBOARDS).tags(["rankwatch"])
    made = dashboard.Dashboard(title).uid(uid).description(description).tags(["rankwatch"]).readonly()
    made = made.time("now-6h", "now").refresh("15s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
    return made.link(others.include_vars(True).keep_time(True))


def verdict_marks(labels: str) -> Any:
    """Mark verdict changes on every panel."""
    count = f"sum by (kind) (rankwatch_verdict_changes_total{{{labels}, {FAMILY}}}%s)"
    # A kind has no series before its first change, which increase() would miss; a benchmark that is seen for the first time has no marks.
    before = f"({count % ' offset 1m'} or 0 * {count % ''})"
    changed = f"{count % ''} - {before} > 0 and on () max(rankwatch_models{{{labels}}} offset 1m) > 0"
    return (
        dashboard.AnnotationQuery()
        .name("Verdict changes")
        .datasource(SOURCE)
        .enable(True)
        .expr(changed)
        .icon_color("blue")
    )


def leaderboard() -> dashboard.Dashboard:
    """Show the ranks, the ties, and what each tie needs to be decided."""
    made = base("rankwatch-leaderboard", "Leaderboard", "Ranks, ties, and what each tie needs to be decided.")
    made = made.with_variable(variable("benchmark", "label_values(rankwatch_models, benchmark)", "Benchmark"))
    made = made.annotation(verdict_marks(B))
    made = made.with_panel(
        explanation(
            "**Ties**: in a tie group, no pair of neighbours is decided. *rank low* to *rank high* are the ranks that the family-wise decisions "
            "allow. **Since when**: the timeline is grey until the time of the decision. **What is missing**: *items to decision* in the table "
            "of pairs; *status* shows why a pair is open.\n\n"
            "**Decided** is evidence which model is better. **Resolved** (q = N/N* of at least 1) means that a planned test of so many "
            "items detects a gap of this size. q is computed from the observed gap, so it adds no evidence.\n\n"
            "**Empty tables**: the benchmark is beyond the budget of series. Raise `metrics_series`, or name it in `metrics_first`.",
            height=7,
        )
    )
    for title, description, expr in (
        ("Models", "", f"max(rankwatch_models{{{B}}})"),
        ("Items", "", f"max(rankwatch_items{{{B}}})"),
        (
            "Neighbours undecided",
            "Pairs of neighbours without a family-wise decision.",
            f"max(rankwatch_adjacent_pairs_undecided{{{B}, {FAMILY}}})",
        ),
        ("Pairs decided", "Family-wise, of all pairs.", f"max(rankwatch_pairs_decided{{{B}, {FAMILY}}})"),
        (
            "Exhausted",
            "Undecided pairs that share every item.",
            f"max(rankwatch_pairs_exhausted_undecided{{{B}}})",
        ),
        ("Held", "Whether verdicts are held; the report shows the reason.", f"max(rankwatch_held{{{B}}})"),
    ):
        made = made.with_panel(number(title, description, expr))
    made = made.with_panel(
        rows(
            "Ranks",
            "Rank, possible ranks, tie group, and the mean score with its interval.",
            {
                "rank": f"max by (model) (rankwatch_model_rank{{{B}}})",
                "rank low": f"max by (model) (rankwatch_model_rank_low{{{B}}})",
                "rank high": f"max by (model) (rankwatch_model_rank_high{{{B}}})",
                "tie group": f"max by (model) (rankwatch_model_tie_group{{{B}}})",
                "mean": f"max by (model) (rankwatch_model_mean_ratio{{{B}}})",
                "mean low": f"max by (model) (rankwatch_model_mean_low_ratio{{{B}}})",
                "mean high": f"max by (model) (rankwatch_model_mean_high_ratio{{{B}}})",
                "items": f"max by (model) (rankwatch_model_items{{{B}}})",
            },
            {"model": "model"},
            sort="rank",
        )
    )
    made = made.with_panel(
        rows(
            "Pairs",
            "Decided: which model is better. Items to decision: at the current gap.",
            {
                "gap": f"{BY_PAIR} (rankwatch_pair_gap_ratio{{{B}}})",
                "gap low": f"{BY_PAIR} (rankwatch_pair_gap_low_ratio{{{B}, {FAMILY}}})",
                "gap high": f"{BY_PAIR} (rankwatch_pair_gap_high_ratio{{{B}, {FAMILY}}})",
                "decided": f"{BY_PAIR} (rankwatch_pair_decided{{{B}, {FAMILY}}})",
                "decided at": f"1000 * {BY_PAIR} (rankwatch_decided_timestamp_seconds{{{B}, {FAMILY}}})",
                "items to decision": f"{BY_PAIR} (rankwatch_pair_items_to_decision{{{B}}})",
                "q (fixed n)": f'{BY_PAIR} (rankwatch_pair_resolution_ratio{{{B}, procedure="fixed_n"}})',
                "status": f"max by (model_a, model_b, status) (rankwatch_pair_status{{{B}}})",
            },
            {"model_a": "model_a", "model_b": "model_b", "status": "status"},
            sort="model_a",
        )
    )
    made = made.with_panel(
        timeline(
            "Decisions over time",
            "Family-wise. A pair turns from grey to a colour when it is decided. Decisions are permanent.",
            f"{BY_PAIR} (rankwatch_pair_decided{{{B}, {FAMILY}}})",
            "{{model_a}} / {{model_b}}",
        )
    )
    made = made.with_panel(
        lines(
            "Neighbours undecided, by procedure",
            "Evidence. anytime_family is valid at any time; fixed_n, bonferroni, holm and benjamini_hochberg at a planned n only.",
            (f"max by (procedure) (rankwatch_adjacent_pairs_undecided{{{B}}})", "{{procedure}}"),
        )
    )
    return made.with_panel(
        lines(
            "Neighbours unresolved, by procedure",
            "Size: q below 1, as in the verdict table of the paper.",
            (f"max by (procedure) (rankwatch_adjacent_pairs_unresolved{{{B}}})", "{{procedure}}"),
        )
    )


def pair() -> dashboard.Dashboard:
    """Show one pair over time."""
    made = base("rankwatch-pair", "Pair", "One pair of models: evidence against thresholds, gap, resolution.")
    made = made.with_variable(variable("benchmark", "label_values(rankwatch_models, benchmark)", "Benchmark"))
    made = made.with_variable(variable("model_a", f"label_values(rankwatch_pair_items{{{B}}}, model_a)", "Model a"))
    second = f'label_values(rankwatch_pair_items{{{B}, model_a="$model_a"}}, model_b)'
    made = made.with_variable(variable("model_b", second, "Model b"))
    made = made.annotation(verdict_marks(B))
    for title, description, expr, unit in (
        ("Shared items", "", f"max(rankwatch_pair_items{{{P}}})", "short"),
        (
            "Decided",
            "Family-wise: which model is better.",
            f"max(rankwatch_pair_decided{{{P}, {FAMILY}}})",
            "short",
        ),
        ("Decided since", "", f"1000 * max(rankwatch_decided_timestamp_seconds{{{P}, {FAMILY}}})", "dateTimeAsIso"),
        ("Items to decision", "At the current gap.", f"max(rankwatch_pair_items_to_decision{{{P}}})", "short"),
        ("Gap", "model_a minus model_b.", f"max(rankwatch_pair_gap_ratio{{{P}}})", "percentunit"),
        (
            "Reversed",
            "Whether the gap has changed sign after the decision.",
            f"max(rankwatch_pair_reversed{{{P}, {FAMILY}}})",
            "short",
        ),
    ):
        made = made.with_panel(number(title, description, expr, unit))
    made = made.with_panel(
        timeline(
            "Verdicts by procedure",
            "Which model is decided to be better: anytime for this pair only, anytime_family among all pairs. The page has the other procedures.",
            f"max by (procedure) (rankwatch_pair_decided{{{P}}})",
            "{{procedure}}",
        )
    )
    made = made.with_panel(
        lines(
            "Evidence: log e against thresholds",
            "Under the order policy trusted, a pair is decided when the line reaches the threshold. Under completion, it is decided once no "
            "outcome of the missing items can change that.",
            (f"max(rankwatch_pair_log_e{{{P}}})", "log e"),
            (f"max by (side) (rankwatch_pair_log_e_directional{{{P}}})", "log e for {{side}}"),
            (f"max by (procedure) (rankwatch_pair_log_threshold{{{P}}})", "threshold {{procedure}}"),
        )
    )
    made = made.with_panel(
        lines(
            "Gap with its intervals",
            "model_a minus model_b on shared items. The interval excludes 0 when log e reaches the threshold.",
            (f"max(rankwatch_pair_gap_ratio{{{P}}})", "gap"),
            (f"max by (procedure) (rankwatch_pair_gap_low_ratio{{{P}}})", "low {{procedure}}"),
            (f"max by (procedure) (rankwatch_pair_gap_high_ratio{{{P}}})", "high {{procedure}}"),
            unit="percentunit",
        )
    )
    made = made.with_panel(
        lines(
            "Resolution: q by procedure",
            "1 or more: a planned test of so many items detects a gap of this size. q is computed from the observed gap, so it adds no evidence.",
            (f"max by (procedure) (rankwatch_pair_resolution_ratio{{{P}}})", "{{procedure}}"),
        )
    )
    return made.with_panel(
        lines(
            "Items to decision",
            "Expected further items until the family-wise decision, at the current gap.",
            (f"max(rankwatch_pair_items_to_decision{{{P}}})", "items to decision"),
            (f"max(rankwatch_pair_items{{{P}}})", "shared items"),
        )
    )


def operations() -> dashboard.Dashboard:
    """Show the health of the service."""
    made = base("rankwatch-operations", "Operations", "Rates, lag, latency, dead letters and the store.")
    for title, description, expr, unit in (
        ("Workers up", "", f"sum(up{{{WORKERS}}})", "short"),
        ("Workers ready", "", f"sum(rankwatch_ready{{{WORKERS}}})", "short"),
        ("Store", "1: Redis responds to every worker.", f"min(rankwatch_store_up{{{WORKERS}}})", "short"),
        (
            "Partitions without owner",
            "",
            f"max(rankwatch_partitions{{{WORKERS}}}) - count(count by (partition) (rankwatch_partition_owned))",
            "short",
        ),
        ("Verdict changes waiting", "", "sum(rankwatch_outbox_entries)", "short"),
        (
            "Readers ready",
            "1: the load balancer of the readers leads to one that is ready.",
            f"min(rankwatch_ready{{{READERS}}})",
            "short",
        ),
    ):
        made = made.with_panel(number(title, description, expr, unit))
    quantile = "histogram_quantile(%s, sum by (le) (rate(%s_bucket{%s}[5m])))"
    panels = (
        (
            "Events",
            "Events per second, by benchmark.",
            "ops",
            [("sum by (benchmark) (rate(rankwatch_events_total[5m]))", "{{benchmark}}")],
        ),
        (
            "Lag of the workers",
            "Log end minus log position, by partition: messages of a topic, bytes of a file.",
            "short",
            [(f"max by (partition) (rankwatch_log_lag{{{WORKERS}}})", "{{partition}}")],
        ),
        (
            "Fold and commit",
            "Time per chunk of the workers: median and 99th percentile.",
            "s",
            [
                (quantile % (q, f"rankwatch_{what}_seconds", WORKERS), f"{what} {q}")
                for what in ("fold", "commit")
                for q in ("0.5", "0.99")
            ],
        ),
        (
            "Chunk size",
            "Records per chunk of the workers: large while a worker catches up.",
            "short",
            [(quantile % (q, "rankwatch_chunk_records", WORKERS), q) for q in ("0.5", "0.99")],
        ),
        (
            "Dead letters, conflicts, duplicates",
            "Verdicts lack the dead letters, and nothing else.",
            "short",
            [
                (f"sum(rankwatch_dead_letters_total{{{WORKERS}}})", "dead letters"),
                ("sum(rankwatch_conflicts_total)", "conflicts"),
                ("sum(rankwatch_duplicates_total)", "duplicates"),
                (f"sum(rankwatch_misrouted_total{{{WORKERS}}})", "misrouted"),
            ],
        ),
        (
            "Relay",
            "Verdict changes waiting and accepted, and failed attempts.",
            "short",
            [
                ("sum(rankwatch_outbox_entries)", "waiting"),
                ("sum by (publisher) (rankwatch_relayed_total)", "accepted by {{publisher}}"),
                ("sum by (publisher) (rankwatch_relay_failures_total)", "failed {{publisher}}"),
            ],
        ),
        (
            "Time since the last event",
            "By benchmark.",
            "s",
            [("time() - max by (benchmark) (rankwatch_last_event_timestamp_seconds)", "{{benchmark}}")],
        ),
        (
            "Omitted series",
            "Series of models and pairs beyond the budget (metrics_series), and pairs beyond the cap or the budget.",
            "short",
            [
                (f"max(rankwatch_series_omitted{{{READERS}}})", "series beyond the budget"),
                ("sum(max by (benchmark) (rankwatch_pair_series_omitted))", "pairs without series"),
            ],
        ),
        (
            "Owners",
            "Workers that export a benchmark: 1; briefly 0 or 2 while its partition moves.",
            "short",
            [("sum by (benchmark) (rankwatch_benchmark_owned)", "{{benchmark}}")],
        ),
        (
            "Refused commits",
            "Commits on a changed state: the partition moved, or the store lost writes.",
            "short",
            [(f"sum(rankwatch_stale_commits_total{{{WORKERS}}})", "refused")],
        ),
        (
            "Age of what readers show",
            "Time since a reader last reached the end of the log. Beyond max_stale_seconds (60) it refuses to answer.",
            "s",
            [(f"max(rankwatch_staleness_seconds{{{READERS}}})", "age")],
        ),
        (
            "Readers against the store",
            "Records that a reader shows and the store does not hold yet, and partitions that were loaded again.",
            "short",
            [
                (f"sum(rankwatch_unconfirmed_records{{{READERS}}})", "unconfirmed records"),
                (f"sum(rankwatch_reloads_total{{{READERS}}})", "reloads"),
            ],
        ),
    )
    for title, description, unit, queries in panels:
        made = made.with_panel(lines(title, description, *queries, unit=unit))
    return made


DRIFT: Final = {
    "drift.worse": "worse",
    "drift.better": "better",
    "drift.judge": "judge moved",
    "drift.held": "held",
}
"""What monitors of sentinels report, with its column."""


def sentinels() -> dashboard.Dashboard:
    """Show which models, and which judges, moved on their sentinels."""
    made = base("rankwatch-sentinels", "Sentinels", "Has a model in production got worse, or its judge moved?")
    made = made.with_panel(
        explanation(
            "**Worse**, **better**: a model moved. **Judge moved**: its scores of frozen answers changed; the model may be as before. **Held**: the "
            "runs contradict `independent-items`.\n\n"
            "Each number counts alarms. At most one false alarm is expected in the declared years, for each monitor. No alarm is no proof that "
            "nothing changed: the tab *Drift* of the page shows the runs, the size of each change, and which drop would have been found.",
            height=6,
        )
    )
    reports = 'rankwatch_verdict_changes_total{procedure="drift", kind="%s"}'
    for kind, column in DRIFT.items():
        total = f"sum(max by (benchmark) ({reports % kind})) or vector(0)"
        made = made.with_panel(number(column.capitalize(), "Alarms on all sentinels.", total, span=6))
    of_sentinels = 'and on (benchmark) max by (benchmark) (rankwatch_verdict_changes_total{procedure="drift"})'
    made = made.with_panel(
        rows(
            "Alarms of each sentinel",
            "Counts since its declaration, its scores, and when the last one came.",
            {column: f"max by (benchmark) ({reports % kind})" for kind, column in DRIFT.items()}
            | {
                "scores": f"max by (benchmark) (rankwatch_events_total) {of_sentinels}",
                "last score": f"1000 * max by (benchmark) (rankwatch_last_event_timestamp_seconds) {of_sentinels}",
            },
            {"benchmark": "sentinel"},
            sort="sentinel",
        )
    )
    made = made.with_panel(
        lines(
            "Means of the runs",
            "The last ranked run of each model, and of its frozen answers (judge). The tab Drift has the band of its own past.",
            (
                "max by (benchmark, model, of) (rankwatch_sentinel_mean_ratio)",
                "{{benchmark}} {{model}} {{of}}",
            ),
            unit="percentunit",
            span=WIDE,
        )
    )
    made = made.with_panel(
        lines(
            "Alarms over time",
            "A step is an alarm: the notification has its sentence.",
            ('max by (benchmark, kind) (rankwatch_verdict_changes_total{procedure="drift"})', "{{benchmark}} {{kind}}"),
        )
    )
    return made.with_panel(
        lines(
            "Time since the last score",
            "A sentinel that nobody runs finds nothing.",
            (
                f"time() - max by (benchmark) (rankwatch_last_event_timestamp_seconds) {of_sentinels}",
                "{{benchmark}}",
            ),
            unit="s",
        )
    )


OBJECTIVES: Final = {"freshness": "Fresh", "verdicts": "Available", "dead-letters": "Counted"}
"""Objectives of deploy/prometheus/objectives.yml, with the word for what is good."""


def objectives() -> dashboard.Dashboard:
    """Show what is left of each error budget, how fast it is spent, and on what."""
    made = base(
        "rankwatch-objectives",
        "Objectives",
        "Error budgets of 30 days: what is left, how fast it is spent, and on what.",
    )
    made = made.with_panel(
        explanation(
            "An **error budget** is what may go wrong in 30 days: with an objective of 99.5 %, 3 hours and 36 minutes. A **burn rate** of 1 spends it in "
            "exactly 30 days. The alerts fire at 14.4 over an hour or 6 over six hours (page), and at 3 over a day or 1 over three days (ticket), "
            "while a shorter window still shows it.\n\n"
            "**Fresh**: readers show what was accepted at most 5 s before. **Available**: a reader is ready. **Counted**: records that are no dead letters."
        )
    )
    for slo, word in OBJECTIVES.items():
        of = f'{{sloth_slo="{slo}"}}'
        for title, description, expr in (
            (f"{word}, 30 days", "Share that was good.", f"1 - max(slo:sli_error:ratio_rate30d{of})"),
            (
                f"{word}: budget left",
                "Below 0 the objective is missed.",
                f"max(slo:period_error_budget_remaining:ratio{of})",
            ),
        ):
            made = made.with_panel(number(title, description, expr, "percentunit"))
    budget = "on (sloth_slo) group_left () max by (sloth_slo) (slo:error_budget:ratio)"
    for window, rates in (
        ("1h", "14.4 over an hour"),
        ("6h", "6 over six hours"),
        ("1d", "3 over a day"),
        ("3d", "1 over three days"),
    ):
        expr = f"max by (sloth_slo) (slo:sli_error:ratio_rate{window}) / {budget}"
        made = made.with_panel(
            lines(f"Burn rate over {window}", f"An alert fires at {rates}.", (expr, "{{sloth_slo}}"))
        )
    made = made.with_panel(
        lines(
            "Late or unavailable",
            "1 while what is shown is older than 5 s, and while no reader is ready.",
            ("max(service:rankwatch_stale:bool)", "late"),
            ("max(service:rankwatch_unavailable:bool)", "unavailable"),
        )
    )
    return made.with_panel(
        lines(
            "Records that are rejected",
            "Dead letters per second, by partition.",
            ("max by (partition) (rate(rankwatch_dead_letters_total[5m]))", "{{partition}}"),
            unit="ops",
        )
    )


def render() -> dict[str, str]:
    """Return the text of each dashboard file by name."""
    made = {
        "leaderboard": leaderboard(),
        "pair": pair(),
        "sentinels": sentinels(),
        "operations": operations(),
        "objectives": objectives(),
    }
    return {
        f"{name}.json": json.dumps(_with_texts(built), sort_keys=True, indent=2) + "\n" for name, built in made.items()
    }


def _with_texts(built: dashboard.Dashboard) -> Any:
    """Return a dashboard as JSON, with the texts of its marks, for which the builder has no fields."""
    encoded = json.loads(JSONEncoder().encode(built.build()))
    for mark in encoded.get("annotations", {}).get("list", ()):
        # One query a minute over the last minute: each change is in one step.
        mark |= {
            "step": "60s",
            "titleFormat": "{{kind}}",
            "textFormat": "verdict changes: pairs by the family-wise procedure",
        }
    return encoded


def main() -> None:
    """Write the files."""
    for name, content in render().items():
        (FOLDER / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main()
