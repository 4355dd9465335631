"""Define every metric once: name, kind, unit, labels and help. docs/reference/metrics.md is generated from this table."""

from functools import partial
from typing import Final, Literal, NamedTuple, get_args

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
    help: str
    per_label: int = 1
    """Series for each benchmark, model, pair or partition."""
    buckets: tuple[float, ...] = ()
    of_process: bool = False
    """Whether it is a metric of the process, not computed from the state."""
    only: tuple[Mode, ...] | None = None
    """The commands that export it, where these are others than for its labels."""
    detail: bool = False
    """Whether only boards whose models have series have it; `monitor.serve.metrics.budget.ALWAYS` is the exception."""

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
EVENTS = _counter("rankwatch_events", BENCHMARK, "Valid events read, including duplicates and conflicts.")
DUPLICATES = _counter("rankwatch_duplicates", BENCHMARK, "Events that repeat an existing score.")
CONFLICTS = _counter(
    "rankwatch_conflicts", BENCHMARK, "Events with a different score for an existing key; the first score counts."
)
CONFLICTS_BY_PRODUCER = _counter(
    "rankwatch_conflicts_by_producer",
    ("producer",),
    "Conflicts in this process by the token that sent them; empty if unknown, `claimed:` before a name that no server signed.",
    of_process=True,
)
QUOTA_REFUSALS = _counter(
    "rankwatch_quota_refusals",
    ("quota",),
    "Requests to this process that were refused because of a quota of their token: boards, models, items or events.",
    per_label=4,
    of_process=True,
)
REJECTED = _counter(
    "rankwatch_rejected",
    BENCHMARK,
    "Records that were rejected; the label is empty if the benchmark is unknown, which is all that `run` exports.",
    only=get_args(Mode),
)
LAST_EVENT = _gauge("rankwatch_last_event_timestamp_seconds", BENCHMARK, "Commit time of the last chunk with an event.")

# Benchmarks.
BENCHMARK_INFO = _info(
    "rankwatch_benchmark",
    (*BENCHMARK, "order", "family", "mixture"),
    "Declared order policy, family policy and mixture.",
)
OWNED = _gauge(
    "rankwatch_benchmark_owned",
    BENCHMARK,
    "1 for a benchmark of this worker; the sum over all workers is 1.",
    only=("watch", "run"),
)
ITEMS = _gauge("rankwatch_items", BENCHMARK, "Items seen.")
EFFECTIVE_CLUSTERS = _gauge(
    "rankwatch_effective_clusters", BENCHMARK, "Effective number of clusters of the items; absent without clusters."
)
ITEMS_WITHOUT_CLUSTER = _gauge(
    "rankwatch_items_without_cluster",
    BENCHMARK,
    "Items without a cluster, omitted from clustered results; absent without clusters.",
)
ITEMS_DECLARED = _gauge("rankwatch_items_declared", BENCHMARK, "Declared items; absent without a declared item count.")
MODELS = _gauge("rankwatch_models", BENCHMARK, "Models seen.")
PAIRS = _gauge("rankwatch_pairs", BENCHMARK, "Pairs of models.")
ALPHA = _gauge("rankwatch_alpha_ratio", BENCHMARK, "Significance level of the verdicts.")
HELD = _gauge("rankwatch_held", BENCHMARK, "1 while the benchmark can get no anytime verdict.")
PARTIAL = _gauge(
    "rankwatch_partial",
    BENCHMARK,
    "1 if records that may have been of the benchmark were lost before they were folded.",
)
FILES_REFUSED = _gauge(
    "rankwatch_files_refused",
    BENCHMARK,
    "Watched files of the benchmark, or of one that is not known, that were refused.",
)
ITEMS_UNREAD = _gauge("rankwatch_items_unread", BENCHMARK, "Items whose every line in watched files was rejected.")
PAIRS_DECIDED = _gauge(
    "rankwatch_pairs_decided",
    (*BENCHMARK, "procedure"),
    "Pairs of current models with an anytime decision that counts: 0 where the declared order proved wrong.",
    per_label=2,
)
PAIRS_SETTLED = _gauge(
    "rankwatch_pairs_settled", BENCHMARK, "Pairs of which it is settled who leads on the items of the benchmark."
)
PAIRS_EXHAUSTED = _gauge(
    "rankwatch_pairs_exhausted_undecided",
    BENCHMARK,
    "Pairs with status exhausted: every item is scored or the runs have ended, and no verdict was reached.",
)
BEYOND_CAPACITY = _gauge(
    "rankwatch_pairs_beyond_family_capacity",
    BENCHMARK,
    "Pairs beyond the declared family, without family-wise verdicts.",
)
ADJACENT_UNDECIDED = _gauge(
    "rankwatch_adjacent_pairs_undecided",
    (*BENCHMARK, "procedure"),
    "Adjacent pairs without evidence which model is better; `anytime_family` of every benchmark.",
    per_label=9,
    detail=True,
)
ADJACENT_UNRESOLVED = _gauge(
    "rankwatch_adjacent_pairs_unresolved",
    (*BENCHMARK, "procedure"),
    "Adjacent pairs with q = N/N* below 1, computed from the observed gap.",
    per_label=5,
    detail=True,
)
GOAL_MET = _gauge("rankwatch_goal_met", (*BENCHMARK, "goal"), "1 if the verdicts answer the declared goal, else 0.")
GOAL_OPEN_PAIRS = _gauge(
    "rankwatch_goal_pairs_undecided", BENCHMARK, "Undecided pairs that the declared goal rests on."
)
GOAL_MODELS_NEEDED = _gauge(
    "rankwatch_goal_models_needed",
    BENCHMARK,
    "Models whose further results can change the answer to the declared goal.",
)
SAVED_RATIO = _gauge(
    "rankwatch_scores_saved_ratio",
    BENCHMARK,
    "Share of the scores of all models on all items that was not run; exported with a declared goal and item count.",
)
RUN_COST = _gauge(
    "rankwatch_scores_run_cost",
    BENCHMARK,
    "Price of the scores run, in the currency of the prices; exported with a declared goal and a price of each model.",
)
SAVED_COST = _gauge(
    "rankwatch_scores_saved_cost",
    BENCHMARK,
    "Price of the scores not run of a full run; exported with a declared goal, a price of each model and an item count.",
)
VERDICTS = _counter(
    "rankwatch_verdict_changes",
    (*BENCHMARK, "procedure", "kind"),
    "Latched verdict changes, of the family-wise verdicts and of settled.",
    per_label=7,
)

# Models.
MODEL_RANK = _gauge("rankwatch_model_rank", MODEL, "Rank by the mean over the model's own items.")
MODEL_RANK_LOW = _gauge("rankwatch_model_rank_low", MODEL, "Best rank that the family-wise decisions allow.")
MODEL_RANK_HIGH = _gauge("rankwatch_model_rank_high", MODEL, "Worst rank that the family-wise decisions allow.")
MODEL_TIES = _gauge("rankwatch_model_tie_group", MODEL, "Tie group; models with the same number are tied.")
MODEL_MEAN = _gauge("rankwatch_model_mean_ratio", MODEL, "Mean score.")
MODEL_MEAN_LOW = _gauge("rankwatch_model_mean_low_ratio", MODEL, "Lower end of the interval for the mean score.")
MODEL_MEAN_HIGH = _gauge("rankwatch_model_mean_high_ratio", MODEL, "Upper end of the interval for the mean score.")
MODEL_ITEMS = _gauge("rankwatch_model_items", MODEL, "Items with a score.")
MODEL_SCORES_RUN = _gauge(
    "rankwatch_model_scores_run",
    MODEL,
    "Items of the newest epoch that the model ran, skips included; exported with a declared goal.",
)
MODEL_SAVED_RATIO = _gauge(
    "rankwatch_model_scores_saved_ratio",
    MODEL,
    "Share of all items that the model did not run; exported with a declared goal and item count.",
)
MODEL_ITEMS_LEAST = _gauge(
    "rankwatch_model_items_least", BENCHMARK, "Items of the model with the fewest; absent without models."
)
MODELS_OMITTED = _gauge(
    "rankwatch_model_series_omitted", BENCHMARK, "Models beyond the cap or the budget, without series of their own."
)

# Suites.
SUITE_MEMBERS = _gauge(
    "rankwatch_suite_members",
    (*SUITE, "state"),
    "Members of the suite: counts, archived, absent or battles; with one of the last two no model is ranked.",
    per_label=4,
)
SUITE_MODELS = _gauge("rankwatch_suite_models", SUITE, "Models with a score in every member, which are ranked.")
SUITE_MODELS_LACKING = _gauge("rankwatch_suite_models_unranked", SUITE, "Models that lack a score in some member.")
SUITE_UNDECIDED = _gauge(
    "rankwatch_suite_adjacent_pairs_undecided",
    (*SUITE, "procedure"),
    "Adjacent pairs that a test at a planned n does not decide.",
    per_label=6,
)
SUITE_MODEL_RANK = _gauge("rankwatch_suite_model_rank", SUITE_MODEL, "Rank by the mean over the members.")
SUITE_MODEL_MEAN = _gauge(
    "rankwatch_suite_model_mean_ratio",
    SUITE_MODEL,
    "Mean over the members; below 0 where a score is below its baseline.",
)

# Followed pairs.
PAIR_ITEMS = _gauge("rankwatch_pair_items", PAIR, "Items that both models have a score for.")
PAIR_GAP = _gauge(
    "rankwatch_pair_gap_ratio", PAIR, "Mean score of model_a minus mean score of model_b on the shared items."
)
PAIR_GAP_LOW = _gauge(
    "rankwatch_pair_gap_low_ratio", PAIR_PROCEDURE, "Lower end of the anytime-valid interval for the gap.", per_label=2
)
PAIR_GAP_HIGH = _gauge(
    "rankwatch_pair_gap_high_ratio", PAIR_PROCEDURE, "Upper end of the anytime-valid interval for the gap.", per_label=2
)
PAIR_LOG_E = _gauge("rankwatch_pair_log_e", PAIR, "Natural logarithm of the mixture e-value.")
PAIR_LOG_E_SIDE = _gauge(
    "rankwatch_pair_log_e_directional", (*PAIR, "side"), "Natural logarithm of the e-value for one side.", per_label=2
)
PAIR_THRESHOLD = _gauge(
    "rankwatch_pair_log_threshold", PAIR_PROCEDURE, "Threshold of log e: ln 1/alpha or ln 1/alpha_j.", per_label=2
)
PAIR_RESOLUTION = _gauge(
    "rankwatch_pair_resolution_ratio",
    PAIR_PROCEDURE,
    "q = N/N* (fixed_n, clustered, anytime), computed from the observed gap: no evidence which model is better.",
    per_label=3,
)
PAIR_TO_DECISION = _gauge(
    "rankwatch_pair_items_to_decision", PAIR, "Expected further items to the family-wise decision."
)
PAIR_DECIDED = _gauge(
    "rankwatch_pair_decided", PAIR_PROCEDURE, "1: model_a is decided better; -1: model_b; 0: undecided.", 2
)
PAIR_REVERSED = _gauge(
    "rankwatch_pair_reversed", PAIR_PROCEDURE, "1 once the gap has changed sign after the decision.", per_label=2
)
PAIR_STATUS = _gauge("rankwatch_pair_status", (*PAIR, "status"), "1 for the current status of the pair.")
DECIDED_TIME = _gauge("rankwatch_decided_timestamp_seconds", PAIR_PROCEDURE, "Commit time of the decision.", 2)
PAIR_SERIES_OMITTED = _gauge(
    "rankwatch_pair_series_omitted", BENCHMARK, "Pairs to follow beyond the cap or the budget, without series."
)

# The budget.
SERIES_BUDGET = _gauge(
    "rankwatch_series_budget", (), "Setting metrics_series: series about boards, at most.", only=READ_SIDE
)
SERIES_OMITTED = _gauge(
    "rankwatch_series_omitted",
    (),
    "Series of models and pairs that the budget omits, counted with the most they can be.",
    only=READ_SIDE,
)

# The log.
LOG_POSITION = _gauge("rankwatch_log_position", PARTITION, "Offset up to which the log is folded and committed.")
LOG_END = _gauge("rankwatch_log_end", PARTITION, "Offset after the last durable record of the log.")
LOG_LAG = _gauge("rankwatch_log_lag", PARTITION, "Log end minus log position.")
SOURCE_GAP = _gauge(
    "rankwatch_source_gap",
    (),
    "1 if the log lacks the next records or was replaced; the worker exits.",
    of_process=True,
)
QUARANTINED = _gauge(
    "rankwatch_quarantined_benchmarks",
    PARTITION,
    "Benchmarks that are set aside; `rankwatch quarantine list` names them.",
    of_process=True,
)
PARTITION_OWNED = _gauge(
    "rankwatch_partition_owned", PARTITION, "1 for a partition of this worker.", only=("watch", "run")
)
PARTITIONS = _gauge("rankwatch_partitions", (), "Partitions of the log.")
RECORDS = _counter("rankwatch_records", PARTITION, "Records of the log folded.")
DEAD_LETTERS = _counter("rankwatch_dead_letters", PARTITION, "Records that were rejected, kept as dead letters.")
MISROUTED = _counter("rankwatch_misrouted", PARTITION, "Events on the wrong partition, republished to the owner.")
REPUBLISHED = _counter("rankwatch_republished", PARTITION, "Copies of misrouted events folded on this partition.")
FOLD_SECONDS = _histogram(
    "rankwatch_fold_seconds", (), "Time to validate and fold a chunk.", buckets=_SECONDS, of_process=True
)
COMMIT_SECONDS = _histogram(
    "rankwatch_commit_seconds", (), "Time to commit a chunk to the store.", buckets=_SECONDS, of_process=True
)
CHUNK_RECORDS = _histogram(
    "rankwatch_chunk_records", (), "Records of a chunk that are folded together.", buckets=_RECORDS
)
STALE_COMMITS = _counter(
    "rankwatch_stale_commits",
    (),
    "Commits refused because another worker or a failover changed the stored state.",
    of_process=True,
)

# The process and its dependencies.
READY = _gauge("rankwatch_ready", (), "1 if /readyz reports ready.")
STORE_UP = _gauge("rankwatch_store_up", (), "1 if Redis or Valkey answered the last check.", of_process=True)
BROKER_UP = _gauge(
    "rankwatch_broker_up", (), "1 if the brokers answered the last check.", of_process=True, only=("run", "serve")
)
STALENESS = _gauge(
    "rankwatch_staleness_seconds",
    (),
    "Age of the state shown: time since the end of the log was seen that it has reached.",
    of_process=True,
    only=("serve",),
)
UNCONFIRMED = _gauge(
    "rankwatch_unconfirmed_records", PARTITION, "Offsets that are folded and not stored yet.", only=("serve",)
)
RELOADS = _counter(
    "rankwatch_reloads",
    (),
    "Partitions that a reader loaded again: its records had left the log, or differed from those of the store.",
    of_process=True,
    only=("serve",),
)
SIGNING_KEY_MISSING = _gauge(
    "rankwatch_signing_key_missing",
    (),
    "1 while Redis lacks the key that signs origins and producers, which workers draw and write back.",
    of_process=True,
    only=("serve",),
)
OUTBOX = _gauge("rankwatch_outbox_entries", PARTITION, "Verdict changes that wait for a publisher.", of_process=True)
OUTBOX_LIMIT = _gauge(
    "rankwatch_outbox_limit_entries",
    PARTITION,
    "Verdict changes that may wait for a publisher; beyond it the partition is not folded.",
    of_process=True,
)
RELAYED = _counter(
    "rankwatch_relayed", ("publisher",), "Verdict changes that a publisher accepted.", per_label=2, of_process=True
)
RELAY_FAILURES = _counter(
    "rankwatch_relay_failures",
    ("publisher",),
    "Failed attempts to publish, each retried.",
    per_label=2,
    of_process=True,
)
NOTIFICATIONS_OMITTED = _counter(
    "rankwatch_notifications_omitted",
    ("publisher",),
    "Verdict changes without a notification, because their results were imported.",
    of_process=True,
    only=("watch", "run"),
)
BUILD = _info(
    "rankwatch_build", ("version", "statistics_version", "state_version"), "Versions of program, statistics and state."
)
CONFIGURATION = _info(
    "rankwatch_configuration",
    ("mode", "topic", "group", "pair_series_cap", "webhook"),
    "Settings of this process, without secrets.",
)

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
