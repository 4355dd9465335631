"""Reports made by hand, for the tests of the surfaces."""

from schemas.results.report import (
    BenchmarkReport,
    Decided,
    FamilyReport,
    ModelReport,
    OrderReport,
    PairReport,
    RepeatsReport,
    Report,
    Resolved,
    ResultLine,
    ResultReport,
    Summary,
)


def without(answer, *fields):
    """Return an answer as a dictionary that lacks some fields."""
    return {name: value for name, value in answer.as_dict().items() if name not in fields}


UNDECIDED = dict.fromkeys(Decided.__struct_fields__)


def pair(a="alpha", b="beta", *, wins=1680, losses=1454, n=12032, decided=None, resolved=None, **fields):
    values = {
        "model_a": a,
        "model_b": b,
        "epoch_a": 0,
        "epoch_b": 0,
        "adjacent": True,
        "n": n,
        "b": wins,
        "c": losses,
        "gap": (wins - losses) / n,
        "p_a": 0.6341,
        "p_b": 0.6153,
        "rho": 0.45,
        "sd": 0.51,
        "p_chi2": 5.4e-5,
        "p_exact": 5.8e-5,
        "p_mid": 5.6e-5,
        "p_clustered": None,
        "required_n": 5786.9,
        "resolution_ratio": 2.079,
        "mde": 0.013,
        "log_e": 4.3537,
        "log_e_a": 5.0,
        "log_e_b": -9.0,
        "p_anytime": 0.0129,
        "family_threshold": 0.01,
        "settled": "a",
        "settled_log_e": None,
        "gap_low": 0.001637,
        "gap_high": 0.035946,
        "gap_family_low": -0.0012,
        "gap_family_high": 0.038,
        "status": "collecting",
        "reason": "the interval rules out a lead of more than 3.59 pp",
        "decided_at_n": None,
        "items_to_decision": 800.0,
        "needs_items": 14000.0,
        "decision_probability": None,
        "decided": Decided(**{**UNDECIDED, **(decided or {})}),
        "resolved": Resolved(
            **{"fixed_n": True, "bonferroni": True, "anytime": False, "clustered": None, **(resolved or {})}
        ),
        "cluster": None,
    }
    return PairReport(**{**values, **fields})


def model(name="alpha", rank=1, **fields):
    values = {
        "model": name,
        "title": None,
        "aliases": [],
        "epoch": 0,
        "items": 12032,
        "coverage": 1.0,
        "mean": 0.7303,
        "mean_low": 0.7214,
        "mean_high": 0.7391,
        "shared_mean": None,
        "shared_rank": None,
        "unweighted_mean": None,
        "unweighted_rank": None,
        "rank": rank,
        "rank_low": 1,
        "rank_high": 2,
        "tie_group": 1,
        "repeats": RepeatsReport(min=1, mean=1.0, max=1),
        "run_ended": True,
    }
    return ModelReport(**{**values, **fields})


def benchmark(pairs=None, models=None, **fields):
    pairs = [pair()] if pairs is None else pairs
    values = {
        "benchmark": "mmlu-pro",
        "items": 12032,
        "declared_items": None,
        "events": 24064,
        "duplicates": 0,
        "conflicts": 0,
        "filled": 0,
        "conflicts_by_model": {},
        "duplicates_by_model": {},
        "epochs": [0],
        "unranked": 0,
        "incomplete": None,
        "partial": None,
        "board": None,
        "rejected": 0,
        "order": OrderReport(policy="trusted", suspect=False, reason=None),
        "alpha": 0.05,
        "looks": "several",
        "power": 0.8,
        "mixture": "beta(1,1)",
        "family": FamilyReport(policy="capacity", size=9),
        "family_outside": 0,
        "family_assumption": None,
        "assumptions": [{"code": "trusted"}],
        "assumption": "neither the arrival order nor what is skipped depends on outcomes or clusters",
        "models": [model("alpha", 1), model("beta", 2)] if models is None else models,
        "shared_items": None,
        "clusters": None,
        "weights": None,
        "suite": None,
        "result": ResultReport(
            best=ResultLine(yes=False, text="First place is open: any of the 2 models may hold it."),
            steps=ResultLine(yes=True, text="1 of 2 steps of the ranking is real, 1 is open."),
            change=ResultLine(
                yes=False,
                text="Closest tie: ranks 1 and 2 need about 14,000 items; there are 12,032.",
            ),
            settled=ResultLine(
                yes=False, text="alpha leads on the items scored; only beta may still pass it on all 12,032 items."
            ),
            decided=ResultLine(yes=True, text="1 of 2 pairs of neighbours in rank, 1 undecided so far."),
            resolved=ResultLine(
                yes=False, text="Enough items for none of 2 gaps between neighbours in a planned test."
            ),
        ),
        "goal": None,
        "battles": None,
        "summary": Summary(
            pairs=len(pairs),
            undecided={
                key: sum(getattr(p.decided, key) is None for p in pairs)
                for key in Decided.__struct_fields__
                if key != "clustered"
            },
            unresolved={
                key: sum(not getattr(p.resolved, key) for p in pairs) for key in ("fixed_n", "bonferroni", "anytime")
            },
        ),
        "pairs": pairs,
    }
    return BenchmarkReport(**{**values, **fields})


def report(*benchmarks):
    return Report(benchmarks=list(benchmarks) or [benchmark()])
