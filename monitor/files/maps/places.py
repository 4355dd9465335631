"""Find the places in a document where its records may be, and the values that each record could take its fields from."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from monitor.files.maps import hints
from monitor.files.maps.mapped import percentage
from schemas.records.lenient import without_value

KEYED: Final = "{}"  # a level of a path whose names are data: a field of the event may be captured there

EVERY: Final = "*"

_DEPTH: Final = 8
_MOST_RECORDS: Final = 5_000
_MOST_NAMES: Final = 60
_MOST_FIELDS: Final = 500
_FEW: Final = 2
_LARGEST: Final = 100
_ALIKE: Final = 0.5


@dataclass(frozen=True, eq=False)
class Column:
    """Values that records could take a field from, one a record, None where there is none."""

    label: str  # its name, as a person reads it; empty for a name or a position on the path
    values: Sequence[Any]
    up: int = 0  # how many levels above the record it is
    path: tuple[str, ...] = ()  # its path there
    level: int | None = None  # where on the path of the records it is captured; None for a field
    position: bool = False  # whether it numbers the elements of a list


class Place(NamedTuple):
    """Records: their path, the columns they could take fields from, and which fields of an object are the records, if not all of them."""

    names: tuple[str, ...]
    size: int
    columns: list[Column]
    only: tuple[str, ...] = ()
    is_score: bool = False  # whether a record is no object, but a score itself


class _Node(NamedTuple):
    value: Any
    parent: "_Node | None" = None
    key: str = ""
    labels: tuple[str, ...] = ()  # of the elements of a list that is a row of a table


def places(root: object) -> Iterator[Place]:
    """Return every place where the records of a document may be."""
    if isinstance(root, dict) and not holds_columns(root):
        yield _place([_Node(root)], ())
    yield from _walk([_Node(root)], ())


def _walk(nodes: list[_Node], names: tuple[str, ...]) -> Iterator[Place]:
    if len(names) > _DEPTH:
        return
    if all(isinstance(node.value, list) for node in nodes):
        labels = _header(nodes[0])
        inner = [_Node(each, n, str(k), labels) for n in nodes for k, each in enumerate(n.value)][:_MOST_RECORDS]
        yield from _level(inner, (*names, EVERY))
        return
    nodes = [node for node in nodes if isinstance(node.value, dict) and not holds_columns(node.value)]
    fields = list(dict.fromkeys(name for node in nodes for name in node.value))
    if group := _scores(nodes, fields):
        inner = [
            _Node(n.value[name], n, name)
            for n in nodes
            for name in group
            if without_value(n.value.get(name)) is not None
        ]
        yield _place(inner[:_MOST_RECORDS], (*names, KEYED), group if len(group) < len(fields) else ())
    if nodes and (_one_each(nodes, fields) or all(_names_are_data(node.value) for node in nodes)):
        inner = [_Node(each, n, name) for n in nodes for name, each in n.value.items()]
        yield from _level(inner[:_MOST_RECORDS], (*names, KEYED))
    elif len(nodes) == 1 and (named := _records_among(nodes[0].value)):
        yield _place([_Node(nodes[0].value[name], nodes[0], name) for name in named], (*names, KEYED), named)
    for name in fields[:_MOST_NAMES]:
        inner = [_Node(n.value[name], n, name) for n in nodes if isinstance(n.value.get(name), dict | list)]
        if inner and len(inner) >= _ALIKE * len(nodes):
            yield from _walk(inner, (*names, name))


def _level(nodes: list[_Node], names: tuple[str, ...]) -> Iterator[Place]:
    """Return the records at a level of lists, or of names that are data, and those within."""
    if not nodes:
        return
    values = [node.value for node in nodes]
    if all(isinstance(value, dict) for value in values):
        yield _place(nodes, names)
    elif nodes[0].labels and all(isinstance(value, list) for value in values):
        yield _place(nodes, names)
        return
    elif len(nodes) >= _FEW and all(is_score(value) for value in values):
        yield _place(nodes, names)
    if any(isinstance(value, dict | list) for value in values):
        yield from _walk(nodes, names)


def _place(nodes: list[_Node], names: tuple[str, ...], only: tuple[str, ...] = ()) -> Place:
    """Return the columns of records: their own fields, those of what they are in, and the names on their path."""
    above: dict[int, dict[tuple[int, tuple[str, ...]], Any]] = {}
    rows: list[dict[tuple[int, tuple[str, ...]], Any]] = []
    labels: dict[tuple[int, tuple[str, ...]], str] = {}
    is_record_score = bool(nodes) and not isinstance(nodes[0].value, dict | list)
    nodes = [
        n
        for n in nodes
        if not isinstance(n.value, dict) or any(without_value(each) is not None for each in n.value.values())
    ]
    for node in nodes:
        row: dict[tuple[int, tuple[str, ...]], Any] = {}
        if is_record_score:
            row[0, ()] = node.value
        elif isinstance(node.value, list):
            row |= {(0, (str(k),)): each for k, each in enumerate(node.value) if not isinstance(each, dict | list)}
            labels |= {(0, (str(k),)): label for k, label in enumerate(node.labels)}
        else:
            row |= {(0, path): value for path, value in islice(_leaves(node.value, ""), _MOST_FIELDS)}
        if node.parent is not None:
            if id(node.parent) not in above:
                above[id(node.parent)] = _above(node, only or ((node.key,) if names[-1] == KEYED else ()))
            row |= above[id(node.parent)]
        rows.append(row)
    columns = [
        Column(labels.get(key, ".".join(key[1])), [row.get(key) for row in rows], *key)
        for key in dict.fromkeys(key for row in rows for key in row)
    ]
    for level, name in enumerate(names):
        if name in {KEYED, EVERY} and (level or name == KEYED):
            keys = [_key(node, len(names) - 1 - level) for node in nodes]
            columns.append(Column("", keys, level=level, position=name == EVERY))
    return Place(names, len(nodes), columns, only, is_record_score)


def _above(node: _Node, melted: tuple[str, ...]) -> dict[tuple[int, tuple[str, ...]], Any]:
    """Return the fields of what a record is in, without those that lead to it or are records themselves."""
    fields: dict[tuple[int, tuple[str, ...]], Any] = {}
    up, key, outer = 1, node.key, node.parent
    while outer is not None:
        if isinstance(outer.value, dict):
            leaves = islice(_leaves(outer.value, key), _MOST_NAMES)  # the siblings of a record may hold thousands
            fields |= {(up, path): value for path, value in leaves if up > 1 or path[0] not in melted}
        up, key, outer = up + 1, outer.key, outer.parent
    return fields


def _leaves(value: dict[str, Any], omitted: str, depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return the values in an object that are neither objects nor lists, by their paths."""
    for name, each in value.items():
        if name == omitted and not depth:
            continue
        if isinstance(each, dict):
            if depth < _DEPTH:
                yield from (((name, *path), leaf) for path, leaf in _leaves(each, "", depth + 1))
        elif not isinstance(each, list):
            yield (name,), each


def _key(node: _Node, up: int) -> str:
    for _ in range(up):
        assert node.parent is not None, "a path is as long as its nodes are deep"
        node = node.parent
    return node.key


def holds_columns(value: dict[str, Any]) -> bool:
    """Return whether the fields of an object are the columns of a table, each a list or an object of its cells."""
    cells = all(isinstance(each, list | dict) and each for each in value.values())
    return cells and hints.names_columns(list(value))


def _names_are_data(value: dict[str, Any]) -> bool:
    """Return whether the values of an object have one shape, so that its names are data."""
    inner = list(value.values())
    if len(inner) < _FEW:
        return False
    if all(isinstance(each, list) and each for each in inner):
        return len({type(each[0]) for each in inner}) == 1
    if not all(isinstance(each, dict) and each for each in inner):
        return False
    shared = set.intersection(*(set(each) for each in inner))
    scalars = all(not isinstance(each, dict | list) for one in inner[:_MOST_NAMES] for each in one.values())
    return scalars or len(shared) >= _ALIKE * max(len(each) for each in inner)


def _records_among(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the objects of one shape that are among fields of an object, none if they have others."""
    named = {name: each for name, each in value.items() if isinstance(each, dict)}
    others = [each for name, each in value.items() if name not in named]
    alike = bool(others) and all(not isinstance(each, dict | list) for each in others) and _names_are_data(named)
    return tuple(named) if alike else ()


def _one_each(nodes: Sequence[_Node], fields: Sequence[str]) -> bool:
    """Return whether each of several objects has one field, of a name of its own."""
    inner = [each for node in nodes for each in node.value.values()]
    return len(fields) == len(inner) == len(nodes) > 1 and all(isinstance(each, dict | list) for each in inner)


def _header(node: _Node) -> tuple[str, ...]:
    """Return the names of the columns of a list of rows: a list next to it, as long as each row."""
    if not node.value or not isinstance(node.value[0], list) or node.parent is None:
        return ()
    for each in node.parent.value.values() if isinstance(node.parent.value, dict) else ():
        names = isinstance(each, list) and each is not node.value and all(isinstance(name, str) for name in each)
        if names and all(isinstance(row, list) and len(row) == len(each) for row in node.value):
            return tuple(each)
    return ()


def _scores(nodes: Sequence[_Node], fields: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of objects that are scores under names that mean no score, two or more: the names may be models, or items."""
    many = len(fields) > _MOST_NAMES  # so many names are data, even if one of them looks like that of a field
    hinted = [] if many else [name for name in fields if hints.rank("score", name) >= hints.HINTED]
    if hinted and not hints.family(hinted):
        return ()
    group = []
    for name in hinted or fields:
        values = [node.value[name] for node in nodes if without_value(node.value.get(name)) is not None]
        if (many or hints.may_be_data(name)) and values and all(map(is_score, values)) and in_range(values):
            group.append(name)
    return tuple(group) if len(group) >= _FEW else ()


def in_range(values: Sequence[object]) -> bool:
    """Return whether values may be scores: none is over 100, and they do not just number their records.

    >>> in_range([0.5, 1]), in_range([0, 1]), in_range([3, 1, 2]), in_range([1, 1200])
    (True, True, False, False)
    """
    numbers = [float(number) for each in values if isinstance(number := percentage(each), bool | int | float)]
    whole = len(numbers) == len(values) > _FEW and all(number.is_integer() for number in numbers)
    counts = whole and len(set(numbers)) == len(numbers) == max(numbers) - min(numbers) + 1
    return not counts and max(numbers, default=0) <= _LARGEST


def is_score(value: object) -> bool:
    """Return whether a value is a finite number, a boolean, or a word for a verdict."""
    number = percentage(value)
    if isinstance(number, int | float):
        return math.isfinite(number)
    return isinstance(value, str) and value.strip().lower() in hints.VERDICTS
