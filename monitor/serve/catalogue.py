"""Every metric, in one place: name, kind, labels, help."""

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """One metric family; counters are named without their `_total`."""

    name: str
    kind: Literal["counter", "gauge", "info"]
    labels: tuple[str, ...]
    help: str


PAIR = ("benchmark", "model_a", "model_b")

EVENTS = Metric(
    "rankwatch_events", "counter", ("benchmark",), "Valid events read, duplicates and conflicts among them."
)
DUPLICATES = Metric("rankwatch_duplicates", "counter", ("benchmark",), "Events that repeated a score.")
CONFLICTS = Metric(
    "rankwatch_conflicts",
    "counter",
    ("benchmark",),
    "Events with another score for a key that had one; the first stands.",
)
REJECTED = Metric(
    "rankwatch_rejected",
    "counter",
    ("benchmark",),
    "Records that could not be read; no benchmark where none could be told.",
)
ITEMS = Metric("rankwatch_items", "gauge", ("benchmark",), "Items seen.")
MODELS = Metric("rankwatch_models", "gauge", ("benchmark",), "Models seen.")
PAIRS = Metric("rankwatch_pairs", "gauge", ("benchmark",), "Pairs of models.")
HELD = Metric("rankwatch_held", "gauge", ("benchmark",), "1 while no anytime verdict can be given on the benchmark.")
ADJACENT_UNDECIDED = Metric(
    "rankwatch_adjacent_pairs_undecided",
    "gauge",
    ("benchmark", "procedure"),
    "Adjacent pairs without evidence which model is better.",
)
ADJACENT_UNRESOLVED = Metric(
    "rankwatch_adjacent_pairs_unresolved", "gauge", ("benchmark", "procedure"), "Adjacent pairs with q = N/N* below 1."
)
PAIR_ITEMS = Metric("rankwatch_pair_items", "gauge", PAIR, "Items that both models have a score for.")
PAIR_GAP = Metric(
    "rankwatch_pair_gap_ratio", "gauge", PAIR, "Mean score of model_a less that of model_b on shared items."
)
PAIR_LOG_E = Metric("rankwatch_pair_log_e", "gauge", PAIR, "Natural logarithm of the mixture e-value.")
PAIR_RESOLUTION = Metric("rankwatch_pair_resolution_ratio", "gauge", PAIR, "q = N/N* at fixed n.")
PAIR_DECIDED = Metric(
    "rankwatch_pair_decided",
    "gauge",
    (*PAIR, "procedure"),
    "1: model_a is decided to be better; -1: model_b; 0: undecided.",
)
PAIR_SERIES_OMITTED = Metric(
    "rankwatch_pair_series_omitted", "gauge", ("benchmark",), "Adjacent pairs left out beyond the cap on series."
)
VERDICTS = Metric(
    "rankwatch_verdict_changes", "counter", ("benchmark", "procedure", "kind"), "Latched verdict changes."
)
LOG_POSITION = Metric(
    "rankwatch_log_position_bytes", "gauge", ("partition",), "Offset up to which the log has been folded."
)
LOG_END = Metric(
    "rankwatch_log_end_bytes", "gauge", ("partition",), "Offset behind the last durable record of the log."
)
BUILD = Metric("rankwatch_build", "info", (), "Version of the program, of the statistics and of the stored layout.")

CATALOGUE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
