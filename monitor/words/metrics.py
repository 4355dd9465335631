"""The help of each metric, by its name."""

from collections.abc import Mapping
from typing import Final

HELP: Final[Mapping[str, str]] = {
    "rankwatch_events": "Valid events read, including duplicates and conflicts.",
    "rankwatch_duplicates": "Events that repeat an existing score.",
    "rankwatch_conflicts": "Events with a different score for an existing key; the first score counts.",
    "rankwatch_conflicts_by_producer": (
        "Conflicts in this process by the token that sent them; empty if unknown, `claimed:` before a name that no server signed."
    ),
    "rankwatch_quota_refusals": (
        "Requests to this process that were refused because of a quota of their token: boards, models, items or events."
    ),
    "rankwatch_rejected": (
        "Records that were rejected; the label is empty if the benchmark is unknown, which is all that `run` exports."
    ),
    "rankwatch_last_event_timestamp_seconds": "Commit time of the last chunk with an event.",
    "rankwatch_benchmark": "Declared order policy, family policy and mixture.",
    "rankwatch_benchmark_owned": "1 for a benchmark of this worker; the sum over all workers is 1.",
    "rankwatch_items": "Items seen.",
    "rankwatch_effective_clusters": "Effective number of clusters of the items; absent without clusters.",
    "rankwatch_items_without_cluster": (
        "Items without a cluster, omitted from clustered results; absent without clusters."
    ),
    "rankwatch_items_declared": "Declared items; absent without a declared item count.",
    "rankwatch_models": "Models seen.",
    "rankwatch_pairs": "Pairs of models.",
    "rankwatch_alpha_ratio": "Significance level of the verdicts.",
    "rankwatch_held": "1 while the benchmark can get no anytime verdict.",
    "rankwatch_partial": "1 if records that may have been of the benchmark were lost before they were folded.",
    "rankwatch_files_refused": "Watched files of the benchmark, or of one that is not known, that were refused.",
    "rankwatch_items_unread": "Items whose every line in watched files was rejected.",
    "rankwatch_pairs_decided": (
        "Pairs of current models with an anytime decision that counts: 0 where the declared order proved wrong."
    ),
    "rankwatch_pairs_settled": "Pairs of which it is settled who leads on the items of the benchmark.",
    "rankwatch_pairs_exhausted_undecided": (
        "Pairs with status exhausted: every item is scored or the runs have ended, and no verdict was reached."
    ),
    "rankwatch_pairs_beyond_family_capacity": "Pairs beyond the declared family, without family-wise verdicts.",
    "rankwatch_adjacent_pairs_undecided": (
        "Adjacent pairs without evidence which model is better; `anytime_family` of every benchmark."
    ),
    "rankwatch_adjacent_pairs_unresolved": "Adjacent pairs with q = N/N* below 1, computed from the observed gap.",
    "rankwatch_goal_met": "1 if the verdicts answer the declared goal, else 0.",
    "rankwatch_goal_pairs_undecided": "Undecided pairs that the declared goal rests on.",
    "rankwatch_goal_models_needed": "Models whose further results can change the answer to the declared goal.",
    "rankwatch_scores_saved_ratio": (
        "Share of the scores of all models on all items that was not run; exported with a declared goal and item count."
    ),
    "rankwatch_scores_run_cost": (
        "Price of the scores run, in the currency of the prices; exported with a declared goal and a price of each model."
    ),
    "rankwatch_scores_saved_cost": (
        "Price of the scores not run of a full run; exported with a declared goal, a price of each model and an item count."
    ),
    "rankwatch_verdict_changes": "Latched verdict changes, of the family-wise verdicts and of settled.",
    "rankwatch_model_rank": "Rank by the mean over the model's own items.",
    "rankwatch_model_rank_low": "Best rank that the family-wise decisions allow.",
    "rankwatch_model_rank_high": "Worst rank that the family-wise decisions allow.",
    "rankwatch_model_tie_group": "Tie group; models with the same number are tied.",
    "rankwatch_model_mean_ratio": "Mean score.",
    "rankwatch_model_mean_low_ratio": "Lower end of the interval for the mean score.",
    "rankwatch_model_mean_high_ratio": "Upper end of the interval for the mean score.",
    "rankwatch_model_items": "Items with a score.",
    "rankwatch_model_scores_run": (
        "Items of the newest epoch that the model ran, skips included; exported with a declared goal."
    ),
    "rankwatch_model_scores_saved_ratio": (
        "Share of all items that the model did not run; exported with a declared goal and item count."
    ),
    "rankwatch_model_items_least": "Items of the model with the fewest; absent without models.",
    "rankwatch_model_series_omitted": "Models beyond the cap or the budget, without series of their own.",
    "rankwatch_suite_members": (
        "Members of the suite: counts, archived, absent or battles; with one of the last two no model is ranked."
    ),
    "rankwatch_suite_models": "Models with a score in every member, which are ranked.",
    "rankwatch_suite_models_unranked": "Models that lack a score in some member.",
    "rankwatch_suite_adjacent_pairs_undecided": "Adjacent pairs that a test at a planned n does not decide.",
    "rankwatch_suite_model_rank": "Rank by the mean over the members.",
    "rankwatch_suite_model_mean_ratio": "Mean over the members; below 0 where a score is below its baseline.",
    "rankwatch_pair_items": "Items that both models have a score for.",
    "rankwatch_pair_gap_ratio": "Mean score of model_a minus mean score of model_b on the shared items.",
    "rankwatch_pair_gap_low_ratio": "Lower end of the anytime-valid interval for the gap.",
    "rankwatch_pair_gap_high_ratio": "Upper end of the anytime-valid interval for the gap.",
    "rankwatch_pair_log_e": "Natural logarithm of the mixture e-value.",
    "rankwatch_pair_log_e_directional": "Natural logarithm of the e-value for one side.",
    "rankwatch_pair_log_threshold": "Threshold of log e: ln 1/alpha or ln 1/alpha_j.",
    "rankwatch_pair_resolution_ratio": (
        "q = N/N* (fixed_n, clustered, anytime), computed from the observed gap: no evidence which model is better."
    ),
    "rankwatch_pair_items_to_decision": "Expected further items to the family-wise decision.",
    "rankwatch_pair_decided": "1: model_a is decided better; -1: model_b; 0: undecided.",
    "rankwatch_pair_reversed": "1 once the gap has changed sign after the decision.",
    "rankwatch_pair_status": "1 for the current status of the pair.",
    "rankwatch_decided_timestamp_seconds": "Commit time of the decision.",
    "rankwatch_pair_series_omitted": "Pairs to follow beyond the cap or the budget, without series.",
    "rankwatch_series_budget": "Setting metrics_series: series about boards, at most.",
    "rankwatch_series_omitted": "Series of models and pairs that the budget omits, counted with the most they can be.",
    "rankwatch_log_position": "Offset up to which the log is folded and committed.",
    "rankwatch_log_end": "Offset after the last durable record of the log.",
    "rankwatch_log_lag": "Log end minus log position.",
    "rankwatch_source_gap": "1 if the log lacks the next records or was replaced; the worker exits.",
    "rankwatch_quarantined_benchmarks": "Benchmarks that are set aside; `rankwatch quarantine list` names them.",
    "rankwatch_partition_owned": "1 for a partition of this worker.",
    "rankwatch_partitions": "Partitions of the log.",
    "rankwatch_records": "Records of the log folded.",
    "rankwatch_dead_letters": "Records that were rejected, kept as dead letters.",
    "rankwatch_misrouted": "Events on the wrong partition, republished to the owner.",
    "rankwatch_republished": "Copies of misrouted events folded on this partition.",
    "rankwatch_fold_seconds": "Time to validate and fold a chunk.",
    "rankwatch_commit_seconds": "Time to commit a chunk to the store.",
    "rankwatch_chunk_records": "Records of a chunk that are folded together.",
    "rankwatch_stale_commits": "Commits refused because another worker or a failover changed the stored state.",
    "rankwatch_ready": "1 if /readyz reports ready.",
    "rankwatch_store_up": "1 if Redis or Valkey answered the last check.",
    "rankwatch_broker_up": "1 if the brokers answered the last check.",
    "rankwatch_staleness_seconds": (
        "Age of the state shown: time since the end of the log was seen that it has reached."
    ),
    "rankwatch_unconfirmed_records": "Offsets that are folded and not stored yet.",
    "rankwatch_reloads": (
        "Partitions that a reader loaded again: its records had left the log, or differed from those of the store."
    ),
    "rankwatch_signing_key_missing": (
        "1 while Redis lacks the key that signs origins and producers, which workers draw and write back."
    ),
    "rankwatch_outbox_entries": "Verdict changes that wait for a publisher.",
    "rankwatch_outbox_limit_entries": (
        "Verdict changes that may wait for a publisher; beyond it the partition is not folded."
    ),
    "rankwatch_relayed": "Verdict changes that a publisher accepted.",
    "rankwatch_relay_failures": "Failed attempts to publish, each retried.",
    "rankwatch_notifications_omitted": "Verdict changes without a notification, because their results were imported.",
    "rankwatch_build": "Versions of program, statistics and state.",
    "rankwatch_configuration": "Settings of this process, without secrets.",
}
