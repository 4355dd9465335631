"""Define every metric once: name, kind, unit and labels; `monitor.words.metrics` has the help, docs/reference/metrics.md is generated."""

from functools import partial
from typing import Final, Literal, NamedTuple, get_args

from monitor.words.metrics import HELP

Kind = Literal["counter", "gauge", "histogram", "info"]
Mode = Literal["watch", "run", "serve"]

BENCHMARK: Final = ("benchmark",)
PAIR: Final = ("benchmark", "model_a", "model_b")
PAIR_PROCEDURE: Final = (*PAIR, "procedure")
MODEL: Final = ("benchmark", "model")
PARTITION: Final = ("partition",)
SUITE: Final = ("suite",)
READ_SIDE: Final[tuple[Mode, ...]] = ("watch", "serve")
SUITE_MODEL: Final = ("suite", "model")
_COUNTED_BY: Final = {
    PAIR: "followed pairs",
    MODEL: "shown models",
    BENCHMARK: "benchmarks",
    PARTITION: "partitions",
    SUITE_MODEL: "shown models of suites",
    SUITE: "suites",
}
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_RECORDS: Final = (1, 10, 100, 500, 1000, 2000, 5000, 10000, 25000)


class Metric(NamedTuple):
    """One metric family; `name` omits the suffix `_total` or `_info`."""

    kind: Kind
    name: str
    labels: tuple[str, ...]
    per_label: int = 1  # series for each benchmark, model, pair or partition
    buckets: tuple[float, ...] = ()
    of_process: bool = False  # whether it is a metric of the process, not computed from the state
    only: tuple[Mode, ...] | None = None  # the commands that export it, where these are others than for its labels
    detail: bool = False
    """Whether only boards whose models have series have it; `monitor.serve.metrics.budget.ALWAYS` is the exception."""

    @property
    def help(self) -> str:
        """What it is."""
        return HELP[self.name]

    @property
    def exposed(self) -> str:
        """The name in queries."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The commands that export it: workers export no boards."""
        return self.only or (READ_SIDE if self.labels[:1] in {BENCHMARK, SUITE} else get_args(Mode))

    @property
    def series(self) -> str:
        """How many series a worker exports, in words."""
        counted_by = next((noun for key, noun in _COUNTED_BY.items() if self.labels[: len(key)] == key), None)
        number = len(self.buckets) + 3 if self.buckets else self.per_label
        if counted_by is None:
            return str(number)
        if self.detail:
            counted_by = "benchmarks with models shown"
        return counted_by if number == 1 else f"{number} x {counted_by}"


_counter = partial(Metric, "counter")
_gauge = partial(Metric, "gauge")
_histogram = partial(Metric, "histogram", of_process=True)
_info = partial(Metric, "info")

# Events.
EVENTS = _counter("rankwatch_events", BENCHMARK)
DUPLICATES = _counter("rankwatch_duplicates", BENCHMARK)
CONFLICTS = _counter("rankwatch_conflicts", BENCHMARK)
CONFLICTS_BY_PRODUCER = _counter("rankwatch_conflicts_by_producer", ("producer",), of_process=True)
QUOTA_REFUSALS = _counter("rankwatch_quota_refusals", ("quota",), per_label=4, of_process=True)
REJECTED = _counter("rankwatch_rejected", BENCHMARK, only=get_args(Mode))
LAST_EVENT = _gauge("rankwatch_last_event_timestamp_seconds", BENCHMARK)

# Benchmarks.
BENCHMARK_INFO = _info("rankwatch_benchmark", (*BENCHMARK, "order", "family", "mixture"))
OWNED = _gauge("rankwatch_benchmark_owned", BENCHMARK, only=("watch", "run"))
ITEMS = _gauge("rankwatch_items", BENCHMARK)
EFFECTIVE_CLUSTERS = _gauge("rankwatch_effective_clusters", BENCHMARK)
ITEMS_WITHOUT_CLUSTER = _gauge("rankwatch_items_without_cluster", BENCHMARK)
ITEMS_DECLARED = _gauge("rankwatch_items_declared", BENCHMARK)
MODELS = _gauge("rankwatch_models", BENCHMARK)
PAIRS = _gauge("rankwatch_pairs", BENCHMARK)
ALPHA = _gauge("rankwatch_alpha_ratio", BENCHMARK)
HELD = _gauge("rankwatch_held", BENCHMARK)
PARTIAL = _gauge("rankwatch_partial", BENCHMARK)
FILES_REFUSED = _gauge("rankwatch_files_refused", BENCHMARK)
ITEMS_UNREAD = _gauge("rankwatch_items_unread", BENCHMARK)
PAIRS_DECIDED = _gauge("rankwatch_pairs_decided", (*BENCHMARK, "procedure"), per_label=2)
PAIRS_SETTLED = _gauge("rankwatch_pairs_settled", BENCHMARK)
PAIRS_EXHAUSTED = _gauge("rankwatch_pairs_exhausted_undecided", BENCHMARK)
BEYOND_CAPACITY = _gauge("rankwatch_pairs_beyond_family_capacity", BENCHMARK)
ADJACENT_UNDECIDED = _gauge("rankwatch_adjacent_pairs_undecided", (*BENCHMARK, "procedure"), per_label=9, detail=True)
ADJACENT_UNRESOLVED = _gauge("rankwatch_adjacent_pairs_unresolved", (*BENCHMARK, "procedure"), per_label=5, detail=True)
GOAL_MET = _gauge("rankwatch_goal_met", (*BENCHMARK, "goal"))
GOAL_OPEN_PAIRS = _gauge("rankwatch_goal_pairs_undecided", BENCHMARK)
GOAL_MODELS_NEEDED = _gauge("rankwatch_goal_models_needed", BENCHMARK)
SAVED_RATIO = _gauge("rankwatch_scores_saved_ratio", BENCHMARK)
RUN_COST = _gauge("rankwatch_scores_run_cost", BENCHMARK)
SAVED_COST = _gauge("rankwatch_scores_saved_cost", BENCHMARK)
VERDICTS = _counter("rankwatch_verdict_changes", (*BENCHMARK, "procedure", "kind"), per_label=7)

SENTINEL_MEAN = _gauge("rankwatch_sentinel_mean_ratio", (*MODEL, "of"), per_label=2)

# Models.
MODEL_RANK = _gauge("rankwatch_model_rank", MODEL)
MODEL_RANK_LOW = _gauge("rankwatch_model_rank_low", MODEL)
MODEL_RANK_HIGH = _gauge("rankwatch_model_rank_high", MODEL)
MODEL_TIES = _gauge("rankwatch_model_tie_group", MODEL)
MODEL_MEAN = _gauge("rankwatch_model_mean_ratio", MODEL)
MODEL_MEAN_LOW = _gauge("rankwatch_model_mean_low_ratio", MODEL)
MODEL_MEAN_HIGH = _gauge("rankwatch_model_mean_high_ratio", MODEL)
MODEL_ITEMS = _gauge("rankwatch_model_items", MODEL)
MODEL_SCORES_RUN = _gauge("rankwatch_model_scores_run", MODEL)
MODEL_SAVED_RATIO = _gauge("rankwatch_model_scores_saved_ratio", MODEL)
MODEL_ITEMS_LEAST = _gauge("rankwatch_model_items_least", BENCHMARK)
MODELS_OMITTED = _gauge("rankwatch_model_series_omitted", BENCHMARK)

# Suites.
SUITE_MEMBERS = _gauge("rankwatch_suite_members", (*SUITE, "state"), per_label=4)
SUITE_MODELS = _gauge("rankwatch_suite_models", SUITE)
SUITE_MODELS_LACKING = _gauge("rankwatch_suite_models_unranked", SUITE)
SUITE_UNDECIDED = _gauge("rankwatch_suite_adjacent_pairs_undecided", (*SUITE, "procedure"), per_label=6)
SUITE_MODEL_RANK = _gauge("rankwatch_suite_model_rank", SUITE_MODEL)
SUITE_MODEL_MEAN = _gauge("rankwatch_suite_model_mean_ratio", SUITE_MODEL)

# Followed pairs.
PAIR_ITEMS = _gauge("rankwatch_pair_items", PAIR)
PAIR_GAP = _gauge("rankwatch_pair_gap_ratio", PAIR)
PAIR_GAP_LOW = _gauge("rankwatch_pair_gap_low_ratio", PAIR_PROCEDURE, per_label=2)
PAIR_GAP_HIGH = _gauge("rankwatch_pair_gap_high_ratio", PAIR_PROCEDURE, per_label=2)
PAIR_LOG_E = _gauge("rankwatch_pair_log_e", PAIR)
PAIR_LOG_E_SIDE = _gauge("rankwatch_pair_log_e_directional", (*PAIR, "side"), per_label=2)
PAIR_THRESHOLD = _gauge("rankwatch_pair_log_threshold", PAIR_PROCEDURE, per_label=2)
PAIR_RESOLUTION = _gauge("rankwatch_pair_resolution_ratio", PAIR_PROCEDURE, per_label=3)
PAIR_TO_DECISION = _gauge("rankwatch_pair_items_to_decision", PAIR)
PAIR_DECIDED = _gauge("rankwatch_pair_decided", PAIR_PROCEDURE, 2)
PAIR_REVERSED = _gauge("rankwatch_pair_reversed", PAIR_PROCEDURE, per_label=2)
PAIR_STATUS = _gauge("rankwatch_pair_status", (*PAIR, "status"))
DECIDED_TIME = _gauge("rankwatch_decided_timestamp_seconds", PAIR_PROCEDURE, 2)
PAIR_SERIES_OMITTED = _gauge("rankwatch_pair_series_omitted", BENCHMARK)

# The budget.
SERIES_BUDGET = _gauge("rankwatch_series_budget", (), only=READ_SIDE)
SERIES_OMITTED = _gauge("rankwatch_series_omitted", (), only=READ_SIDE)

# The log.
LOG_POSITION = _gauge("rankwatch_log_position", PARTITION)
LOG_END = _gauge("rankwatch_log_end", PARTITION)
LOG_LAG = _gauge("rankwatch_log_lag", PARTITION)
SOURCE_GAP = _gauge("rankwatch_source_gap", (), of_process=True)
QUARANTINED = _gauge("rankwatch_quarantined_benchmarks", PARTITION, of_process=True)
PARTITION_OWNED = _gauge("rankwatch_partition_owned", PARTITION, only=("watch", "run"))
PARTITIONS = _gauge("rankwatch_partitions", ())
RECORDS = _counter("rankwatch_records", PARTITION)
DEAD_LETTERS = _counter("rankwatch_dead_letters", PARTITION)
MISROUTED = _counter("rankwatch_misrouted", PARTITION)
REPUBLISHED = _counter("rankwatch_republished", PARTITION)
FOLD_SECONDS = _histogram("rankwatch_fold_seconds", (), buckets=_SECONDS, of_process=True)
COMMIT_SECONDS = _histogram("rankwatch_commit_seconds", (), buckets=_SECONDS, of_process=True)
CHUNK_RECORDS = _histogram("rankwatch_chunk_records", (), buckets=_RECORDS)
STALE_COMMITS = _counter("rankwatch_stale_commits", (), of_process=True)

# The process and its dependencies.
READY = _gauge("rankwatch_ready", ())
STORE_UP = _gauge("rankwatch_store_up", (), of_process=True)
BROKER_UP = _gauge("rankwatch_broker_up", (), of_process=True, only=("run", "serve"))
STALENESS = _gauge("rankwatch_staleness_seconds", (), of_process=True, only=("serve",))
UNCONFIRMED = _gauge("rankwatch_unconfirmed_records", PARTITION, only=("serve",))
RELOADS = _counter("rankwatch_reloads", (), of_process=True, only=("serve",))
SIGNING_KEY_MISSING = _gauge("rankwatch_signing_key_missing", (), of_process=True, only=("serve",))
OUTBOX = _gauge("rankwatch_outbox_entries", PARTITION, of_process=True)
OUTBOX_LIMIT = _gauge("rankwatch_outbox_limit_entries", PARTITION, of_process=True)
RELAYED = _counter("rankwatch_relayed", ("publisher",), per_label=2, of_process=True)
RELAY_FAILURES = _counter("rankwatch_relay_failures", ("publisher",), per_label=2, of_process=True)
NOTIFICATIONS_OMITTED = _counter(
    "rankwatch_notifications_omitted", ("publisher",), of_process=True, only=("watch", "run")
)
BUILD = _info("rankwatch_build", ("version", "statistics_version", "state_version"))
CONFIGURATION = _info("rankwatch_configuration", ("mode", "topic", "group", "pair_series_cap", "webhook"))

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
