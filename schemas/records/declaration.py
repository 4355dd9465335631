"""The declaration of a benchmark: what its verdicts rest on. A sentinel, which is watched for drift, declares more."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    model_serializer,
    model_validator,
)

from schemas.records.drift import DriftSettings
from schemas.records.goals import LEAST_MARGIN, checked_goal
from schemas.records.names import MAX_INDEX, MAX_NAME_LENGTH, Name, Part
from schemas.records.text import shorten


class DriftSpec(BaseModel):
    """How a sentinel is watched: the rate of false alarms, and what holds while nothing changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    runs_per_year: Annotated[float, Field(ge=1, le=1_000_000, allow_inf_nan=False)] = 365
    years: Annotated[float, Field(ge=0.01, le=1000, allow_inf_nan=False)] = Field(
        5, description="years of runs in which one false alarm is expected"
    )
    monitors: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        1, description="monitors that share that false alarm; with 1, each has its own"
    )
    ever: Annotated[float, Field(ge=1e-9, le=0.5)] | None = Field(
        None, description="chance of any false alarm, ever, in a history; replaces years"
    )
    direction: Literal["worse", "both"] = "worse"
    assume: Literal["exchangeable-runs", "independent-items"] = "exchangeable-runs"
    strata: Literal["weekday"] | None = Field(None, description="weekday: a run is ranked among those of its weekday")
    missing: Literal["ignore", "fail"] = "ignore"
    min_coverage: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="least share of the items in a run that is ranked"
    )
    judge: Name | None = Field(
        None, description="the judge of frozen answers (role: anchor): they are in every run, and it has a monitor"
    )
    anchors: Annotated[StrictInt, Field(ge=1, le=10**9)] | None = Field(
        None, description="frozen answers of a whole run"
    )
    seed: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="splits ties between runs; null: follows from the declaration"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.anchors is not None and self.judge is None:
            raise ValueError("anchors are judged again in every run; declare their judge too")
        if self.monitors > 1 and self.monitors < self.settings(None).per_model:
            raise ValueError("monitors are too few: a model with frozen answers has two; declare at least 2")
        return self

    def settings(self, items: int | None) -> DriftSettings:
        """Return what the monitors go by."""
        return DriftSettings(
            years=self.years,
            runs_a_year=self.runs_per_year,
            monitors=self.monitors,
            both=self.direction == "both",
            ever=self.ever,
            assume=self.assume,
            strata=self.strata,
            missing=self.missing,
            min_coverage=self.min_coverage,
            items=items,
            seed=self.seed,
            judge=self.judge,
            anchors=self.anchors,
        )


MAX_GOAL_LENGTH: Final = 3 * MAX_NAME_LENGTH  # longest goal: it may name two models


_MIXTURES: Final = "mixture of the e-values: beta(a,b), two_point(a,b) or grid98"
_FAMILIES: Final = "how pairs share alpha: a policy, models whose pairs have equal shares, or a list of such pairs"
_ORDERS: Final = "order policy: none, completion, committed with a seed, or trusted"


MAX_GRADED_ITEMS = 2**21 - 1
"""Most items of a benchmark with graded scores, repeats, units or weights: their bets are summed in 63-bit integers."""


_PARAMETER = r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*"
_MIXTURE = re.compile(rf"(beta|two_point)\({_PARAMETER},{_PARAMETER}\)")
_LARGEST_BETA = 1e8  # beyond it the evidence has no digits (`stats.numerics.mixtures`)


def _mixture(value: object) -> object:
    if not isinstance(value, str) or value == "grid98":
        return value
    match = _MIXTURE.fullmatch(value)
    if match is None:
        raise ValueError(f"the mixture {value!r} is unknown; use beta(a,b), grid98 or two_point(a,b)")
    first, second = float(match[2]), float(match[3])
    if match[1] == "beta" and not (0 < first <= _LARGEST_BETA and 0 < second <= _LARGEST_BETA):
        raise ValueError(f"the mixture {value!r} is out of range; use beta(a,b) with a and b above 0, and at most 1e8")
    if match[1] == "two_point" and not 0 < first < 1 / 2 < second < 1:
        raise ValueError(
            f"the mixture {value!r} is out of range; use two_point(a,b) with a from 0 to 0.5 and b from 0.5 to 1, without these"
        )
    return value


ANCHOR: Final = "anchor"
"""Role of an answer that was frozen before the first run of a sentinel, and is judged again in every run."""


class FamilySpec(BaseModel):
    """The family of hypotheses over which `anytime_family` controls the error rate."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    policy: Literal["spending", "capacity"] = Field(
        "spending", description="how pairs share alpha; capacity where models or pairs are declared and no policy is"
    )
    size: Annotated[StrictInt, Field(ge=1, le=10**9)] | None = Field(
        None, description="capacity: how many pairs share alpha"
    )
    pairs: tuple[tuple[Name, Name], ...] | None = Field(
        None,
        description="the pairs declared in advance (null: every pair of models): each has the same share of alpha, unless policy is "
        "spending",
    )
    models: tuple[Name, ...] | None = Field(
        None,
        description="the models declared in advance: each pair of them has the same share of alpha; implies capacity",
    )

    @model_serializer(mode="wrap")
    def _stored(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit `models` where none are declared, so that a family without them is stored as before; always name the policy of pairs."""
        fields: dict[str, Any] = serialize(self)
        if self.models is None:
            fields.pop("models", None)
        if self.pairs is not None and "pairs" in fields:
            fields["policy"] = self.policy
        return fields

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, data: Any) -> Any:  # noqa: ANN401 - any input
        """Fill in the policy `capacity` of declared models or pairs: a list is spent by arrival only if that is declared."""
        listed = isinstance(data, dict) and (data.get("models") is not None or data.get("pairs") is not None)
        if listed and data.get("policy") is None:
            return {**data, "policy": "capacity"}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.models is not None:
            self._check_models(self.models)
        elif self.policy == "capacity" and self.size is None and self.pairs is None:
            raise ValueError("family policy 'capacity' has no size; add models, size (the number of pairs) or pairs")
        if self.policy == "spending" and self.size is not None:
            raise ValueError("family policy 'spending' has a size; use capacity, or omit size")
        if self.pairs is not None:
            keys = {frozenset(pair) for pair in self.pairs}
            if any(len(key) == 1 for key in keys) or len(keys) != len(self.pairs):
                raise ValueError("family pairs repeat a pair or a model; use distinct pairs of two models")
            if self.size is not None and self.size < len(self.pairs):
                raise ValueError(
                    f"family size {self.size} is smaller than the {len(self.pairs)} pairs declared; use at least their number"
                )
        return self

    def _check_models(self, models: tuple[str, ...]) -> None:
        """Raise ValueError if the declared models are no family, or something else declares it too."""
        if self.policy != "capacity" or self.size is not None or self.pairs is not None:
            raise ValueError("family models declare the whole family; omit policy, size and pairs")
        if len(models) < 2:
            raise ValueError("a family of 1 model has no pair; list at least 2 models")
        twice = next((name for name, count in Counter(models).items() if count > 1), None)
        if twice is not None:
            raise ValueError(f"family models repeats {shorten(twice)}; list each model once")

    @property
    def capacity(self) -> int | None:
        """How many pairs share alpha equally; None under `spending`."""
        if self.models is not None:
            return len(self.models) * (len(self.models) - 1) // 2
        return None if self.policy == "spending" else self.size or len(self.pairs or ())

    @property
    def named(self) -> frozenset[str]:
        """The models of the declared list, or of the declared pairs."""
        return frozenset(self.models or ()) | {model for pair in self.pairs or () for model in pair}


def _seed(value: str) -> str:
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("the seed holds U+0000 or a lone surrogate; use other characters")
    return value


Seed = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_seed)]


class OrderSpec(BaseModel):
    """The order policy of a benchmark: when an anytime verdict may be given."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    policy: Literal["completion", "committed", "trusted", "none"] = "none"
    seed: Seed | None = Field(None, description="committed: the seed of the permutation")


def _bare_policy(value: object) -> object:
    return {"policy": value} if isinstance(value, str) else value


def _share(value: object) -> object:
    """Return a declared share of alpha; none for 0."""
    return None if value == 0 and not isinstance(value, bool) else value


DEFAULT_LOOK: Final = 0.2  # what commands declare with a committed order: a declaration without `look` has none

MAX_CLUSTERS: Final = 1_000  # most clusters of a benchmark with weights: the state has a count of each for every pair

Weights = (  # what each cluster counts
    Literal["equal-clusters"]
    | Annotated[dict[Name, Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]], Field(min_length=1)]
)


class Provenance(BaseModel):
    """What is known of scores that an export has written, and that the scores do not show."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    score_choice: StrictBool = Field(
        False, description="some item had several scores of a model: one of them was written"
    )
    begun_again: StrictBool = Field(False, description="the board was begun again after earlier scores")
    unread_items: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX)] = Field(
        0, description="how many more items the files had without a readable line"
    )
    not_whole: StrictBool = Field(
        False, description="files were refused or broke off, or do not hold the same items, so these are not all scores"
    )

    def __or__(self, other: "Provenance") -> "Provenance":
        """Return what is known of the scores of two exports together."""
        return Provenance.model_construct(**{name: max(value, getattr(other, name)) for name, value in self})


def _newcomer_alpha(value: float) -> float:
    if not 1e-6 <= value <= 1 / 2:
        raise ValueError(f"alpha {value:g} is out of range; use a number from 0.000001 to 0.5")
    return value


NewcomerAlpha = Annotated[float, AfterValidator(_newcomer_alpha)]
"""Probability, at most, that any statement about a newcomer is ever wrong."""


class Admitted(BaseModel):
    """What is committed for a newcomer before its first score: the board that is frozen, and the seed of its own order of the items."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    board: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(description="digest of the frozen board")
    models: dict[Name, tuple[StrictInt, StrictInt]] = Field(
        min_length=1, description="the models of that board, with the lowest and the highest total of each, in units"
    )
    seed: Seed
    seed_given: StrictBool = Field(description="whether a person chose the seed; else the server drew it")
    alpha: NewcomerAlpha
    at: AwareDatetime
    generation: Annotated[StrictInt, Field(ge=1, le=MAX_INDEX)] = Field(
        1, description="the generation of the board; in a later one the admission does not count"
    )


class Spec(BaseModel):
    """The declaration of a benchmark: everything that a latched verdict rests on. After the first score only a new version replaces it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    alpha: Annotated[float, Field(ge=1e-100, lt=0.5, description="level of the verdicts")] = 0.05
    power: Annotated[float, Field(gt=0.5, lt=1, description="power of N*, q and MDE")] = 0.8
    mixture: Annotated[str, BeforeValidator(_mixture), Field(max_length=60, description=_MIXTURES)] = "beta(1,1)"
    family: Annotated[FamilySpec, BeforeValidator(_bare_policy), Field(description=_FAMILIES)] = (
        FamilySpec.model_construct()
    )
    order: Annotated[OrderSpec, BeforeValidator(_bare_policy), Field(description=_ORDERS)] = OrderSpec.model_construct()
    items: Annotated[StrictInt, Field(ge=1, le=10**9)] | None = Field(
        None, description="how many items the complete benchmark has; implies the order policy completion"
    )
    item_ids: tuple[Name, ...] | None = Field(
        None, min_length=1, description="the items of the complete benchmark, in their published order; implies items"
    )
    scores: Literal["binary", "graded"] = Field(
        "binary", description="binary: scores are 0 or 1; graded: any number between; pairs bet accordingly"
    )
    repeats: Annotated[StrictInt, Field(ge=1, le=1000)] | Literal["all"] = Field(
        1,
        description="scored repeats of an item with which it bets, of any labels; all: every one that comes until the run ends",
    )
    units: Annotated[dict[Name, Name], Field(min_length=1)] | None = Field(
        None,
        description="the unit of each item that has one: the items of a unit, copies or paraphrases of each other, bet once, by their "
        "mean; items counts units then",
    )
    missing: Literal["worst", "ignorable"] = Field(
        "worst", description="items that a pair of ended runs lacks: counted against the leader, or ignored"
    )
    nulls: Literal["filled", "final"] = Field(
        "filled",
        description="a later score than a null of the same item fills it, or is a conflict, which does not count; under a committed "
        "order a null is always final",
    )
    weights: Weights | None = Field(
        None,
        description="what each cluster counts in the score of a model: equal-clusters, or a positive weight for each cluster (divided by "
        "their sum); null: every item counts the same",
    )
    clusters: Annotated[dict[Name, Annotated[StrictInt, Field(ge=1, le=10**9)]], Field(min_length=1)] | None = Field(
        None, description="weights: how many items of each cluster the complete benchmark has; implies items"
    )
    look: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, BeforeValidator(_share)] = Field(
        None,
        description="committed: the share of alpha that is kept for the exact test of all items, at the end of the order; 0 or null: all "
        "of alpha is for the bets",
    )
    known: StrictBool = Field(
        False,
        description="completion of 0/1 scores without repeats, units and weights: an item that one model lacks counts against the leader "
        "only where the score of the other one lets it; commands declare it for new benchmarks",
    )
    margin: Annotated[float, Field(ge=LEAST_MARGIN, lt=1)] | None = Field(
        None, description="equivalence margin in score units, from 0.000001: a gap whose interval is inside it is a tie"
    )
    goal: Annotated[str, BeforeValidator(checked_goal), Field(max_length=MAX_GOAL_LENGTH)] | None = Field(
        None,
        description="the question that the results are to answer: ranking, best, top:K, pair:A,B or model:M, each with an optional "
        ",margin=X; no verdict depends on it, so it may change at any time",
    )
    anchor: Name | None = Field(
        None,
        description="battles: the model whose rating is 1000; by default the mean of the models is. No verdict depends on it, so it may "
        "change at any time",
    )
    drift: DriftSpec | None = Field(
        None,
        description="makes it a sentinel: the runs of each model are ranked among its earlier ones, and pairs are not compared; declared "
        "before the first run, and permanent",
    )
    aliases: dict[Name, Name] = Field(
        {}, description="other names of models: events of the first name count as the second's; more may be added later"
    )
    admissions: dict[Name, Admitted] | None = Field(
        None,
        description="newcomers that are admitted to the board, each before its first score; the server writes it, and the first seed of a "
        "newcomer counts",
    )
    declared_late: tuple[Part, ...] = Field(
        (), description="the parts of this declaration that were chosen when some scores were known: verdicts name them"
    )
    provenance: Provenance = Field(
        Provenance.model_construct(),
        description="what an export of scores knows of them: rankwatch writes it, and verdicts name it",
    )
    version: Annotated[StrictInt, Field(ge=1, le=MAX_INDEX)] = Field(
        1, description="number of the declaration: one more than the last declares the benchmark again, after a score"
    )

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, data: Any) -> Any:  # noqa: ANN401 - any input
        """Fill in the item count from the item list, and the policy `completion` if the count is known and no policy is given."""
        if not isinstance(data, dict):
            return data
        item_ids, clusters = data.get("item_ids"), data.get("clusters")
        if data.get("items") is None and isinstance(item_ids, list | tuple) and item_ids:
            units = data.get("units")
            data = {**data, "items": len(_units_of(item_ids, units if isinstance(units, dict) else None))}
        elif data.get("items") is None and isinstance(clusters, dict) and set(map(type, clusters.values())) == {int}:
            data = {**data, "items": sum(clusters.values())}
        if data.get("items") is not None and data.get("order") is None:
            data = {**data, "order": {"policy": "completion"}}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.order.policy == "completion" and self.items is None:
            raise ValueError("order policy 'completion' needs the item count; declare items")
        if self.order.policy == "committed" and self.order.seed is None:
            raise ValueError(
                "order policy 'committed' needs a seed and the items; use `rankwatch order --format json`, which writes both"
            )
        if self.order.policy == "committed" and self.item_ids is None:
            raise ValueError(
                "order policy 'committed' needs the items, to permute them; declare item_ids, which `rankwatch order --format json` writes"
            )
        if (self.scores == "graded" or self.repeats != 1) and self.order.policy == "committed":
            raise ValueError(
                "order policy 'committed' needs 0/1 scores and one repeat; declare 'completion' for graded scores and repeats"
            )
        if self.look is not None and (self.order.policy != "committed" or self.bets_are_graded):
            raise ValueError(
                "look is a share of alpha for the last item of a committed order of 0/1 scores without units; omit it"
            )
        if self.bets_are_graded and self.items is not None and self.items > MAX_GRADED_ITEMS:
            raise ValueError(
                f"items {self.items:,} is too many for graded scores, repeats or weights; use at most {MAX_GRADED_ITEMS:,}"
            )
        if self.item_ids is not None:
            distinct = len(set(self.item_ids))
            if distinct != len(self.item_ids):
                raise ValueError(f"item_ids repeats {len(self.item_ids) - distinct:,} ids; list each item once")
            self._check_listed(self.item_ids)
        return self

    def _check_listed(self, item_ids: tuple[str, ...]) -> None:
        """Raise ValueError unless the item count and the units fit the list of items."""
        unlisted = min((self.units or {}).keys() - set(item_ids), default=None)
        if unlisted is not None:
            raise ValueError(
                f"units has {shorten(unlisted)}, which is not in item_ids; correct the id, or add it to the list"
            )
        sizes, units = self.unit_sizes, self.units or {}
        if (unit := next((item for item in item_ids if item in sizes and item not in units), None)) is not None:
            raise ValueError(unit_name_problem(unit))
        number = len(_units_of(item_ids, self.units))
        if self.items != number:
            counted = "item_ids" if self.units is None else "their units"
            raise ValueError(f"items {self.items:,} is not the number of {counted}, {number:,}; omit items")

    def unit_of(self, item: str) -> str:
        """Return the unit of an item: itself where none is declared."""
        return item if self.units is None else self.units.get(item, item)

    @property
    def unit_sizes(self) -> Mapping[str, int]:
        """How many items each declared unit has."""
        return Counter((self.units or {}).values())

    @property
    def listed_units(self) -> tuple[str, ...]:
        """The units of the listed items, in the order of the list: the items themselves without units."""
        return _units_of(self.item_ids or (), self.units)

    @property
    def needed_repeats(self) -> float:
        """With how many repeats an item bets, or a prompt with votes; infinite where it waits for the end of its runs."""
        return inf if self.repeats == "all" else self.repeats

    @property
    def bets_are_graded(self) -> bool:
        """Whether pairs bet on differences of any size: of graded scores, of means of repeats or units, or of clusters with weights."""
        return self.scores == "graded" or self.repeats != 1 or self.units is not None or self.weights is not None

    @model_validator(mode="after")
    def _weighted(self) -> Self:
        """Raise ValueError unless the weights, the sizes of the clusters and the order policy go together."""
        if self.weights is None:
            if self.clusters is not None:
                raise ValueError("clusters are the sizes that weights need; declare weights too, or omit clusters")
            return self
        if self.missing == "ignorable":
            raise ValueError(
                "weights count what is missing at its worst, so missing 'ignorable' is not available with them; omit missing"
            )
        if self.order.policy == "committed":
            raise ValueError(
                "order policy 'committed' is not available with weights; declare 'completion', or 'trusted' for a random order"
            )
        if self.order.policy != "none" and self.clusters is None:
            raise ValueError(
                "weights need the number of items of each cluster; declare clusters ({name: items, ...}) in place of items"
            )
        self._check_clusters()
        return self

    def _check_clusters(self) -> None:
        """Raise ValueError unless the sizes of the clusters fit the weights and the item count."""
        weights, sizes = self.weights, self.clusters
        count = max(len(weights) if isinstance(weights, dict) else 0, len(sizes or ()))
        if count > MAX_CLUSTERS:
            raise ValueError(f"weights of {count:,} clusters are too many; use at most {MAX_CLUSTERS:,}")
        if sizes is None:
            return
        if isinstance(weights, dict) and (differing := sorted(weights.keys() ^ sizes.keys())):
            lacks = "clusters" if differing[0] in weights else "weights"
            raise ValueError(f"{lacks} lacks {shorten(differing[0])}; give each cluster a weight and a number of items")
        if self.items != sum(sizes.values()):
            raise ValueError(f"items {self.items:,} is not the sum of clusters, {sum(sizes.values()):,}; omit items")

    @model_serializer(mode="wrap")
    def _without_weights(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit `weights`, `clusters` and `units` where none are declared, so that a declaration without them is stored as before."""
        fields: dict[str, Any] = serialize(self)
        added = {"weights", "clusters", "units", "drift", "look", "admissions"}
        return {name: value for name, value in fields.items() if value is not None or name not in added}

    @model_validator(mode="after")
    def _watched(self) -> Self:
        """Raise ValueError for a sentinel that is declared to compare models too."""
        if self.drift is None:
            return self
        compares = {
            "units": self.units,
            "weights": self.weights,
            "margin": self.margin,
            "goal": self.goal,
            "family": self.family.capacity or self.family.pairs,
            "order": self.order.policy if self.order.policy in {"committed", "trusted"} else None,
        }
        extra = next((name for name, value in compares.items() if value is not None), None)
        if extra is not None:
            raise ValueError(
                f"{extra} is of a comparison of models, and a sentinel watches each on its own; omit it, or give the comparison a "
                "benchmark of its own"
            )
        return self

    @model_validator(mode="after")
    def _direct_aliases(self) -> Self:
        if problem := alias_problem(self.aliases):
            raise ValueError(f"aliases: {problem}")
        if alias := min(self.family.named & self.aliases.keys(), default=None):
            model = shorten(self.aliases[alias])
            raise ValueError(f"the family lists {shorten(alias)}, which is an alias of {model}; list {model}")
        return self


def unit_name_problem(item: str) -> str:
    """Return what is wrong with an item that has the name of a unit and is in none, and what to do."""
    name = shorten(item)
    return (
        f"{name} is an item without a unit, and the name of one; add it to units ({name}: {name}), or rename the unit"
    )


def alias_problem(aliases: Mapping[str, str]) -> str | None:
    """Return what is wrong with aliases of models, and what to do; None if each is an alias of a model that is no alias.

    >>> alias_problem({"a": "b", "b": "a"})
    'a and b are aliases of each other; omit one of the two'
    >>> alias_problem({"a": "b", "b": "c"})
    'a is an alias of b, and b is an alias of c; make a an alias of c'
    """
    for name, model in aliases.items():
        if model in aliases:
            last = aliases[model]
            a, b, c = map(shorten, (name, model, last))
            if last == name:
                return f"{a} and {b} are aliases of each other; omit one of the two"
            return f"{a} is an alias of {b}, and {b} is an alias of {c}; make {a} an alias of {c}"
    return None


def _units_of(items: Iterable[Any], units: Mapping[str, str] | None) -> tuple[Any, ...]:
    """Return the units of items, each once, in the order of the items."""
    return tuple(items) if units is None else tuple(dict.fromkeys(units.get(item, item) for item in items))


class Declaration(Spec):
    """A declaration in the log: the benchmark's name and its specification."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Benchmark declaration", defer_build=True)

    declare: Name

    def spec(self) -> Spec:
        """Return the specification without the name."""
        return Spec.model_validate(self.model_dump(exclude={"declare"}))
