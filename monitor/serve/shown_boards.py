"""What a process shows, and to whom: the benchmarks of its partitions, and suites of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Self

from monitor.view.board import BoardView
from monitor.view.partition_view import PartitionView
from schemas.records.prices import Prices
from schemas.records.suites import Suite


def _everything(_: str) -> bool:
    return True


class ShownAs:
    """The suites and prices of the settings, which may change; one object, which all callers share."""

    def __init__(self, suites: Iterable[Suite], prices: Prices) -> None:
        self.revision = 0
        self.change(suites, prices)

    def change(self, suites: Iterable[Suite], prices: Prices) -> None:
        """Take other suites and prices."""
        self.suites = {suite.name: suite for suite in suites}
        self.prices = prices
        self.revision += 1


class ShownBoards:
    """The benchmarks and suites of a process, as a caller sees them. To find one takes the same time however many there are."""

    def __init__(
        self,
        partitions: Callable[[], Sequence[PartitionView]],
        shown: Callable[[str], bool] | None = None,
        suites: Sequence[Suite] = (),
        prices: Prices = MappingProxyType({}),
    ) -> None:
        self._partitions, self._shown = partitions, shown or _everything
        self._shown_as = ShownAs(suites, prices)
        self.may_read: Callable[[str], bool] = _everything

    def readable_by(self, may_read: Callable[[str], bool]) -> Self:
        """Return what a caller sees: a benchmark that it may not read does not exist. Results are shared."""
        seen = copy(self)
        seen.may_read = may_read
        return seen

    def show_as(self, suites: Iterable[Suite], prices: Prices) -> None:
        """Show other suites, and costs of goals by other prices, from now on."""
        self._shown_as.change(suites, prices)

    @property
    def revision(self) -> int:
        """Differs after each change of the suites and prices."""
        return self._shown_as.revision

    @property
    def prices(self) -> Prices:
        """The price of an item by model."""
        return self._shown_as.prices

    @property
    def _suites(self) -> Mapping[str, Suite]:
        return self._shown_as.suites

    @property
    def partitions(self) -> Sequence[PartitionView]:
        """The current partitions."""
        return self._partitions()

    def owns(self, name: str) -> bool:
        """Return whether a benchmark belongs to a partition of this process, if it exists."""
        return self.partition_of(name) is not None

    def partition_of(self, name: str) -> PartitionView | None:
        """Return the current partition to which a benchmark belongs, or None."""
        return next((partition for partition in self._partitions() if partition.is_ours(name)), None)

    @property
    def suites(self) -> list[Suite]:
        """The suites that are shown and may be read: a caller may read the suite, and every member."""
        return list(filter(self._is_readable, self._suites.values()))

    def suite(self, name: str) -> Suite | None:
        """Return a suite that is shown and may be read, or None."""
        suite = self._suites.get(name)
        return suite if suite is not None and self._is_readable(suite) else None

    def _is_readable(self, suite: Suite) -> bool:
        return self._shown(suite.name) and all(map(self.may_read, (suite.name, *suite.members)))

    def names(self) -> list[str]:
        """Return the names of everything that is reported: suites, then benchmarks, each by name."""
        own = (name for each in self._partitions() for name in each.names() if name not in self._suites)
        return sorted(suite.name for suite in self.suites) + sorted(filter(self.may_show, own))

    def has(self, name: str) -> bool:
        """Return whether `names` has a name."""
        return self.suite(name) is not None if name in self._suites else self.benchmark(name) is not None

    def own_benchmarks(self, partition: int | None = None) -> dict[str, BoardView]:
        """Return the benchmarks, of one partition or of all, that may be read and that no suite of the same name is shown in place of."""
        return {name: benchmark for name, benchmark in self.benchmarks(partition).items() if name not in self._suites}

    def benchmarks(self, partition: int | None = None) -> dict[str, BoardView]:
        """Return the benchmarks, of one partition or of all, with a state of their own that may be read, by name."""
        benchmarks = self._every_benchmark(partition)
        if self._shown is _everything and self.may_read is _everything:
            return benchmarks
        return {name: each for name, each in benchmarks.items() if self.may_show(name)}

    def may_show(self, name: str) -> bool:
        """Return whether a benchmark, if it exists, is shown and may be read."""
        return self._shown(name) and self.may_read(name)

    def benchmark(self, name: str) -> BoardView | None:
        """Return a benchmark with a state of its own that may be read, or None."""
        state = self._state_of(name)
        return state if state is not None and self.may_show(name) else None

    def _every_benchmark(self, partition: int | None = None) -> dict[str, BoardView]:
        partitions = [each for each in self._partitions() if partition is None or each.number == partition]
        return {name: board for each in partitions for name, board in each.boards()}

    def _state_of(self, name: str) -> BoardView | None:
        boards = (each.board(name) for each in self._partitions())
        return next((benchmark for benchmark in boards if benchmark is not None), None)

    def _with_members(self, names: Iterable[str]) -> list[str]:
        """Return names with each suite replaced by its members."""
        return [each for name in names for each in (self._suites[name].members if name in self._suites else (name,))]

    def _sources(self, name: str) -> tuple[BoardView, ...]:
        """Return the state from which something is reported: a benchmark, or the members of a suite that exist; empty if there is none."""
        if name in self._suites:
            suite = self.suite(name)
            members = () if suite is None else map(self._state_of, suite.members)
            return tuple(member for member in members if member is not None)
        benchmark = self.benchmark(name)
        return () if benchmark is None else (benchmark,)

    def _hides(self, name: str) -> bool:
        """Return whether a suite is shown in place of a benchmark of its name."""
        return name in self._suites and self._state_of(name) is not None

    def _offsets(self, sources: Iterable[BoardView]) -> dict[int, int]:
        """Return the offset up to which each partition of some benchmarks is folded."""
        partitions = (self.partition_of(benchmark.name) for benchmark in sources if benchmark.suite is None)
        return {partition.number: partition.off for partition in partitions if partition is not None}
