"""The Grafana dashboards as code: `python -m deploy.grafana.dashboards` writes deploy/grafana/dashboards/*.json."""

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
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
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
FAMILY: Final = 'procedure="anytime_family"'
BY_PAIR: Final = "max by (model_a, model_b)"
SIDES: Final = {"-1": ("model_b is better", "orange"), "0": ("undecided", "text"), "1": ("model_a is better", "green")}
WIDE: Final = 24


def query(expr: str, legend: str = "", *, ref: str = "A", instant: bool = False) -> prometheus.Dataquery:
    """Ask Prometheus; `instant` for tables and single numbers."""
    asked = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref).datasource(SOURCE)
    return asked.instant().format(PromQueryFormat.TABLE) if instant else asked.range()


def lines(title: str, description: str, *queries: tuple[str, str], unit: str = "short", span: int = 12) -> Any:
    """Make a panel of lines over time."""
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    panel = timeseries.Panel().title(title).description(description).datasource(SOURCE)
    panel = panel.unit(unit).span(span).height(9).legend(legend).fill_opacity(0)
    for ref, (expr, name) in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(query(expr, name, ref=ref))
    return panel


def number(title: str, description: str, expr: str, unit: str = "short", span: int = 4) -> Any:
    """Make a panel of one number."""
    reduce = ReduceDataOptions().calcs(["lastNotNull"])
    panel = stat.Panel().title(title).description(description).datasource(SOURCE).unit(unit).span(span).height(4)
    return panel.reduce_options(reduce).with_target(query(expr, title))


def timeline(title: str, description: str, expr: str, legend: str) -> Any:
    """Make a timeline of who is decided to be better: -1, 0, 1."""
    mapping = ValueMap(
        options={
            value: ValueMappingResult(text=shown, color=color, index=index)
            for index, (value, (shown, color)) in enumerate(SIDES.items())
        }
    )
    panel = statetimeline.Panel().title(title).description(description).datasource(SOURCE).span(WIDE).height(10)
    return panel.mappings([mapping]).merge_values(True).with_target(query(expr, legend))


def rows(title: str, description: str, columns: dict[str, str], names: dict[str, str], height: int = 10) -> Any:
    """Make a table that joins instant queries on their labels; `columns` are expressions by column, `names` labels by column."""
    panel = table.Panel().title(title).description(description).datasource(SOURCE).span(WIDE).height(height)
    refs = dict(zip("ABCDEFGH", columns, strict=False))
    for ref, column in refs.items():
        panel = panel.with_target(query(columns[column], column, ref=ref, instant=True))
    shown = {f"Value #{ref}": column for ref, column in refs.items()} | names
    order = {column: place for place, column in enumerate([*names, *(f"Value #{ref}" for ref in refs)])}
    organise = {"excludeByName": {"Time": True}, "renameByName": shown, "indexByName": order}
    panel = panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    return panel.with_transformation(DataTransformerConfig(id_val="organize", options=organise))


def words(content: str, height: int = 5) -> Any:
    """Make a panel of text."""
    return text.Panel().title("How to read this").content(content).span(WIDE).height(height)


def variable(name: str, asked: str, label: str) -> dashboard.QueryVariable:
    """Make a variable with the values of a label."""
    made = dashboard.QueryVariable(name).label(label).query(asked).datasource(SOURCE)
    return made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)


def base(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """Begin a dashboard; the three link to each other."""
    others = dashboard.DashboardLink("rankwatch").type(DashboardLinkType.DASHBOARDS).tags(["rankwatch"])
    made = dashboard.Dashboard(title).uid(uid).description(description).tags(["rankwatch"]).readonly()
    made = made.time("now-6h", "now").refresh("15s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
    return made.link(others.include_vars(True).keep_time(True))


def verdict_marks(labels: str) -> Any:
    """Mark verdict changes on every panel."""
    changed = f"sum by (kind) (increase(rankwatch_verdict_changes_total{{{labels}, {FAMILY}}}[$__interval])) > 0"
    return (
        dashboard.AnnotationQuery()
        .name("Verdict changes")
        .datasource(SOURCE)
        .enable(True)
        .expr(changed)
        .icon_color("blue")
    )


def leaderboard() -> dashboard.Dashboard:
    """Which ranks are ties, since when, and what would separate them."""
    made = base(
        "rankwatch-leaderboard", "Leaderboard", "Which ranks are ties, since when, and what would separate them."
    )
    made = made.with_variable(variable("benchmark", "label_values(rankwatch_models, benchmark)", "Benchmark"))
    made = made.annotation(verdict_marks(B))
    made = made.with_panel(
        words(
            "**Ties**: models with the same tie group cannot be told apart yet; *rank low* to *rank high* are the ranks that the family-wise "
            "decisions leave open. **Since when**: the timeline is undecided (grey) until the moment of a decision. **What would separate "
            "them**: *items to decision* in the table of neighbours; next to it stands why a pair is still open (status).\n\n"
            "**Decided** is evidence which model is better. **Resolved** (q = N/N* of at least 1) only says that the benchmark is large "
            "enough for a gap of this size."
        )
    )
    for title, description, expr in (
        ("Models", "", f"max(rankwatch_models{{{B}}})"),
        ("Items", "", f"max(rankwatch_items{{{B}}})"),
        (
            "Neighbours undecided",
            "Family-wise: so many pairs of neighbours are ties.",
            f"max(rankwatch_adjacent_pairs_undecided{{{B}, {FAMILY}}})",
        ),
        ("Pairs decided", "Of all pairs, family-wise.", f"max(rankwatch_pairs_decided{{{B}, {FAMILY}}})"),
        (
            "Exhausted",
            "Pairs that share every item and are undecided.",
            f"max(rankwatch_pairs_exhausted_undecided{{{B}}})",
        ),
        ("Held", "1: no anytime verdict is given; the report says why.", f"max(rankwatch_held{{{B}}})"),
    ):
        made = made.with_panel(number(title, description, expr))
    made = made.with_panel(
        rows(
            "Ranks",
            "Rank, the ranks that are open, tie group, and the mean with its interval.",
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
        )
    )
    made = made.with_panel(
        rows(
            "Pairs",
            "Decided: 1 for model_a, -1 for model_b, 0 for neither. Items to decision: if the gap stays as it is.",
            {
                "gap": f"{BY_PAIR} (rankwatch_pair_gap_ratio{{{B}}})",
                "gap low": f"{BY_PAIR} (rankwatch_pair_gap_low_ratio{{{B}, {FAMILY}}})",
                "gap high": f"{BY_PAIR} (rankwatch_pair_gap_high_ratio{{{B}, {FAMILY}}})",
                "decided": f"{BY_PAIR} (rankwatch_pair_decided{{{B}, {FAMILY}}})",
                "decided at (ms)": f"1000 * {BY_PAIR} (rankwatch_decided_timestamp_seconds{{{B}, {FAMILY}}})",
                "items to decision": f"{BY_PAIR} (rankwatch_pair_items_to_decision{{{B}}})",
                "q (fixed n)": f'{BY_PAIR} (rankwatch_pair_resolution_ratio{{{B}, procedure="fixed_n"}})',
                "status": f"max by (model_a, model_b, status) (rankwatch_pair_status{{{B}}})",
            },
            {"model_a": "model_a", "model_b": "model_b", "status": "status"},
        )
    )
    made = made.with_panel(
        timeline(
            "Decisions over time",
            "Family-wise. A pair turns from grey to a colour when it is decided, and stays so.",
            f"{BY_PAIR} (rankwatch_pair_decided{{{B}, {FAMILY}}})",
            "{{model_a}} / {{model_b}}",
        )
    )
    made = made.with_panel(
        lines(
            "Neighbours undecided, by procedure",
            "Evidence. anytime_family holds however often one looks; fixed_n, bonferroni, holm and benjamini_hochberg at a planned n only.",
            (f"max by (procedure) (rankwatch_adjacent_pairs_undecided{{{B}}})", "{{procedure}}"),
        )
    )
    return made.with_panel(
        lines(
            "Neighbours unresolved, by procedure",
            "Size: q below 1. This is what the verdict table of the paper counts.",
            (f"max by (procedure) (rankwatch_adjacent_pairs_unresolved{{{B}}})", "{{procedure}}"),
        )
    )


def pair() -> dashboard.Dashboard:
    """One pair over time."""
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
            "Family-wise: 1 model_a, -1 model_b, 0 neither.",
            f"max(rankwatch_pair_decided{{{P}, {FAMILY}}})",
            "short",
        ),
        ("Decided since", "", f"1000 * max(rankwatch_decided_timestamp_seconds{{{P}, {FAMILY}}})", "dateTimeAsIso"),
        ("Items to decision", "If the gap stays as it is.", f"max(rankwatch_pair_items_to_decision{{{P}}})", "short"),
        ("Gap", "Of model_a over model_b.", f"max(rankwatch_pair_gap_ratio{{{P}}})", "percentunit"),
        (
            "Reversed",
            "1: the gap has turned after the decision.",
            f"max(rankwatch_pair_reversed{{{P}, {FAMILY}}})",
            "short",
        ),
    ):
        made = made.with_panel(number(title, description, expr, unit))
    made = made.with_panel(
        timeline(
            "Verdicts by procedure",
            "Who is decided to be better. Only anytime and anytime_family stand however often one looks; e_bh may be revoked.",
            f"max by (procedure) (rankwatch_pair_decided{{{P}}})",
            "{{procedure}}",
        )
    )
    made = made.with_panel(
        lines(
            "Evidence: log e against thresholds",
            "Under the order policy trusted the pair is decided when the line reaches its threshold; under completion, when it would still do "
            "so with every missing item against it.",
            (f"max(rankwatch_pair_log_e{{{P}}})", "log e"),
            (f"max by (side) (rankwatch_pair_log_e_directional{{{P}}})", "log e for {{side}}"),
            (f"max by (procedure) (rankwatch_pair_log_threshold{{{P}}})", "threshold {{procedure}}"),
        )
    )
    made = made.with_panel(
        lines(
            "Gap, with its intervals",
            "Of model_a over model_b on shared items. The interval leaves 0 exactly when log e reaches the threshold.",
            (f"max(rankwatch_pair_gap_ratio{{{P}}})", "gap"),
            (f"max by (procedure) (rankwatch_pair_gap_low_ratio{{{P}}})", "low {{procedure}}"),
            (f"max by (procedure) (rankwatch_pair_gap_high_ratio{{{P}}})", "high {{procedure}}"),
            unit="percentunit",
        )
    )
    made = made.with_panel(
        lines(
            "Resolution: q by procedure",
            "From 1 on the benchmark is large enough for a gap of this size. Says nothing about which model is better.",
            (f"max by (procedure) (rankwatch_pair_resolution_ratio{{{P}}})", "{{procedure}}"),
        )
    )
    return made.with_panel(
        lines(
            "Items to decision",
            "Further items until the family-wise decision, if the gap stays as it is.",
            (f"max(rankwatch_pair_items_to_decision{{{P}}})", "items to decision"),
            (f"max(rankwatch_pair_items{{{P}}})", "shared items"),
        )
    )


def operations() -> dashboard.Dashboard:
    """Whether it works."""
    made = base("rankwatch-operations", "Operations", "Rates, lag, latency, dead letters, the store.")
    for title, description, expr, unit in (
        ("Workers up", "", 'sum(up{job="rankwatch"})', "short"),
        ("Ready", "", "sum(rankwatch_ready)", "short"),
        ("Store", "1: Redis answers every worker.", "min(rankwatch_store_up)", "short"),
        (
            "Partitions without owner",
            "",
            "max(rankwatch_partitions) - count(count by (partition) (rankwatch_partition_owned))",
            "short",
        ),
        ("Benchmarks", "", "count(count by (benchmark) (rankwatch_benchmark_owned))", "short"),
        ("Verdict changes waiting", "", "sum(rankwatch_outbox_entries)", "short"),
    ):
        made = made.with_panel(number(title, description, expr, unit))
    quantile = "histogram_quantile(%s, sum by (le) (rate(%s_bucket[5m])))"
    panels = (
        (
            "Events",
            "Events a second, by benchmark.",
            "ops",
            [("sum by (benchmark) (rate(rankwatch_events_total[5m]))", "{{benchmark}}")],
        ),
        (
            "Lag",
            "How far each partition is behind its log: messages of a topic, bytes of a file.",
            "short",
            [("max by (partition) (rankwatch_log_lag)", "{{partition}}")],
        ),
        (
            "Fold and commit",
            "Time for a chunk: median and 99 %.",
            "s",
            [
                (quantile % (q, f"rankwatch_{what}_seconds"), f"{what} {q}")
                for what in ("fold", "commit")
                for q in ("0.5", "0.99")
            ],
        ),
        (
            "Chunk size",
            "Records in a chunk: many when it is catching up.",
            "short",
            [(quantile % (q, "rankwatch_chunk_records"), q) for q in ("0.5", "0.99")],
        ),
        (
            "Dead letters, conflicts, duplicates",
            "Dead letters are missing from the verdicts; the rest is not.",
            "short",
            [
                ("sum(rankwatch_dead_letters_total)", "dead letters"),
                ("sum(rankwatch_conflicts_total)", "conflicts"),
                ("sum(rankwatch_duplicates_total)", "duplicates"),
                ("sum(rankwatch_misrouted_total)", "misrouted"),
            ],
        ),
        (
            "Relay",
            "Verdict changes that wait, were taken, and attempts that failed.",
            "short",
            [
                ("sum(rankwatch_outbox_entries)", "waiting"),
                ("sum by (publisher) (rankwatch_relayed_total)", "taken by {{publisher}}"),
                ("sum by (publisher) (rankwatch_relay_failures_total)", "failed {{publisher}}"),
            ],
        ),
        (
            "Since the last event",
            "By benchmark.",
            "s",
            [("time() - max by (benchmark) (rankwatch_last_event_timestamp_seconds)", "{{benchmark}}")],
        ),
        (
            "Series left out",
            "Followed pairs beyond the cap.",
            "short",
            [("sum by (benchmark) (rankwatch_pair_series_omitted)", "{{benchmark}}")],
        ),
        (
            "Owners",
            "Workers that show a benchmark: 1, and for a moment 0 or 2 while it changes hands.",
            "short",
            [("sum by (benchmark) (rankwatch_benchmark_owned)", "{{benchmark}}")],
        ),
        (
            "Refused commits",
            "The stored state had moved: a partition changed hands, or the store lost writes.",
            "short",
            [("sum(rankwatch_stale_commits_total)", "refused")],
        ),
    )
    for title, description, unit, queries in panels:
        made = made.with_panel(lines(title, description, *queries, unit=unit))
    return made


def render() -> dict[str, str]:
    """Return the text of each dashboard's file by its name."""
    made = {"leaderboard": leaderboard(), "pair": pair(), "operations": operations()}
    return {
        f"{name}.json": JSONEncoder(sort_keys=True, indent=2).encode(built.build()) + "\n"
        for name, built in made.items()
    }


def main() -> None:
    """Write the files."""
    for name, content in render().items():
        (FOLDER / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main()
