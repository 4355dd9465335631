"""The statistics of paired evaluation, as pure functions over arrays of pairs.

Arguments are numbers or arrays that broadcast, pairs on the leading axis; results are float64 arrays of the broadcast
shape unless a function documents another. The names have one meaning everywhere:

``n``, ``b``, ``c``
    counts of items: shared by the pair, right in A only, right in B only (b + c <= n).
``gap``, ``sd``, ``p_a``, ``p_b``, ``rho``
    mean and standard deviation of D = x_A - x_B, accuracies, and correlation of the scores; scores lie in [0, 1].
``alpha``, ``power``
    two-sided level and power, in (0, 1).
``m``
    a number of hypotheses, or of discordant items b + c; ``p``: p-values of a family, a vector.
``log_e``, thresholds
    natural logarithms, in nats; a pair is decided at ln(1/alpha).
``mixture``
    a name that `parse_mixture` accepts, or a `Mixture`.

Input that is NaN, infinite, not numeric, out of range or of shapes that do not broadcast is a ValueError that names the
argument and the rule; limits (no items, no gap, no discordant item) have documented values and warn of nothing.

Every name is imported when first used, so that ``import stats.eprocess`` loads only its own needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stats.agreement import Agreement as Agreement
    from stats.agreement import agreement as agreement
    from stats.bootstrap import BootstrapInterval as BootstrapInterval
    from stats.bootstrap import bootstrap_power as bootstrap_power
    from stats.bootstrap import paired_bootstrap_delta as paired_bootstrap_delta
    from stats.bootstrap import required_n_interval as required_n_interval
    from stats.bradley_terry import BradleyTerry as BradleyTerry
    from stats.bradley_terry import Groups as Groups
    from stats.bradley_terry import bradley_terry as bradley_terry
    from stats.bradley_terry import groups_of as groups_of
    from stats.cluster_design import cluster_power as cluster_power
    from stats.cluster_design import cluster_size_for_power as cluster_size_for_power
    from stats.cluster_design import clusters_for_power as clusters_for_power
    from stats.cluster_eprocess import cluster_e_max as cluster_e_max
    from stats.cluster_eprocess import cluster_e_process as cluster_e_process
    from stats.cluster_eprocess import clusters_needed as clusters_needed
    from stats.cluster_sensitivity import CategoryBootstrap as CategoryBootstrap
    from stats.cluster_sensitivity import LeaveOneOut as LeaveOneOut
    from stats.cluster_sensitivity import category_bootstrap as category_bootstrap
    from stats.cluster_sensitivity import difficulty_clusters as difficulty_clusters
    from stats.cluster_sensitivity import leave_one_out as leave_one_out
    from stats.cluster_sensitivity import random_clusters as random_clusters
    from stats.cluster_sensitivity import split_halves as split_halves
    from stats.clusters import cluster_icc as cluster_icc
    from stats.clusters import cluster_required_n as cluster_required_n
    from stats.clusters import cluster_sums as cluster_sums
    from stats.clusters import clustered_p as clustered_p
    from stats.clusters import clustered_se as clustered_se
    from stats.clusters import design_effect as design_effect
    from stats.clusters import effective_clusters as effective_clusters
    from stats.clusters import robust_design_effect as robust_design_effect
    from stats.completion_gap import clopper_pearson_gap as clopper_pearson_gap
    from stats.completion_gap import completion_interval as completion_interval
    from stats.confidence import gap_interval as gap_interval
    from stats.curtailed import curtailed_leader_log_p as curtailed_leader_log_p
    from stats.curtailed import curtailed_log_p as curtailed_log_p
    from stats.curtailed import curtailed_may_decide as curtailed_may_decide
    from stats.curtailed import curtailed_side as curtailed_side
    from stats.curtailed import items_to_curtailed_decision as items_to_curtailed_decision
    from stats.curtailed import missing_tolerated as missing_tolerated
    from stats.eprocess import anytime_inflation as anytime_inflation
    from stats.eprocess import anytime_required_n as anytime_required_n
    from stats.eprocess import boundary_u as boundary_u
    from stats.eprocess import log_completion_bound as log_completion_bound
    from stats.eprocess import log_e_halves as log_e_halves
    from stats.eprocess import log_e_value as log_e_value
    from stats.eprocess import log_leader_bound as log_leader_bound
    from stats.evidence import PairEvidence as PairEvidence
    from stats.evidence import pair_evidence as pair_evidence
    from stats.families import benjamini_hochberg as benjamini_hochberg
    from stats.families import benjamini_yekutieli as benjamini_yekutieli
    from stats.families import bonferroni as bonferroni
    from stats.families import capacity_alpha as capacity_alpha
    from stats.families import closed_averaging as closed_averaging
    from stats.families import e_bh as e_bh
    from stats.families import e_bonferroni as e_bonferroni
    from stats.families import e_holm as e_holm
    from stats.families import e_lond as e_lond
    from stats.families import holm as holm
    from stats.families import sidak as sidak
    from stats.families import spending_alpha as spending_alpha
    from stats.forecast import anytime_decision_probability as anytime_decision_probability
    from stats.forecast import completion_decision_probability as completion_decision_probability
    from stats.goal_plan import GoalPlan as GoalPlan
    from stats.goal_plan import GoalSimulation as GoalSimulation
    from stats.goal_plan import MadeBoards as MadeBoards
    from stats.goal_plan import PilotBoards as PilotBoards
    from stats.goals import GoalState as GoalState
    from stats.goals import goal_state as goal_state
    from stats.goals import pair_goal as pair_goal
    from stats.goals import rank_goal as rank_goal
    from stats.goals import ranking_goal as ranking_goal
    from stats.goals import top_goal as top_goal
    from stats.graded import graded_log_e as graded_log_e
    from stats.graded import graded_log_e_halves as graded_log_e_halves
    from stats.graded import histogram_capital as histogram_capital
    from stats.graded import initial_capital as initial_capital
    from stats.graded import log_increments as log_increments
    from stats.graded import update_capital as update_capital
    from stats.graded_interval import graded_completion_interval as graded_completion_interval
    from stats.growth import expected_items_to_decision as expected_items_to_decision
    from stats.growth import items_to_decision as items_to_decision
    from stats.margin import excess_log_e as excess_log_e
    from stats.margin import excess_low as excess_low
    from stats.margin import excess_low_anytime as excess_low_anytime
    from stats.margin import excess_p as excess_p
    from stats.margin import excess_required_n as excess_required_n
    from stats.margin import graded_excess_log_e as graded_excess_log_e
    from stats.margin import graded_excess_low as graded_excess_low
    from stats.margin import items_to_excess as items_to_excess
    from stats.mcnemar import chi2_p as chi2_p
    from stats.mcnemar import corrected_p as corrected_p
    from stats.mcnemar import exact_p as exact_p
    from stats.mcnemar import mid_p as mid_p
    from stats.means import mean_interval as mean_interval
    from stats.mixtures import Mixture as Mixture
    from stats.mixtures import parse_mixture as parse_mixture
    from stats.noise import NoiseSplit as NoiseSplit
    from stats.noise import noise_split as noise_split
    from stats.noise import rerun_p as rerun_p
    from stats.order import OrderFinding as OrderFinding
    from stats.order import OrderState as OrderState
    from stats.order import arrival_correlation as arrival_correlation
    from stats.order import committed_order as committed_order
    from stats.order import item_places as item_places
    from stats.order import order_diagnostic as order_diagnostic
    from stats.order import order_test as order_test
    from stats.order import permutation_key as permutation_key
    from stats.order import rank_correlation_p as rank_correlation_p
    from stats.order import succession_p as succession_p
    from stats.paired import correlation as correlation
    from stats.paired import difference_variance as difference_variance
    from stats.paired import hoeffding_bounds as hoeffding_bounds
    from stats.paired import moments as moments
    from stats.paired import moments_from_sums as moments_from_sums
    from stats.paired import phi_correlation as phi_correlation
    from stats.paper import parametric_required_n_paired as parametric_required_n_paired
    from stats.paper import parametric_required_n_paired_binary as parametric_required_n_paired_binary
    from stats.paper import parametric_required_n_proportions as parametric_required_n_proportions
    from stats.paper import required_n_mcnemar as required_n_mcnemar
    from stats.pilot import PilotEffect as PilotEffect
    from stats.power import exact_power as exact_power
    from stats.power import items_for_power as items_for_power
    from stats.power import leader_power as leader_power
    from stats.power import wald_power as wald_power
    from stats.racing import RaceResult as RaceResult
    from stats.racing import RaceRules as RaceRules
    from stats.racing import race_goal as race_goal
    from stats.racing import run_race as run_race
    from stats.ranks import rank_intervals as rank_intervals
    from stats.ranks import tie_groups as tie_groups
    from stats.resolution import inflation as inflation
    from stats.resolution import mde as mde
    from stats.resolution import required_n as required_n
    from stats.resolution import required_n_paired as required_n_paired
    from stats.resolution import resolution_ratio as resolution_ratio
    from stats.resolution import rho_sensitivity as rho_sensitivity
    from stats.sequences import EmpiricalBernstein as EmpiricalBernstein
    from stats.sequences import asymptotic_interval as asymptotic_interval
    from stats.sequences import empirical_bernstein as empirical_bernstein
    from stats.sequences import hedged_betting as hedged_betting
    from stats.settled import SettledState as SettledState
    from stats.settled import SettledSteps as SettledSteps
    from stats.settled import certain_side as certain_side
    from stats.settled import settled_log_e as settled_log_e
    from stats.settled import settled_path as settled_path
    from stats.settled import settled_start as settled_start
    from stats.settled import settled_steps as settled_steps
    from stats.shortcut import Calculator as Calculator
    from stats.shortcut import admissible_delta as admissible_delta
    from stats.shortcut import calculator_table as calculator_table
    from stats.shortcut import cohens_h as cohens_h
    from stats.shortcut import shortcut_constant as shortcut_constant
    from stats.shortcut import shortcut_n as shortcut_n
    from stats.shortcut import unpaired_required_n as unpaired_required_n
    from stats.simulate import bernoulli_joint as bernoulli_joint
    from stats.simulate import equal_models as equal_models
    from stats.simulate import graded_beta as graded_beta
    from stats.simulate import latent_gaussian as latent_gaussian
    from stats.simulate import latent_joint as latent_joint
    from stats.simulate import paired_bernoulli as paired_bernoulli
    from stats.simultaneous import SimultaneousIntervals as SimultaneousIntervals
    from stats.simultaneous import max_t_intervals as max_t_intervals
    from stats.stepwise import Decisions as Decisions
    from stats.stepwise import StepDown as StepDown
    from stats.stepwise import family_weights as family_weights
    from stats.stepwise import step_down as step_down
    from stats.stepwise import step_down_events as step_down_events
    from stats.stepwise import step_thresholds as step_thresholds
    from stats.stopping import AnytimeLaw as AnytimeLaw
    from stats.stopping import CompletionLaw as CompletionLaw
    from stats.tango import score_interval as score_interval
    from stats.tango import score_z as score_z
    from stats.transitivity import partition_bound as partition_bound
    from stats.transitivity import transitive_step_down as transitive_step_down
    from stats.ttest import paired_t as paired_t
    from stats.ttest import paired_t_from_moments as paired_t_from_moments
    from stats.weighted import Stratified as Stratified
    from stats.weighted import bet_scales as bet_scales
    from stats.weighted import stratified_moments as stratified_moments
    from stats.weighted import stratified_p as stratified_p
    from stats.weighted import weighted_mean_interval as weighted_mean_interval

_EXPORTS = {
    "bootstrap": ("BootstrapInterval", "bootstrap_power", "paired_bootstrap_delta", "required_n_interval"),
    "agreement": ("Agreement", "agreement"),
    "bradley_terry": ("BradleyTerry", "Groups", "bradley_terry", "groups_of"),
    "cluster_eprocess": ("cluster_e_max", "cluster_e_process", "clusters_needed"),
    "cluster_design": ("cluster_power", "cluster_size_for_power", "clusters_for_power"),
    "cluster_sensitivity": (
        "CategoryBootstrap",
        "LeaveOneOut",
        "category_bootstrap",
        "difficulty_clusters",
        "leave_one_out",
        "random_clusters",
        "split_halves",
    ),
    "clusters": (
        "cluster_icc",
        "cluster_required_n",
        "cluster_sums",
        "clustered_p",
        "clustered_se",
        "design_effect",
        "effective_clusters",
        "robust_design_effect",
    ),
    "completion_gap": (
        "clopper_pearson_gap",
        "completion_interval",
    ),
    "confidence": ("gap_interval",),
    "curtailed": (
        "curtailed_leader_log_p",
        "curtailed_log_p",
        "curtailed_may_decide",
        "curtailed_side",
        "items_to_curtailed_decision",
        "missing_tolerated",
    ),
    "eprocess": (
        "anytime_inflation",
        "anytime_required_n",
        "boundary_u",
        "log_completion_bound",
        "log_leader_bound",
        "log_e_halves",
        "log_e_value",
    ),
    "families": (
        "benjamini_hochberg",
        "benjamini_yekutieli",
        "bonferroni",
        "capacity_alpha",
        "closed_averaging",
        "e_bh",
        "e_bonferroni",
        "e_holm",
        "e_lond",
        "holm",
        "sidak",
        "spending_alpha",
    ),
    "forecast": ("anytime_decision_probability", "completion_decision_probability"),
    "graded": (
        "graded_log_e",
        "graded_log_e_halves",
        "histogram_capital",
        "initial_capital",
        "log_increments",
        "update_capital",
    ),
    "evidence": ("PairEvidence", "pair_evidence"),
    "graded_interval": ("graded_completion_interval",),
    "growth": ("expected_items_to_decision", "items_to_decision"),
    "margin": (
        "excess_log_e",
        "excess_low",
        "excess_low_anytime",
        "excess_p",
        "excess_required_n",
        "graded_excess_log_e",
        "graded_excess_low",
        "items_to_excess",
    ),
    "mcnemar": ("chi2_p", "corrected_p", "exact_p", "mid_p"),
    "means": ("mean_interval",),
    "mixtures": ("Mixture", "parse_mixture"),
    "noise": ("NoiseSplit", "noise_split", "rerun_p"),
    "order": (
        "OrderFinding",
        "OrderState",
        "arrival_correlation",
        "committed_order",
        "item_places",
        "order_diagnostic",
        "order_test",
        "permutation_key",
        "rank_correlation_p",
        "succession_p",
    ),
    "paired": (
        "correlation",
        "difference_variance",
        "hoeffding_bounds",
        "moments",
        "moments_from_sums",
        "phi_correlation",
    ),
    "paper": (
        "parametric_required_n_paired",
        "parametric_required_n_paired_binary",
        "parametric_required_n_proportions",
        "required_n_mcnemar",
    ),
    "pilot": ("PilotEffect",),
    "power": ("exact_power", "items_for_power", "leader_power", "wald_power"),
    "goal_plan": ("GoalPlan", "GoalSimulation", "MadeBoards", "PilotBoards"),
    "goals": ("GoalState", "goal_state", "pair_goal", "rank_goal", "ranking_goal", "top_goal"),
    "racing": ("RaceResult", "RaceRules", "race_goal", "run_race"),
    "ranks": ("rank_intervals", "tie_groups"),
    "resolution": (
        "inflation",
        "mde",
        "required_n",
        "required_n_paired",
        "resolution_ratio",
        "rho_sensitivity",
    ),
    "sequences": ("EmpiricalBernstein", "asymptotic_interval", "empirical_bernstein", "hedged_betting"),
    "settled": (
        "SettledState",
        "SettledSteps",
        "certain_side",
        "settled_log_e",
        "settled_path",
        "settled_start",
        "settled_steps",
    ),
    "shortcut": (
        "Calculator",
        "admissible_delta",
        "calculator_table",
        "cohens_h",
        "shortcut_constant",
        "shortcut_n",
        "unpaired_required_n",
    ),
    "simulate": (
        "bernoulli_joint",
        "equal_models",
        "graded_beta",
        "latent_gaussian",
        "latent_joint",
        "paired_bernoulli",
    ),
    "simultaneous": ("SimultaneousIntervals", "max_t_intervals"),
    "stepwise": (
        "Decisions",
        "StepDown",
        "family_weights",
        "step_down",
        "step_down_events",
        "step_thresholds",
    ),
    "stopping": ("AnytimeLaw", "CompletionLaw"),
    "tango": (
        "score_interval",
        "score_z",
    ),
    "transitivity": (
        "partition_bound",
        "transitive_step_down",
    ),
    "ttest": ("paired_t", "paired_t_from_moments"),
    "weighted": ("Stratified", "bet_scales", "stratified_moments", "stratified_p", "weighted_mean_interval"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'stats' has no attribute {name!r}")
    value: object = getattr(import_module(f"stats.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
