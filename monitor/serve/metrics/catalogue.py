"""Every metric, in one place: name, kind, unit, labels, help, how many series; docs/reference/metrics.md is written from it."""

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram", "info"]


class Metric(NamedTuple):
    """One metric family; counters are named without their `_total`, infos without their `_info`."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    series: str
    """How many series a worker has of it."""
    buckets: tuple[float, ...] = ()
    service_only: bool = False
    """Whether only `rankwatch run` has it."""

    @property
    def exposed(self) -> str:
        """The name under which it is queried."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")


BENCHMARK: Final = ("benchmark",)
PAIR: Final = ("benchmark", "model_a", "model_b")
MODEL: Final = ("benchmark", "model")
PARTITION: Final = ("partition",)
_B, _P, _M, _T, _1 = "benchmarks", "followed pairs", "shown models", "partitions", "1"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_RECORDS: Final = (1, 10, 100, 500, 1000, 2000, 5000, 10000)

# --- events -------------------------------------------------------------------------------------------------------------------------------

EVENTS = Metric(
    "rankwatch_events", "counter", "events", BENCHMARK, "Valid events read, duplicates and conflicts among them.", _B
)
DUPLICATES = Metric("rankwatch_duplicates", "counter", "events", BENCHMARK, "Events that repeated a score.", _B)
CONFLICTS = Metric(
    "rankwatch_conflicts",
    "counter",
    "events",
    BENCHMARK,
    "Events with another score for a key that had one; the first stands.",
    _B,
)
REJECTED = Metric(
    "rankwatch_rejected",
    "counter",
    "records",
    BENCHMARK,
    "Records that could not be read; no benchmark where none could be told.",
    _B,
)
LAST_EVENT = Metric(
    "rankwatch_last_event_timestamp_seconds",
    "gauge",
    "seconds",
    BENCHMARK,
    "Wall clock of the commit of the last chunk that held an event of the benchmark; kept with the state.",
    _B,
)

# --- benchmarks ---------------------------------------------------------------------------------------------------------------------------

BENCHMARK_INFO = Metric(
    "rankwatch_benchmark",
    "info",
    "",
    ("benchmark", "order", "family", "mixture"),
    "What is declared of the benchmark: order policy, family policy, mixture.",
    _B,
)
OWNED = Metric(
    "rankwatch_benchmark_owned",
    "gauge",
    "",
    BENCHMARK,
    "1 for a benchmark of this worker; the sum over workers is 1.",
    _B,
)
ITEMS = Metric("rankwatch_items", "gauge", "items", BENCHMARK, "Items seen.", _B)
ITEMS_DECLARED = Metric(
    "rankwatch_items_declared", "gauge", "items", BENCHMARK, "Items declared; absent where none were.", _B
)
MODELS = Metric("rankwatch_models", "gauge", "models", BENCHMARK, "Models seen.", _B)
PAIRS = Metric("rankwatch_pairs", "gauge", "pairs", BENCHMARK, "Pairs of models.", _B)
ALPHA = Metric("rankwatch_alpha_ratio", "gauge", "ratio", BENCHMARK, "Level of the verdicts.", _B)
HELD = Metric("rankwatch_held", "gauge", "", BENCHMARK, "1 while no anytime verdict can be given on the benchmark.", _B)
PAIRS_DECIDED = Metric(
    "rankwatch_pairs_decided",
    "gauge",
    "pairs",
    ("benchmark", "procedure"),
    "Pairs of current models with a latched decision, by anytime procedure.",
    "2 x benchmarks",
)
PAIRS_EXHAUSTED = Metric(
    "rankwatch_pairs_exhausted_undecided",
    "gauge",
    "pairs",
    BENCHMARK,
    "Pairs that share every item of the benchmark and are not decided family-wise.",
    _B,
)
BEYOND_CAPACITY = Metric(
    "rankwatch_pairs_beyond_family_capacity",
    "gauge",
    "pairs",
    BENCHMARK,
    "Pairs that came when the declared family was full: they get no family verdict.",
    _B,
)
ADJACENT_UNDECIDED = Metric(
    "rankwatch_adjacent_pairs_undecided",
    "gauge",
    "pairs",
    ("benchmark", "procedure"),
    "Adjacent pairs without evidence which model is better.",
    "9 x benchmarks",
)
ADJACENT_UNRESOLVED = Metric(
    "rankwatch_adjacent_pairs_unresolved",
    "gauge",
    "pairs",
    ("benchmark", "procedure"),
    "Adjacent pairs with q = N/N* below 1. A statement about the size of the benchmark, not about evidence.",
    "5 x benchmarks",
)
VERDICTS = Metric(
    "rankwatch_verdict_changes",
    "counter",
    "changes",
    ("benchmark", "procedure", "kind"),
    "Latched verdict changes.",
    "6 x benchmarks",
)

# --- models -------------------------------------------------------------------------------------------------------------------------------

MODEL_RANK = Metric("rankwatch_model_rank", "gauge", "", MODEL, "Rank by the mean of the model's own items.", _M)
MODEL_RANK_LOW = Metric(
    "rankwatch_model_rank_low", "gauge", "", MODEL, "Best rank that the family-wise decisions leave open.", _M
)
MODEL_RANK_HIGH = Metric(
    "rankwatch_model_rank_high", "gauge", "", MODEL, "Worst rank that the family-wise decisions leave open.", _M
)
MODEL_TIES = Metric("rankwatch_model_tie_group", "gauge", "", MODEL, "Models with the same number are tied.", _M)
MODEL_MEAN = Metric("rankwatch_model_mean_ratio", "gauge", "ratio", MODEL, "Mean score.", _M)
MODEL_MEAN_LOW = Metric(
    "rankwatch_model_mean_low_ratio", "gauge", "ratio", MODEL, "Lower end of the interval of the mean.", _M
)
MODEL_MEAN_HIGH = Metric(
    "rankwatch_model_mean_high_ratio", "gauge", "ratio", MODEL, "Upper end of the interval of the mean.", _M
)
MODEL_ITEMS = Metric("rankwatch_model_items", "gauge", "items", MODEL, "Items with a score.", _M)
MODELS_OMITTED = Metric(
    "rankwatch_model_series_omitted", "gauge", "models", BENCHMARK, "Models left out beyond the cap on series.", _B
)

# --- pairs --------------------------------------------------------------------------------------------------------------------------------

PAIR_ITEMS = Metric("rankwatch_pair_items", "gauge", "items", PAIR, "Items that both models have a score for.", _P)
PAIR_GAP = Metric(
    "rankwatch_pair_gap_ratio",
    "gauge",
    "ratio",
    PAIR,
    "Mean score of model_a less that of model_b on shared items.",
    _P,
)
PAIR_GAP_LOW = Metric(
    "rankwatch_pair_gap_low_ratio",
    "gauge",
    "ratio",
    (*PAIR, "procedure"),
    "Lower end of the anytime interval of the gap: at alpha (anytime), at alpha_j (anytime_family).",
    "2 x followed pairs",
)
PAIR_GAP_HIGH = Metric(
    "rankwatch_pair_gap_high_ratio",
    "gauge",
    "ratio",
    (*PAIR, "procedure"),
    "Upper end of the same interval.",
    "2 x followed pairs",
)
PAIR_LOG_E = Metric("rankwatch_pair_log_e", "gauge", "", PAIR, "Natural logarithm of the mixture e-value.", _P)
PAIR_LOG_E_SIDE = Metric(
    "rankwatch_pair_log_e_directional",
    "gauge",
    "",
    (*PAIR, "side"),
    "Natural logarithm of its directional halves: evidence that model_a (a) or model_b (b) is better.",
    "2 x followed pairs",
)
PAIR_THRESHOLD = Metric(
    "rankwatch_pair_log_threshold",
    "gauge",
    "",
    (*PAIR, "procedure"),
    "What log e is compared with: ln 1/alpha (anytime), ln 1/alpha_j (anytime_family).",
    "2 x followed pairs",
)
PAIR_RESOLUTION = Metric(
    "rankwatch_pair_resolution_ratio",
    "gauge",
    "ratio",
    (*PAIR, "procedure"),
    "q = N/N*. Large enough for a gap of this size from 1 on; says nothing about which model is better.",
    "4 x followed pairs",
)
PAIR_TO_DECISION = Metric(
    "rankwatch_pair_items_to_decision",
    "gauge",
    "items",
    PAIR,
    "Further items until the family-wise decision if the gap stays as it is; beyond what is left it is an extrapolation.",
    _P,
)
PAIR_DECIDED = Metric(
    "rankwatch_pair_decided",
    "gauge",
    "",
    (*PAIR, "procedure"),
    "1: model_a is decided to be better; -1: model_b; 0: undecided.",
    "8 x followed pairs",
)
PAIR_REVERSED = Metric(
    "rankwatch_pair_reversed",
    "gauge",
    "",
    (*PAIR, "procedure"),
    "1 once the gap has turned after the decision; only for decided pairs.",
    "2 x followed pairs",
)
PAIR_STATUS = Metric(
    "rankwatch_pair_status", "gauge", "", (*PAIR, "status"), "1 for the status that the pair has now.", _P
)
DECIDED_TIME = Metric(
    "rankwatch_decided_timestamp_seconds",
    "gauge",
    "seconds",
    (*PAIR, "procedure"),
    "Wall clock of the commit in which the pair was decided; kept with the state, so a restart does not change it.",
    "2 x followed pairs",
)
REVERSED_TIME = Metric(
    "rankwatch_reversed_timestamp_seconds",
    "gauge",
    "seconds",
    (*PAIR, "procedure"),
    "Wall clock of the commit in which the gap of a decided pair turned.",
    "2 x followed pairs",
)
PAIR_SERIES_OMITTED = Metric(
    "rankwatch_pair_series_omitted",
    "gauge",
    "pairs",
    BENCHMARK,
    "Adjacent, declared or decided pairs left out beyond the cap on series.",
    _B,
)

# --- the log and the way through it -------------------------------------------------------------------------------------------------------

LOG_POSITION = Metric(
    "rankwatch_log_position",
    "gauge",
    "",
    PARTITION,
    "Offset up to which the log has been folded and committed: messages of a topic, bytes of a file.",
    _T,
)
LOG_END = Metric("rankwatch_log_end", "gauge", "", PARTITION, "Offset behind the last durable record of the log.", _T)
LOG_LAG = Metric("rankwatch_log_lag", "gauge", "", PARTITION, "Log end less log position.", _T)
SOURCE_GAP = Metric(
    "rankwatch_source_gap",
    "gauge",
    "",
    (),
    "1 when the log no longer holds what comes next, or is another one: this worker has stopped folding, and is about to end.",
    _1,
)
PARTITION_OWNED = Metric(
    "rankwatch_partition_owned", "gauge", "", PARTITION, "1 for a partition in this worker's hands.", _T
)
PARTITIONS = Metric("rankwatch_partitions", "gauge", "partitions", (), "Partitions of the log.", _1)
RECORDS = Metric("rankwatch_records", "counter", "records", PARTITION, "Records of the log that were folded.", _T)
DEAD_LETTERS = Metric(
    "rankwatch_dead_letters", "counter", "records", PARTITION, "Records put aside because they could not be read.", _T
)
MISROUTED = Metric(
    "rankwatch_misrouted",
    "counter",
    "events",
    PARTITION,
    "Events of other partitions' benchmarks, published again to their owners.",
    _T,
)
REPUBLISHED = Metric(
    "rankwatch_republished", "counter", "events", PARTITION, "Copies of such events that were folded here.", _T
)
FOLD_SECONDS = Metric(
    "rankwatch_fold_seconds",
    "histogram",
    "seconds",
    (),
    "Time to validate and fold a chunk.",
    "16",
    _SECONDS,
)
COMMIT_SECONDS = Metric(
    "rankwatch_commit_seconds",
    "histogram",
    "seconds",
    (),
    "Time to commit a chunk to the store, with what has to be durable before.",
    "16",
    _SECONDS,
)
CHUNK_RECORDS = Metric("rankwatch_chunk_records", "histogram", "records", (), "Records in a chunk.", "11", _RECORDS)
STALE_COMMITS = Metric(
    "rankwatch_stale_commits",
    "counter",
    "commits",
    (),
    "Commits refused because the stored state had moved: the partition was another's, or the store had lost writes.",
    _1,
)

# --- what it depends on -------------------------------------------------------------------------------------------------------------------

READY = Metric("rankwatch_ready", "gauge", "", (), "What /readyz says.", _1)
STORE_UP = Metric("rankwatch_store_up", "gauge", "", (), "Whether Redis or Valkey answered when it was last asked.", _1)
BROKER_UP = Metric(
    "rankwatch_broker_up",
    "gauge",
    "",
    (),
    "Whether the brokers answered when they were last asked.",
    _1,
    service_only=True,
)
OUTBOX = Metric(
    "rankwatch_outbox_entries", "gauge", "changes", PARTITION, "Verdict changes that wait for a publisher.", _T
)
RELAYED = Metric(
    "rankwatch_relayed", "counter", "changes", ("publisher",), "Verdict changes that a publisher has taken.", "2"
)
RELAY_FAILURES = Metric(
    "rankwatch_relay_failures",
    "counter",
    "attempts",
    ("publisher",),
    "Attempts to hand on verdict changes that failed and are made again.",
    "2",
)
BUILD = Metric(
    "rankwatch_build",
    "info",
    "",
    ("version", "statistics_version", "state_version"),
    "Version of the program, of the statistics and of the stored layout.",
    _1,
)
CONFIGURATION = Metric(
    "rankwatch_configuration",
    "info",
    "",
    ("mode", "topic", "group", "pair_series_cap", "webhook"),
    "How it runs; no secret among it.",
    _1,
)

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
