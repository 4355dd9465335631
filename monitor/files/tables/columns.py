"""Match the columns of a table to the fields of an event."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import EVERY_OTHER, FIELDS, MODELS_SEPARATOR, NONE, Choices
from monitor.files.streams.event_lines import prompt_id
from schemas.records.declaration import Declaration
from schemas.records.decode import SCORES, check_object, events_of_columns
from schemas.records.events import Ended, EventFields
from schemas.records.lenient import read_index, read_name, read_score, without_value
from schemas.records.text import Fault, shorten

USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "benchmark": ("benchmark", "task", "dataset"),
    "item_id": ("item_id", "item", "question_id", "doc_id", "sample_id", "id"),
    "model": ("model", "model_name", "model_id"),
    "score": ("score", "correct", "is_correct", "acc", "exact_match"),
    "cluster": ("cluster", "category", "subject"),
    "repeat": ("repeat",),
    "epoch": ("epoch",),
    "unit": ("unit",),
    "run": ("run",),
    "role": ("role",),
}
"""Usual names of the columns in any case; the first of them in the table counts."""

_OF_RUNS: Final = ("run", "role")
"""Fields that a column gives only if it is no other field: many a table calls its model a run."""

_SIDE: Final = re.compile(r"(?:.*[._ ])?(?:model|generator|system|output|answer)[_ ]?(?:a|b|x|y|1|2|left|right)")
_OUTCOME: Final = re.compile(r".*(?:winner|preference).*")
_SHOWN_MODELS: Final = 5
_LIST_LENGTH: Final = 120
_FLAG_MODELS: Final = 20
_COLUMN: Final = "COLUMN"  # what stands in a flag for a name that nothing shows

_PROMPTS: Final = "prompt question instruction query problem input task_id instance_id name key user_input".split()  # noqa: SIM905
"""Columns that name the items where none has a usual name: proposed, and never taken unasked."""

_ANSWERS: Final = frozenset(
    "predicted prediction predictions pred label labels gold golden truth expected target targets reference actual".split()  # noqa: SIM905
)
"""Words in names of an answer, or of its key: neither is a score."""

_FLAG_LENGTH: Final = 100  # models in a flag to copy; more would hide the rest of the message


class ColumnError(ValueError):
    """A table without a column for some field of an event."""


class WideTableError(ColumnError):
    """A table without a column for the score, and several columns that may be models."""


class Columns:
    """The columns of a table."""

    def __init__(
        self,
        names: Sequence[str],
        choices: Choices,
        model: str | None,
        objects: Collection[str] = (),
        first: Mapping[str, Any] | None = None,
    ) -> None:
        battle = find_battle(names)
        if battle:
            raise ColumnError(battle)
        self._model, self._choices, self._benchmark = model, choices, choices.benchmark
        self._columns = _find(names, choices)
        if model is not None:
            self._columns.pop("model", None)
        fields = {*self._columns, *choices.columns}
        by_title = (
            choices.title is not None and model is None and "score" in fields and not {"model", "models"} & fields
        )
        if by_title:
            self._model = choices.title
        self._used = set(self._columns.values())
        others = [name for name in names if name not in self._used]
        self._text = [name for name in others if isinstance(read_score(without_value((first or {}).get(name))), str)]
        self._answers = [name for name in others if first and name not in self._text and names_answer(name)]
        chosen = choices.columns.get("models")
        self._every_other = chosen == EVERY_OTHER
        self._models = None if chosen is None else others if self._every_other else self._listed(chosen, names)
        self._require(names)
        count = Counter(names)
        twice = next((name for name in self.names if count[name] > 1), None)
        if twice is not None:
            raise ColumnError(f"{count[twice]} columns are called {shorten(twice)}; rename or remove all but one")
        if self._every_other and self._text:
            raise ColumnError(self._text_remedy(names))
        self._prefix = next(
            (f"{each}." for each in objects if all(name.startswith(f"{each}.") for name in self._models or [""])), ""
        )
        less = {"score": " (less is better)"} if choices.lower else {}
        pairs = [f"{field} = {shorten(column)}{less.get(field, '')}" for field, column in self._columns.items()]
        if self._models is not None:
            of_object = f" (in {shorten(self._prefix[:-1])})" if self._prefix else ""
            pairs.append(f"models = {', '.join(map(shorten, map(self._model_name, self._models)))}{of_object}")
        if by_title:
            pairs.append(f"model = {shorten(self._model or '')}, by the path (NAME=PATH changes it)")
        self.description = f"columns: {', '.join(pairs)}"

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*self._columns.values(), *(self._models or ())]

    @property
    def choices_used(self) -> tuple[str, ...]:
        """The choices on the command line that the table uses: a column of benchmarks comes before a name for all rows."""
        return ("cluster",) if "benchmark" in self._columns else ("cluster", "benchmark")

    def events(self, row: Mapping[str, Any]) -> Iterator[EventFields | Fault]:
        """Return the events of a row: one, or one for each model that has a column."""
        columns = self._columns
        data = {field: row.get(column) for field, column in columns.items()}
        common = {
            "benchmark": read_name(data["benchmark"]) if "benchmark" in columns else self._benchmark,
            "item_id": read_name(data["item_id"]),
            "cluster": read_name(data.get("cluster")) or None,
            "repeat": read_index(without_value(data.get("repeat"))),
            "epoch": read_index(without_value(data.get("epoch"))),
            "unit": read_name(data.get("unit")) or None,
            "run": read_name(data.get("run")) or None,
            "role": read_name(data.get("role")) or None,
        }
        if self._models is None:
            model = self._model if self._model is not None else read_name(data.get("model"))
            yield event_of({**common, "model": model, "score": self._score(data["score"], common["benchmark"])})
            return
        for column in row if self._every_other else self._models:
            if column in row and column not in self._used:
                score = self._score(row[column], common["benchmark"])
                if isinstance(score, str):
                    yield self._text_fault(column, score, common["benchmark"], common["item_id"])
                else:
                    yield event_of({**common, "model": self._model_name(column), "score": score})

    def usual(self, cells: Mapping[str, Sequence[Any]]) -> list[EventFields] | None:
        """Return the events of rows as `events` does, given the cells of each column; None if a row needs a closer look."""
        rows = len(next(iter(cells.values()), ()))
        try:
            benchmarks = self._cells(cells, "benchmark", rows, read_name, self._benchmark)
            common: dict[str, Sequence[Any]] = {
                "benchmark": benchmarks,
                "item_id": self._cells(cells, "item_id", rows, read_name),
                "cluster": self._cells(cells, "cluster", rows, lambda cell: read_name(cell) or None),
                "repeat": self._cells(cells, "repeat", rows, lambda cell: read_index(without_value(cell)), 0),
                "epoch": self._cells(cells, "epoch", rows, lambda cell: read_index(without_value(cell)), 0),
                "unit": self._cells(cells, "unit", rows, lambda cell: read_name(cell) or None),
                "run": self._cells(cells, "run", rows, lambda cell: read_name(cell) or None),
                "role": self._cells(cells, "role", rows, lambda cell: read_name(cell) or None),
            }
            if self._models is None:
                models = self._cells(cells, "model", rows, read_name, self._model)
                scores: Sequence[Any] = self._scores(cells[self._columns["score"]], benchmarks)
            else:
                picked = cells if self._every_other else self._models
                names = [name for name in picked if name in cells and name not in self._used]
                common = {field: [x for x in values for _ in names] for field, values in common.items()}
                models = [self._model_name(name) for name in names] * rows
                every = (self._scores(cells[name], benchmarks) for name in names)
                scores = list(chain.from_iterable(zip(*every, strict=True)))
        except (TypeError, KeyError):  # a cell that is a list or an object, or no such column
            return None
        return events_of_columns({**common, "model": models, "score": scores})

    def _cells(
        self,
        cells: Mapping[str, Sequence[Any]],
        field: str,
        rows: int,
        read: Callable[[object], object],
        default: object = None,
    ) -> Sequence[Any]:
        return _read_cells(cells[self._columns[field]], read) if field in self._columns else [default] * rows

    def _scores(self, cells: Sequence[Any], benchmarks: Sequence[Any]) -> Sequence[Any]:
        if not self._choices.scale and not self._choices.lower:
            return _read_cells(cells, lambda cell: read_score(without_value(cell)))
        return [self._score(*each) for each in zip(cells, benchmarks, strict=True)]

    def _listed(self, chosen: str, names: Sequence[str]) -> list[str]:
        """Return the columns that are named as models."""
        models = list(dict.fromkeys(each.strip() for each in chosen.split(MODELS_SEPARATOR)))
        for name in models:
            if name not in names:
                raise _missing("the model " + shorten(name), names, "correct the name in --columns models=A|B")
            if name in self._used:
                raise ColumnError(f"{shorten(name)} is a column of another field too; omit it in --columns models=A|B")
        return models

    def _text_fault(self, column: str, text: str, benchmark: object, item: object) -> Fault:
        reason = f'column {shorten(column)} holds "{shorten(text)}", which is not a score; use {SCORES}'
        if self._every_other:
            reason += ". If the column is not a model, name those that are with --columns 'models=A|B'"
        about, scored = (each if isinstance(each, str) else None for each in (benchmark, item))
        return Fault("score", f'"{shorten(text)}"', reason, about, scored)

    def _model_name(self, column: str) -> str:
        return column.removeprefix(self._prefix)

    def _score(self, value: object, benchmark: object) -> object:
        return self._choices.directed(self._choices.scaled(read_score(without_value(value)), benchmark))

    def _require(self, names: Sequence[str]) -> None:
        missing = [field for field in ("item_id", "score") if field not in self._columns]
        if self._models is not None:
            missing = [field for field in missing if field != "score"]
        if "score" in missing and self._models is None and len(self._answers) > 1:
            raise _missing("the score", names, answer_remedy(self._answers))
        if missing and (wide := self._wide_remedy(names)):
            raise WideTableError(_missing(" and ".join(missing), names, wide))
        if self._models is None and "model" not in self._columns and self._model is None:
            missing = [field for field in ("item_id", "model", "score") if field in {*missing, "model"}]
        if missing:
            item = self._item_column(names)
            named = ",".join(f"{field}={item if field == 'item_id' else 'COLUMN'}" for field in missing)
            flag = f"--columns {shlex.quote(named)}"
            named = f"{'it' if len(missing) == 1 else 'them'} with {flag}"
            named += ", or the model with NAME=PATH (the field model of an upload)" if missing == ["model"] else ""
            listed = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
            raise _missing(listed, names, f"name {named}; `rankwatch map FILE` proposes a mapping")
        if self._models is not None and not self._models:
            raise _missing("a model", names, "add a column for each model, or omit --columns models=*")
        if "benchmark" not in self._columns and self._benchmark is None:
            remedy = "name it with --columns benchmark=COLUMN, or the benchmark with --benchmark NAME"
            raise _missing("the benchmark", names, remedy)

    def _wide_remedy(self, names: Sequence[str]) -> str | None:
        """Return what to do if the table has a column for each model, or None if it has columns for a model or a score."""
        item = None if "item_id" in self._columns else self._item_column(names)
        models = [name for name in names if name not in {*self._used, *self._text, item}]
        if self._model is not None or self._models is not None or len(models) < 2:
            return None
        if {"model", "score"} & self._columns.keys():
            return None
        missing = "" if item is None else f"item_id={item},"
        flags = (
            f"--columns {shlex.quote(f'{missing}models={_flag(models) if {*self._text} - {item} else EVERY_OTHER}')}"
        )
        if "benchmark" not in self._columns and self._benchmark is None:
            flags += " --benchmark NAME"
        shown = _shown(models)
        if item == _COLUMN and not self._text:
            return f"if every other column is a model, add {flags}; else `rankwatch map FILE` proposes a mapping"
        return f"if {shown} are models, add {flags}; else name the score with --columns score=COLUMN"

    def _item_column(self, names: Sequence[str]) -> str:
        """Return the column that most likely names the items, as a flag has it; a placeholder where nothing shows which."""
        lower = {name.lower(): name for name in reversed(names) if name not in self._used}
        likely = [lower[each] for each in _PROMPTS if each in lower] or (self._text if len(self._text) == 1 else [])
        return next((name for name in likely if name and len(name) <= _FLAG_LENGTH and "," not in name), _COLUMN)

    def _text_remedy(self, names: Sequence[str]) -> str:
        """Return what to do about columns of text where every other column would be a model."""
        models = [name for name in names if name not in self._used and name not in self._text]
        flags = ",".join(f"{field}={column}" for field, column in self._choices.columns.items() if field != "models")
        named = shlex.quote(f"{flags}{',' if flags else ''}models={_flag(models)}")
        verb = "holds" if len(self._text) == 1 else "hold"
        remedy = f"name the columns that are models: --columns {named}"
        return (
            f"{_shown(self._text)} {verb} text and not scores, so models=* does not take every other column; {remedy}"
        )


def _shown(names: Sequence[str], most: int = _SHOWN_MODELS) -> str:
    more = len(names) - most
    return ", ".join(map(shorten, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def _flag(models: Sequence[str]) -> str:
    """Return columns as the value of `models=`; of many only the form."""
    named = MODELS_SEPARATOR.join(map(shorten, models))
    return (
        named if models and len(models) <= _FLAG_MODELS and len(named) <= _FLAG_LENGTH else MODELS_SEPARATOR.join("AB")
    )


def names_answer(name: str) -> bool:
    """Return whether a name has a word of an answer, or of its key.

    >>> names_answer("predicted_label"), names_answer("gpt-4")
    (True, False)
    """
    return not _ANSWERS.isdisjoint(re.split(r"[\W_]+", name.lower()))


def answer_remedy(names: Sequence[str]) -> str:
    """Return what to do with columns of answers and their keys."""
    return f"{_shown(names)} are answers and their keys, and no scores; add a column that is 1 where they are equal, else 0"


def find_battle(names: Sequence[str]) -> str | None:
    """Return why rows with these columns are not scores but battles of two models, or None.

    >>> find_battle(["question_id", "model_a", "model_b", "winner"])[:61]
    'model_a, model_b and winner make a row a battle of two models'
    >>> find_battle(["item_id", "model", "score"])
    """
    sides = [name for name in names if _SIDE.fullmatch(name.lower())]
    outcome = next((name for name in names if _OUTCOME.fullmatch(name.lower())), None)
    if len(sides) < 2 or outcome is None:
        return None
    named = f"{shorten(sides[0])}, {shorten(sides[1])} and {shorten(outcome)}"
    return (
        f"{named} make a row a battle of two models; name its columns item_id (the prompt), model_a, model_b and winner (a, b or tie), and "
        "omit --columns"
    )


def _missing(field: str, names: Sequence[str], remedy: str) -> ColumnError:
    # All of many or long names would push the remedy out of the message.
    shown = [shorten(name) or "(no name)" for name in names]
    most = next((k for k in range(1, len(shown)) if len(", ".join(shown[: k + 1])) > _LIST_LENGTH), len(shown))
    listed = _shown(shown, most) or "the table"
    return ColumnError(f"no column for {field} in {listed}; {remedy}")


def _find(names: Sequence[str], choices: Choices) -> dict[str, str]:
    lower = {name.lower(): name for name in reversed(names)}
    chosen = {field: column for field, column in choices.columns.items() if field != "models"}
    if choices.cluster is not None:
        chosen["cluster"] = choices.cluster
    for field, column in chosen.items():
        if column not in names and not (field == "cluster" and column == NONE):
            raise _missing(
                field, names, f"{shorten(column)} is not one of them; choose another with --columns {field}=COLUMN"
            )
    columns = {}
    for field in FIELDS:
        if field in chosen:
            columns[field] = chosen[field]
        elif "models" in choices.columns and field in {"model", "score"}:
            continue
        elif (usual := next((lower[name] for name in USUAL[field] if name in lower), None)) is not None and not (
            field in _OF_RUNS and usual in columns.values()
        ):
            columns[field] = usual
    if choices.cluster == NONE:
        columns.pop("cluster", None)
    return columns


def flatten(record: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its nested fields named by their path.

    >>> flatten({"id": 1, "meta": {"subject": "law"}})
    {'id': 1, 'meta.subject': 'law'}
    """
    fields: dict[str, Any] = {}
    levels = [("", iter(record.items()))]  # no recursion: it would copy each field once a level
    while levels:
        prefix, level = levels[-1]
        for name, value in level:
            if isinstance(value, dict):
                levels.append((f"{prefix}{name}.", iter(value.items())))
                break
            fields[f"{prefix}{name}" if prefix else name] = value
        else:
            levels.pop()
    return fields


def _read_cells(cells: Sequence[Any], read: Callable[[object], object]) -> Sequence[Any]:
    """Read the cells of a column: equal ones of one type once."""
    kinds = set(map(type, cells)) - {type(None)}
    if read is read_name and kinds <= {str}:
        return cells
    if len(kinds) > 1:  # 1 and true are equal
        return [read(cell) for cell in cells]
    known = {cell: read(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


def event_of(data: dict[str, Any], kind: type[EventFields] = EventFields) -> EventFields | Fault:
    """Return the event of these fields. The id of an item that is named by its prompt is left for the writer, which notes it."""
    item = data["item_id"]
    try:
        if prompt_id(item) is None:
            return msgspec.convert(data, kind)
        event = msgspec.convert({**data, "item_id": "prompt"}, kind)
    except (msgspec.ValidationError, UnicodeError, OverflowError):
        record = check_object({**data, "item_id": prompt_id(item) or item})
        assert not isinstance(record, Declaration | Ended), "no field is called `declare`, and one `item_id`"
        return record
    event.item_id = item
    return event
