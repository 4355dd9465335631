"""What holds of a benchmark by its declaration and by what has come: one set of rules for the fold and for those who read it."""

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from schemas.records.declaration import Spec
from schemas.records.reading import Reading
from schemas.records.scores import Contestant
from stats.numerics.pairs import pair_count
from stats.order import OrderFinding


class Rules:
    """Rules of a benchmark that has the attributes below."""

    if TYPE_CHECKING:  # a property would count as the default of a field

        @property
        def spec(self) -> Spec:
            """The declaration."""

        @property
        def generation(self) -> int:
            """How often the name was begun."""

        @property
        def contestants(self) -> Sequence[Contestant]:
            """The epochs of the models."""

        @property
        def mixed(self) -> bool:
            """Whether a score was neither 0 nor 1, and none such was declared."""

        @property
        def undeclared(self) -> str:
            """Which repeat or unit came that is not declared."""

        @property
        def reading(self) -> Reading:
            """What is known of the files."""

        @property
        def exceeded(self) -> bool:
            """Whether an item beyond the declared count was folded."""

        @property
        def too_many_items(self) -> bool:
            """Whether more items have arrived than declared."""

        @property
        def finding(self) -> OrderFinding | None:
            """The finding against the arrival order."""

    @property
    def pairs(self) -> int:
        """Number of pairs of contestants."""
        return pair_count(len(self.contestants))

    @property
    def limit(self) -> float:
        """Evidence that decides a pair on its own, ln 1/alpha."""
        return -log(self.spec.alpha)

    @property
    def graded(self) -> bool:
        """Whether pairs bet on differences of any size: graded scores are declared, means of repeats or units, or weights."""
        return self.spec.bets_are_graded

    @property
    def binary(self) -> bool:
        """Whether every score that counts was 0 or 1, and counts the same, so that b and c describe pairs."""
        return not self.graded and not self.mixed

    @property
    def as_declared(self) -> bool:
        """Whether every score is of the declared kind."""
        return self.graded or not self.mixed

    @property
    def begun_again(self) -> bool:
        """Whether the name was begun again, here or where the scores were exported."""
        return self.generation > 1 or self.spec.provenance.begun_again

    @property
    def order_trusted(self) -> bool:
        """Whether the arrival order was declared trusted, so that decisions do not rest on the item count."""
        return self.spec.order.policy == "trusted"

    @property
    def order_refuted(self) -> bool:
        """Whether the arrival order was declared trusted and a test has refuted it; this is permanent."""
        return self.order_trusted and self.finding is not None

    @property
    def completion_refuted(self) -> bool:
        """Whether the policy is completion, whose decisions rest on the item count, and more items have arrived."""
        return self.spec.order.policy == "completion" and self.too_many_items

    @property
    def assumption_holds(self) -> bool:
        """Whether an order policy is declared and nothing has refuted its assumption: anytime decisions count."""
        refuted = self.completion_refuted or self.order_refuted or self.undeclared or self.reading.hold
        return self.spec.order.policy != "none" and not refuted

    @property
    def can_decide(self) -> bool:
        """Whether an anytime procedure may decide pairs now."""
        return self.assumption_holds and not self.mixed

    @property
    def has_fixed_items(self) -> bool:
        """Whether it is declared how many items the benchmark has, and nothing has refuted it: a lead on all of them can be settled."""
        return self.spec.items is not None and not self.exceeded

    def aliases_of(self, model: str) -> list[str]:
        """Return the declared aliases of a model, by name."""
        aliases = self.spec.aliases
        return sorted(name for name, other in aliases.items() if other == model) if aliases else []
