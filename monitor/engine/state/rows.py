"""The rows of a score matrix in columns: a name and eight bytes each, where an object for each would take twice as much."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import overload

from typing_extensions import override

from schemas.records.scores import RowKey


class Rows(Sequence[RowKey]):
    """The rows of a benchmark, in the order of their first event. A key is made when somebody asks for one.

    >>> rows = Rows()
    >>> rows.add_items({"1": "law", "2": None})
    >>> rows[0], rows[-1], rows[1:]
    (RowKey(item='1', repeat=0, cluster='law'), RowKey(item='2', repeat=0, cluster=None), [RowKey(item='2', repeat=0, cluster=None)])
    """

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __init__(self) -> None:
        self._items: list[str] = []
        self._repeats = array("i")
        self._label = array("i")
        self._labels: list[str | None] = []
        self._label_of: dict[str | None, int] = {}

    @property
    def names(self) -> Sequence[str]:
        """The item of each row."""
        return self._items

    def append(self, key: RowKey) -> None:
        """Add a row."""
        self._items.append(key.item)
        self._repeats.append(key.repeat)
        self._label.append(self._label_for(key.cluster))

    def add_items(self, items: Mapping[str, str | None]) -> None:
        """Add the row of repeat 0 of several items, with their clusters."""
        label_of = {cluster: self._label_for(cluster) for cluster in dict.fromkeys(items.values())}
        self._items.extend(items)
        self._repeats.extend(repeat(0, len(items)))
        self._label.extend(map(label_of.__getitem__, items.values()))

    def _label_for(self, cluster: str | None) -> int:
        label = self._label_of.setdefault(cluster, len(self._labels))
        if label == len(self._labels):
            self._labels.append(cluster)
        return label

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> RowKey: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowKey]: ...
    @override
    def __getitem__(self, index: int | slice) -> RowKey | list[RowKey]:
        if isinstance(index, slice):
            return list(self._keys(self._items[index], self._repeats[index], self._label[index]))
        return RowKey(self._items[index], self._repeats[index], self._labels[self._label[index]])

    @override
    def __iter__(self) -> Iterator[RowKey]:
        return self._keys(self._items, self._repeats, self._label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(RowKey.__eq__, self, other))

    def _keys(self, items: Sequence[str], repeats: Sequence[int], labels: Sequence[int]) -> Iterator[RowKey]:
        keys = zip(items, repeats, map(self._labels.__getitem__, labels), strict=True)
        return map(tuple.__new__, repeat(RowKey), keys)  # half the time of calling `RowKey`
