"""Decide which column of records is which field of an event.

What decides, in this order: a record is the only one of its item and model (and repeat), models share items, names hint at a field, and
there are fewer models than items.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from monitor.files.maps import hints
from monitor.files.maps.mapped import percentage
from monitor.files.maps.places import KEYED, Column, Place, in_range, is_score
from schemas.records.lenient import without_value
from schemas.records.text import shorten

_LONGEST_ID: Final = 100  # unless the field is named like an item: a prompt is longer
_LISTED: Final = 12
_LISTED_LENGTH: Final = 120
_FEW: Final = 2  # models that may be more than the items: a file may be the beginning of one
_CROSSED: Final = 0.9
_MOST_IDS: Final = 24
_MOST_REPEATS: Final = 8
_OUTPUTS: Final = frozenset({"output", "response", "answer", "completion"})
_OF_CALLS: Final = (["success"], ["succeeded"], ["ok"], ["status"])  # what a record has next to its error


class Roles(NamedTuple):
    """The columns of an event's fields, how well they fit, and what of it is a guess."""

    # A column of a model or an item is None where the records have none.
    place: Place
    columns: dict[str, Column]
    fit: tuple[float, ...]
    guesses: tuple[str, ...]


class _Pair(NamedTuple):
    fit: tuple[float, ...]
    item: Column
    model: Column | None
    reversible: bool


def assign(place: Place, *, crowded: bool = False) -> Roles | None:
    """Return the columns of the fields of an event, None if the records have no score or no item, or more models than items."""
    # `crowded` allows more models than items, for the message.
    scores = _scores(place)
    of_totals = any(map(hints.holds_totals, place.names))
    if not scores or (place.is_score and of_totals):
        return None
    score = scores[0]
    others = [column for column in place.columns if column is not score]
    pairs = [each for each in _pairs(place, others) if crowded or not _is_crowded(each)]
    pair = max(pairs, key=lambda each: each.fit, default=None)
    if pair is None or not _usable(place, pair.item, pair.model) or _is_total(place, pair.item):
        return None
    if pair.model is None:
        pair = pair._replace(model=_setting(place, pair.item))
    item, model = pair.item, pair.model
    if not place.names and min(hints.rank("item_id", item.label), hints.rank("score", score.label) + 1) < hints.EXACT:
        return None  # a document is one record only if its fields have the names of one
    columns = {"item_id": item, "score": score} | ({} if model is None else {"model": model})
    guesses = _said(place, pair, scores)
    rest = [column for column in place.columns if column not in columns.values()]
    for field in ("benchmark", "cluster", "repeat", "epoch"):
        named = [c for c in rest if hints.rank(field, c.label) >= hints.EXACT and _fits(field, c)]
        best = max(named, key=lambda c: (hints.rank(field, c.label), -c.up), default=None)
        if best is not None and not (field == "benchmark" and _has_one_item_each(best, item)):
            columns[field] = best
    lost = _tell_apart(columns, [c for c in rest if c not in columns.values()])
    if lost and "repeat" not in columns and _most_are_lost(columns):
        return None  # no field names the items
    guesses += lost
    hinted = max(hints.rank("score", score.label), hints.EXACT if place.is_score else 0)
    direct = all(column.level is None and not column.up and len(column.path) == 1 for column in (item, score))
    by_name = direct and min(hints.rank("item_id", item.label), hinted) >= hints.HINTED
    fit = (
        not of_totals, by_name, len({"item_id", "model", "score"} & columns.keys()), pair.fit[0], min(pair.fit[1], hints.HINTED),
        place.size > 1, min(hinted, hints.HINTED), place.size, -len(place.names),
    )  # fmt: skip
    return Roles(place, columns, fit, tuple(guesses))


def _is_total(place: Place, item: Column) -> bool:
    """Return whether each record sums up items: it has their number, and no id of its own, or models are what it is of."""
    names = list(map(str, dict.fromkeys(item.values)))
    if item.level is not None and len(names) > _FEW and sum(map(hints.is_model, names)) * 2 > len(names):
        return True
    if hints.rank("item_id", item.label) >= hints.EXACT and not hints.counts_items(item.label):
        return False
    return any(counts(column) for column in place.columns)


def counts(column: Column) -> bool:
    """Return whether a column has the number of items that each record sums up."""
    numbers = [percentage(value) for value in column.values]
    own = column.level is None and not column.up and hints.counts_items(column.label)
    return own and all(type(each) is int and each > 1 for each in numbers)


def _setting(place: Place, item: Column) -> Column | None:
    """Return the setting that distinguishes the records of an item where no field names a model; None if there is none."""
    if len(set(item.values)) == len(item.values):
        return None
    settings = [
        column for column in place.columns if not column.up and column.level is None and hints.is_setting(column.label)
    ]
    return next((c for c in settings if all(isinstance(v, str) for v in c.values) and _unique(item.values, c)), None)


def _has_one_item_each(benchmark: Column, item: Column) -> bool:
    """Return whether each of several benchmarks would have one item: then their names mean items."""
    names = set(benchmark.values)
    return len(names) > 1 and len(set(zip(benchmark.values, item.values, strict=True))) == len(names)


def _most_are_lost(columns: dict[str, Column]) -> bool:
    """Return whether most records have the item and the model of an earlier one, and no name shows that it is the item."""
    keys = list(
        zip(*(columns[name].values for name in ("benchmark", "model", "item_id") if name in columns), strict=True)
    )
    return len(set(keys)) * 2 < len(keys) and hints.rank("item_id", columns["item_id"].label) < hints.EXACT


def _is_crowded(pair: _Pair) -> bool:
    if pair.model is None or (pair.fit[1] >= hints.HINTED and pair.model.up > pair.item.up):
        return False  # what holds the records is no item
    return len(set(pair.model.values)) > max(_FEW, len(set(pair.item.values)))


def _fits(field: str, column: Column) -> bool:
    kinds = str | int | float if field in {"repeat", "epoch"} else str | int
    return all(
        each is None or (isinstance(each, kinds) and not isinstance(each, bool)) for each in column.values
    ) and any(each is not None for each in column.values)


def _scores(place: Place) -> list[Column]:
    """Return the columns that may be the score, the likeliest first."""
    if place.is_score:
        return [next(column for column in place.columns if column.level is None and not column.up)]
    own = [column for column in place.columns if column.level is None and not column.up]
    tried = any({"error", "exception"}.intersection(hints.words(column.label)) for column in own)
    found = list[tuple[tuple[float, ...], Column]]()
    for column in own:
        values = [value for value in column.values if without_value(value) is not None]
        hinted = hints.rank("score", column.label)
        if hinted >= hints.HINTED and tried and hints.words(column.label)[-1:] in _OF_CALLS:
            hinted = 1  # that the call worked
        if not values or any(isinstance(value, dict | list) for value in values):
            continue
        if hinted >= hints.HINTED and (hinted >= hints.EXACT or is_score(values[0])):
            found.append(((hinted,), column))
        elif all(map(is_score, values)) and not _names_another(column) and in_range(values):
            verdicts = all(percentage(value) in {0, 1} or isinstance(percentage(value), str) for value in values)
            found.append(((min(hinted, 1), verdicts, len(set(values)) > 1), column))
    found.sort(key=lambda each: each[0], reverse=True)
    best = found[0][0][0] if found else 0
    return [column for (hinted, *_), column in found if best < hints.EXACT or hinted >= hints.HINTED]


def _names_another(column: Column) -> bool:
    """Return whether a column of numbers is something else: an id, a count, a repeat."""
    others = ("item_id", "model", "repeat", "cluster", "benchmark", "epoch")
    return (
        hints.is_count(column.label)
        or hints.is_answer(column.label)
        or hints.is_number(column.label)
        or any(hints.rank(field, column.label) >= hints.HINTED for field in others)
    )


def _is_id(column: Column) -> bool:
    """Return whether every value of a column can be an id."""
    said = not _OUTPUTS.isdisjoint(hints.words(column.label))
    if hints.rank("item_id", column.label) < hints.EXACT and (said or any(map(_is_fraction, column.values))):
        return False
    return (
        (column.level is None or not column.position)
        and (not hints.is_count(column.label) or hints.rank("item_id", column.label) >= hints.EXACT)
        and all(
            isinstance(value, str | int)
            and not isinstance(value, bool)
            and (0 < len(str(value)) <= _LONGEST_ID or (value and hints.rank("item_id", column.label) >= hints.HINTED))
            for value in column.values
        )
    )


def _is_fraction(value: object) -> bool:
    number = percentage(value) if isinstance(value, str) else value
    return isinstance(number, float) and not number.is_integer()


def _pairs(place: Place, columns: Sequence[Column]) -> Iterator[_Pair]:
    """Return the columns that may be those of the item and the model, with how well they fit."""
    ids = _likeliest([column for column in columns if _is_id(column)], ("item_id", "model"))
    models: list[tuple[float, Column | None]] = [(0, None)]
    for column in ids:
        level = hints.rank("model", column.label)
        text = all(isinstance(value, str) and isinstance(percentage(value), str) for value in column.values)
        if level >= hints.EXACT or (text and (level or not hints.is_condition(column.label))):
            models.append((max(level, 0.5 if column.level is not None else 0), column))
    if any(level >= hints.HINTED for level, _ in models):
        models = [each for each in models if each[0] >= hints.HINTED]
    items = [(max(hints.rank("item_id", column.label), 0.5 * (column.level is not None)), column) for column in ids]
    if place.is_score or (place.names[:1] == (KEYED,) and all(column.level is not None for _, column in items)):
        items += [(-1, column) for column in columns if column.position and column.level == len(place.names) - 1]
    others = [(strength, column) for column in columns if (strength := _distinguishes(place, column))]
    others = sorted(others, key=lambda each: -each[0])[:_MOST_REPEATS]
    for rank, item in items:
        if any(hints.rank(field, item.label) >= hints.EXACT for field in ("repeat", "epoch", "cluster", "model")):
            continue
        for level, model in models:
            if model is not item and (pair := _pair((rank, item), (level, model), others)) is not None:
                yield pair


def _likeliest(columns: list[Column], fields: Sequence[str]) -> list[Column]:
    """Return the columns whose names hint at a field the most, in their order: all pairs of hundreds are too many."""
    if len(columns) <= _MOST_IDS:
        return columns
    ranks = {
        id(each): (each.level is not None, max(hints.rank(field, each.label) for field in fields)) for each in columns
    }
    kept = {id(each) for each in sorted(columns, key=lambda each: ranks[id(each)], reverse=True)[:_MOST_IDS]}
    return [each for each in columns if id(each) in kept]


def _pair(
    ranked: tuple[float, Column], leveled: tuple[float, Column | None], others: Sequence[tuple[float, Column]]
) -> _Pair | None:
    """Return an item and a model with how well they fit; None if neither values nor names speak for them."""
    (rank, item), (level, model) = ranked, leveled
    keys = list(zip(item.values, model.values if model else item.values, strict=True))
    distinct, items, models = len(set(keys)), len(set(item.values)), len(set(model.values)) if model else 1
    if rank < hints.EXACT and items == 1 and len(keys) > 1:
        return None
    unique = 2.0
    if distinct < len(keys):
        unique = max((each for each, other in others if other not in {item, model} and _unique(keys, other)), default=0)
    crossing = distinct / (items * models)
    shared = float(distinct > items)
    if model is None or models == 1:
        shared = 1.5 if model is None else 1.0
    elif crossing >= _CROSSED:
        shared = 2.0
    order, unnamed = 0, model is not None and level < 1
    if model is not None and unnamed:
        if shared < 1 or models == 1 or items == 1 or (models > items and (item.level is None or model.level is None)):
            return None
        order = (items > models) - (items < models) + 2 * (_numbered(item) - _numbered(model))
        order = order or (item.level or 0) > (model.level or 0)  # of two levels of names, the outer ones
    fit = (unique >= 1 and shared > 0, level, shared, int(rank), order, unique, rank, crossing, -item.up)
    return _Pair(fit, item, model, unnamed and rank < 1 and models == items)


def _numbered(column: Column) -> bool:
    return hints.numbered(list(set(column.values)))


def _usable(place: Place, item: Column, model: Column | None) -> bool:
    """Return whether the names that are records are models or items, where they are fields of one object."""
    level = len(place.names) - 1
    if not place.is_score or place.columns[-1].position:
        return True
    captured = next((column for column in (item, model) if column is not None and column.level == level), None)
    names = list(dict.fromkeys(captured.values)) if captured else []
    return bool(names) and (hints.family(names) or not hints.are_metrics(names)) and not hints.are_repeats(names)


def _said(place: Place, pair: _Pair, scores: Sequence[Column]) -> list[str]:
    """Return what of an item, a model and a score is a guess."""
    item, model = pair.item, pair.model
    guesses = list[str]()
    if not place.is_score:
        others = f"; {some([column.label for column in scores[1:]])} may be it too" if scores[1:] else ""
        guesses.append(f"score = {shorten(scores[0].label)}{others}")
    if hints.rank("item_id", item.label) < hints.EXACT:
        guesses.append(f"item_id = {_name(item)}" if item.level is None else f"the {_name(item)} are items")
    if model is not None and hints.rank("model", model.label) < hints.EXACT:
        guesses.append(f"model = {_name(model)}" if model.level is None else f"the {_name(model)} are models")
    if place.only and (
        omitted := [c.label for c in place.columns if c.up == 1 and c not in {item, model} and _like_scores(c)]
    ):
        guesses.append(f"{some(omitted)}: not read, as the name may be no model or item")
    if model is not None and pair.fit[2] < 1:
        guesses.append("no two models share an item, so none can be compared; correct item_id or model")
    if model is not None and len(set(model.values)) == _objects(place, item, model) > 1:
        guesses.append("each model has one record: a total is no score of an item")
    if model is None and (named := [each for each in dict.fromkeys(item.values) if hints.is_model(each)]):
        guesses.append(
            f"{some(named)} may be models and no items: a total is no score of an item; give the file with a score an item"
        )
    if totals := [each for each in dict.fromkeys(map(str, item.values)) if hints.is_summary(each)]:
        guesses.append(f"{some(totals)} may be a total and no item; remove it")
    if pair.reversible:
        guesses.append(
            "model and item_id may be the other way round: there are as many of each, and no name shows which"
        )
    return guesses


def _like_scores(column: Column) -> bool:
    values = [value for value in column.values if without_value(value) is not None]
    return bool(values) and all(map(is_score, values))


def _objects(place: Place, item: Column, model: Column) -> int:
    """Return how many objects hold the records; 0 if that is not known."""
    if item.level is None:
        return place.size
    outer = [column.values for column in place.columns if column.up == 1]
    return len(set(zip(*outer, strict=True))) if model.up == 1 else 0


def _name(column: Column) -> str:
    if column.position:
        return "positions in the list"
    values = some(list(dict.fromkeys(map(str, column.values))))
    return f"names {values}" if column.level is not None else f"{shorten(column.label)} ({values})"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = list(map(shorten, names[:_LISTED]))
    while len(shown) > 1 and sum(map(len, shown)) > _LISTED_LENGTH:
        shown.pop()
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _distinguishes(place: Place, column: Column) -> float:
    """Return how well a column explains several records of one model and item: 1 as a repeat or a benchmark by its name or its place."""
    if column.position:
        return float(place.is_score and column.level == len(place.names) - 1)
    if column.level is not None or hints.rank("benchmark", column.label) >= hints.EXACT:
        return 1
    return 0 if not _numbers_repeats(column) else 1 if hints.rank("repeat", column.label) else 0.5


def _numbers_repeats(column: Column) -> bool:
    if hints.rank("score", column.label) > 0 or hints.rank("item_id", column.label) >= hints.EXACT:
        return False
    return all(
        isinstance(number := percentage(each), int | float)
        and not isinstance(number, bool)
        and number >= 0
        and float(number).is_integer()
        for each in column.values
    )


def _unique(keys: Sequence[Any], column: Column) -> bool:
    return len(set(zip(keys, map(str, column.values), strict=True))) == len(keys)


def _tell_apart(columns: dict[str, Column], rest: Sequence[Column]) -> list[str]:
    """Find what distinguishes records of one benchmark, model and item: a repeat, or names on the path that are benchmarks."""
    own = [columns[name].values for name in ("benchmark", "model", "item_id", "repeat", "epoch") if name in columns]
    keys = list(zip(*own, strict=True))
    if len(set(keys)) == len(keys):
        return []
    for column in [c for c in rest if c.level is not None and not c.position]:
        if not _unique(keys, column):
            continue
        if "repeat" not in columns and all(str(each).isdecimal() for each in column.values):
            columns["repeat"] = column
            return [f"the {_name(column)} number the repeats of an item"]
        if "benchmark" not in columns:
            columns["benchmark"] = column
            return [f"the {_name(column)} are benchmarks"]
    named = [c for c in rest if c.level is None and hints.rank("repeat", c.label) and _numbers_repeats(c)]
    whole = [*named, *(c for c in rest if c.position)] if "repeat" not in columns else []
    whole.sort(key=lambda c: -hints.rank("repeat", c.label))
    for column in whole:
        if _unique(keys, column):
            columns["repeat"] = column
            what = "positions in the list number" if column.position else f"{shorten(column.label)} numbers"
            return [f"{what} the repeats of an item"]
    twice = "several records of one model and item"
    for column in rest:
        if column.level is None and len(set(map(str, column.values))) > 1 and _unique(keys, column):
            values = some(list(dict.fromkeys(map(str, column.values))))
            return [
                f"{twice} differ in {shorten(column.label)} ({values}): the first counts; keep one of them, or make it a part of item_id"
            ]
    return [f"{twice}, and no field that numbers them: the first counts; correct item_id or model, or add repeat"]
