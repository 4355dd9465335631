"""The statistics of paired evaluation, as pure functions over arrays of pairs.

Arguments are numbers or arrays that broadcast, pairs on the leading axis; results are float64 arrays of the broadcast
shape unless a function documents another. The names have one meaning everywhere:

``n``, ``b``, ``c``
    counts of items: shared by the pair, right in A only, right in B only (b + c <= n).
``gap``, ``sd``, ``p_a``, ``p_b``, ``rho``
    mean and standard deviation of D = x_A - x_B, accuracies, and correlation of the scores; scores lie in [0, 1].
``alpha``, ``power``
    two-sided level, of a test, an interval (1 - confidence) or a family, and power; in (0, 1).
``m``
    a number of hypotheses, or of discordant items b + c; ``p``: p-values of a family, a vector.
``log_e``, thresholds
    natural logarithms, in nats; a pair is decided at ln(1/alpha).
``mixture``
    a name that `parse_mixture` accepts, or a `Mixture`.

Input that is NaN, infinite, not numeric, out of range, contradictory or of shapes that do not fit is a ValueError that names the
argument and the rule; limits (no items, no gap, no discordant item) have documented values and warn of nothing.

Every name is imported when first used, so that ``import stats.evidence.eprocess`` loads only its own needs.
"""

import ast
import sys
from functools import cache
from importlib import import_module
from inspect import getsource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stats.admission.newcomer import Admission as Admission
    from stats.admission.newcomer import thousandths as thousandths
    from stats.battles.agreement import Agreement as Agreement
    from stats.battles.agreement import agreement as agreement
    from stats.battles.bradley_terry import BradleyTerry as BradleyTerry
    from stats.battles.bradley_terry import Groups as Groups
    from stats.battles.bradley_terry import bradley_terry as bradley_terry
    from stats.battles.bradley_terry import groups_of as groups_of
    from stats.clusters.design import cluster_power as cluster_power
    from stats.clusters.design import cluster_size_for_power as cluster_size_for_power
    from stats.clusters.design import clusters_for_power as clusters_for_power
    from stats.clusters.eprocess import cluster_e_process as cluster_e_process
    from stats.clusters.eprocess import clusters_needed as clusters_needed
    from stats.clusters.noise import NoiseSplit as NoiseSplit
    from stats.clusters.noise import noise_split as noise_split
    from stats.clusters.noise import rerun_p as rerun_p
    from stats.clusters.robust import cluster_icc as cluster_icc
    from stats.clusters.robust import cluster_required_n as cluster_required_n
    from stats.clusters.robust import cluster_sums as cluster_sums
    from stats.clusters.robust import clustered_p as clustered_p
    from stats.clusters.robust import clustered_se as clustered_se
    from stats.clusters.robust import design_effect as design_effect
    from stats.clusters.robust import effective_clusters as effective_clusters
    from stats.clusters.robust import robust_design_effect as robust_design_effect
    from stats.clusters.sensitivity import CategoryBootstrap as CategoryBootstrap
    from stats.clusters.sensitivity import LeaveOneOut as LeaveOneOut
    from stats.clusters.sensitivity import category_bootstrap as category_bootstrap
    from stats.clusters.sensitivity import difficulty_clusters as difficulty_clusters
    from stats.clusters.sensitivity import leave_one_out as leave_one_out
    from stats.clusters.sensitivity import random_clusters as random_clusters
    from stats.clusters.sensitivity import split_halves as split_halves
    from stats.clusters.weighted import Stratified as Stratified
    from stats.clusters.weighted import bet_scales as bet_scales
    from stats.clusters.weighted import stratified_moments as stratified_moments
    from stats.clusters.weighted import stratified_p as stratified_p
    from stats.clusters.weighted import weighted_mean_interval as weighted_mean_interval
    from stats.evidence.curtailed import curtailed_leader_log_p as curtailed_leader_log_p
    from stats.evidence.curtailed import curtailed_log_p as curtailed_log_p
    from stats.evidence.curtailed import curtailed_may_decide as curtailed_may_decide
    from stats.evidence.curtailed import curtailed_side as curtailed_side
    from stats.evidence.curtailed import items_to_curtailed_decision as items_to_curtailed_decision
    from stats.evidence.curtailed import items_to_exact_decision as items_to_exact_decision
    from stats.evidence.curtailed import missing_tolerated as missing_tolerated
    from stats.evidence.eprocess import anytime_inflation as anytime_inflation
    from stats.evidence.eprocess import anytime_required_n as anytime_required_n
    from stats.evidence.eprocess import boundary_u as boundary_u
    from stats.evidence.eprocess import log_completion_bound as log_completion_bound
    from stats.evidence.eprocess import log_e_halves as log_e_halves
    from stats.evidence.eprocess import log_e_value as log_e_value
    from stats.evidence.eprocess import log_leader_bound as log_leader_bound
    from stats.evidence.graded import graded_log_e as graded_log_e
    from stats.evidence.graded import graded_log_e_halves as graded_log_e_halves
    from stats.evidence.graded import histogram_capital as histogram_capital
    from stats.evidence.graded import initial_capital as initial_capital
    from stats.evidence.graded import log_increments as log_increments
    from stats.evidence.graded import update_capital as update_capital
    from stats.evidence.growth import expected_items_to_decision as expected_items_to_decision
    from stats.evidence.growth import items_to_decision as items_to_decision
    from stats.evidence.labels import LabelledGap as LabelledGap
    from stats.evidence.labels import labelled_gap as labelled_gap
    from stats.evidence.labels import labelled_log_e as labelled_log_e
    from stats.evidence.labels import labelled_settled_log_e as labelled_settled_log_e
    from stats.evidence.margin import excess_log_e as excess_log_e
    from stats.evidence.margin import excess_low_anytime as excess_low_anytime
    from stats.evidence.margin import excess_p as excess_p
    from stats.evidence.margin import excess_required_n as excess_required_n
    from stats.evidence.margin import graded_excess_log_e as graded_excess_log_e
    from stats.evidence.margin import graded_excess_low as graded_excess_low
    from stats.evidence.margin import items_to_excess as items_to_excess
    from stats.evidence.pair import PairEvidence as PairEvidence
    from stats.evidence.pair import pair_evidence as pair_evidence
    from stats.evidence.settled import SettledState as SettledState
    from stats.evidence.settled import SettledSteps as SettledSteps
    from stats.evidence.settled import settled_log_e as settled_log_e
    from stats.evidence.settled import settled_start as settled_start
    from stats.evidence.settled import settled_steps as settled_steps
    from stats.families.error_control import StepDown as StepDown
    from stats.families.error_control import benjamini_hochberg as benjamini_hochberg
    from stats.families.error_control import benjamini_yekutieli as benjamini_yekutieli
    from stats.families.error_control import bonferroni as bonferroni
    from stats.families.error_control import capacity_alpha as capacity_alpha
    from stats.families.error_control import closed_averaging as closed_averaging
    from stats.families.error_control import e_bh as e_bh
    from stats.families.error_control import e_bonferroni as e_bonferroni
    from stats.families.error_control import e_holm as e_holm
    from stats.families.error_control import e_lond as e_lond
    from stats.families.error_control import family_weights as family_weights
    from stats.families.error_control import holm as holm
    from stats.families.error_control import sidak as sidak
    from stats.families.error_control import spending_alpha as spending_alpha
    from stats.families.error_control import step_down as step_down
    from stats.families.error_control import step_thresholds as step_thresholds
    from stats.families.ranks import rank_intervals as rank_intervals
    from stats.families.ranks import tie_groups as tie_groups
    from stats.fixed_n.bootstrap import BootstrapInterval as BootstrapInterval
    from stats.fixed_n.bootstrap import bootstrap_power as bootstrap_power
    from stats.fixed_n.bootstrap import paired_bootstrap_delta as paired_bootstrap_delta
    from stats.fixed_n.bootstrap import required_n_interval as required_n_interval
    from stats.fixed_n.mcnemar import chi2_p as chi2_p
    from stats.fixed_n.mcnemar import corrected_p as corrected_p
    from stats.fixed_n.mcnemar import exact_p as exact_p
    from stats.fixed_n.mcnemar import mid_p as mid_p
    from stats.fixed_n.means import mean_interval as mean_interval
    from stats.fixed_n.power import exact_power as exact_power
    from stats.fixed_n.power import items_for_power as items_for_power
    from stats.fixed_n.power import leader_power as leader_power
    from stats.fixed_n.power import wald_power as wald_power
    from stats.fixed_n.resolution import correlation as correlation
    from stats.fixed_n.resolution import difference_variance as difference_variance
    from stats.fixed_n.resolution import hoeffding_bounds as hoeffding_bounds
    from stats.fixed_n.resolution import inflation as inflation
    from stats.fixed_n.resolution import mde as mde
    from stats.fixed_n.resolution import moments as moments
    from stats.fixed_n.resolution import moments_from_sums as moments_from_sums
    from stats.fixed_n.resolution import phi_correlation as phi_correlation
    from stats.fixed_n.resolution import required_n as required_n
    from stats.fixed_n.resolution import required_n_paired as required_n_paired
    from stats.fixed_n.resolution import resolution_ratio as resolution_ratio
    from stats.fixed_n.resolution import rho_sensitivity as rho_sensitivity
    from stats.fixed_n.shortcut import Calculator as Calculator
    from stats.fixed_n.shortcut import admissible_delta as admissible_delta
    from stats.fixed_n.shortcut import calculator_table as calculator_table
    from stats.fixed_n.shortcut import cohens_h as cohens_h
    from stats.fixed_n.shortcut import shortcut_constant as shortcut_constant
    from stats.fixed_n.shortcut import shortcut_n as shortcut_n
    from stats.fixed_n.shortcut import unpaired_required_n as unpaired_required_n
    from stats.fixed_n.simultaneous import SimultaneousIntervals as SimultaneousIntervals
    from stats.fixed_n.simultaneous import max_t_intervals as max_t_intervals
    from stats.fixed_n.tango import score_interval as score_interval
    from stats.fixed_n.tango import score_z as score_z
    from stats.fixed_n.ttest import paired_t as paired_t
    from stats.fixed_n.ttest import paired_t_from_moments as paired_t_from_moments
    from stats.fixed_n.verified import TopSet as TopSet
    from stats.fixed_n.verified import top_set as top_set
    from stats.gates.attainable import GateRates as GateRates
    from stats.gates.attainable import best_items as best_items
    from stats.gates.attainable import equal_items as equal_items
    from stats.gates.attainable import gate_rates as gate_rates
    from stats.gates.attainable import least_discordant as least_discordant
    from stats.gates.attainable import mean_rates as mean_rates
    from stats.gates.attainable import passes as passes
    from stats.gates.cases import below_p as below_p
    from stats.gates.cases import case_bounds as case_bounds
    from stats.gates.cases import lost_p as lost_p
    from stats.gates.cases import pass_k as pass_k
    from stats.gates.cases import repeats_for_floor as repeats_for_floor
    from stats.gates.curtail import certain as certain
    from stats.gates.curtail import items_until_certain as items_until_certain
    from stats.gates.curtail import old_right_first as old_right_first
    from stats.gates.flips import answers_for_flip as answers_for_flip
    from stats.gates.flips import case_variances as case_variances
    from stats.gates.flips import flip as flip
    from stats.intervals.completion_gap import clopper_pearson_gap as clopper_pearson_gap
    from stats.intervals.completion_gap import completion_interval as completion_interval
    from stats.intervals.completion_gap import excess_low as excess_low
    from stats.intervals.confidence import gap_interval as gap_interval
    from stats.intervals.sequences import EmpiricalBernstein as EmpiricalBernstein
    from stats.intervals.sequences import asymptotic_interval as asymptotic_interval
    from stats.intervals.sequences import empirical_bernstein as empirical_bernstein
    from stats.intervals.sequences import hedged_betting as hedged_betting
    from stats.numerics.mixtures import Mixture as Mixture
    from stats.numerics.mixtures import parse_mixture as parse_mixture
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
    from stats.paper import parametric_required_n_paired as parametric_required_n_paired
    from stats.paper import parametric_required_n_paired_binary as parametric_required_n_paired_binary
    from stats.paper import parametric_required_n_proportions as parametric_required_n_proportions
    from stats.paper import required_n_mcnemar as required_n_mcnemar
    from stats.planning.forecast import anytime_decision_probability as anytime_decision_probability
    from stats.planning.forecast import completion_decision_probability as completion_decision_probability
    from stats.planning.goal_plan import GoalPlan as GoalPlan
    from stats.planning.goal_plan import GoalSimulation as GoalSimulation
    from stats.planning.goal_plan import MadeBoards as MadeBoards
    from stats.planning.goal_plan import PilotBoards as PilotBoards
    from stats.planning.goals import GoalState as GoalState
    from stats.planning.goals import goal_state as goal_state
    from stats.planning.goals import pair_goal as pair_goal
    from stats.planning.goals import rank_goal as rank_goal
    from stats.planning.goals import ranking_goal as ranking_goal
    from stats.planning.goals import top_goal as top_goal
    from stats.planning.label_plan import LabelPlan as LabelPlan
    from stats.planning.label_plan import plan_labels as plan_labels
    from stats.planning.pilot import PilotEffect as PilotEffect
    from stats.planning.racing import RaceResult as RaceResult
    from stats.planning.racing import RaceRules as RaceRules
    from stats.planning.racing import race_goal as race_goal
    from stats.planning.racing import run_race as run_race
    from stats.planning.simulate import bernoulli_joint as bernoulli_joint
    from stats.planning.simulate import equal_models as equal_models
    from stats.planning.simulate import graded_beta as graded_beta
    from stats.planning.simulate import latent_gaussian as latent_gaussian
    from stats.planning.simulate import latent_joint as latent_joint
    from stats.planning.simulate import paired_bernoulli as paired_bernoulli
    from stats.planning.stopping import AnytimeLaw as AnytimeLaw
    from stats.planning.stopping import CompletionLaw as CompletionLaw


@cache
def _module_of() -> dict[str, str]:
    """Return the module of each name: of the imports above, which only a type checker runs."""
    imports = (
        node for node in ast.walk(ast.parse(getsource(sys.modules[__name__]))) if isinstance(node, ast.ImportFrom)
    )
    return {each.name: str(node.module) for node in imports for each in node.names if each.name == each.asname}


def __getattr__(name: str) -> object:
    if name.startswith("_") or name not in _module_of():
        raise AttributeError(f"module 'stats' has no attribute {name!r}")
    value: object = getattr(import_module(_module_of()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_module_of())
