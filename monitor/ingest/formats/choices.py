"""What can be chosen where a log offers more than one reading: given on the command line, the same for all commands."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

FIELDS: Final = ("benchmark", "item_id", "model", "score", "cluster", "repeat", "epoch")
"""The fields of an event that a column can stand for."""

EVERY_OTHER: Final = "*"
"""`models=*`: every column that stands for nothing else is a model, its cells the scores of that model."""

NONE: Final = "none"
"""`--cluster none`: no clusters, whatever the log holds."""


class ChoiceError(ValueError):
    """A choice that cannot be meant."""


class Selection:
    """A name to choose, for every benchmark or for one.

    Parameters
    ----------
    option : str
        The option, as an error names it.
    entries : iterable of str
        ``NAME`` or ``BENCHMARK=NAME`` each.

    Raises
    ------
    ChoiceError
        If a name is empty.

    Examples
    --------
    >>> metric = Selection("--metric", ["acc", "gsm8k=exact_match"])
    >>> metric.of("gsm8k"), metric.of("mmlu")
    ('exact_match', 'acc')
    """

    def __init__(self, option: str, entries: Iterable[str] = ()) -> None:
        self._names: dict[str | None, str] = {}
        for entry in entries:
            benchmark, equals, name = entry.rpartition("=")
            if not name or (equals and not benchmark):
                raise ChoiceError(f"{option} {entry}: give a name, or BENCHMARK=NAME")
            self._names[benchmark if equals else None] = name

    def of(self, benchmark: str) -> str | None:
        """Return the name chosen for a benchmark, or None where nothing was chosen."""
        return self._names.get(benchmark, self._names.get(None))


def _no(_: str) -> bool:
    return False


@dataclass(frozen=True)
class Choices:
    """Everything that can be chosen about how logs are read.

    Attributes
    ----------
    metric, filter : Selection
        Of lm-evaluation-harness; a metric that ends with ``:lower`` counts as one minus its value.
    scorer : Selection
        Of Inspect: a scorer, or ``SCORER.KEY`` of one that gives several values.
    cluster : str, optional
        The field of a document or of a sample's metadata that names its cluster; `NONE` for no clusters.
    benchmark : str, optional
        The name of the benchmark: instead of the task's in a native log, and for tables that do not name one.
    columns : mapping of str to str
        From the fields of an event to the columns of a table, or the fields of a JSON object (dotted where nested).
    declared : callable
        Says whether the command line declares a benchmark: then what a log says of its item count is not declared.
    """

    metric: Selection = field(default_factory=lambda: Selection("--metric"))
    filter: Selection = field(default_factory=lambda: Selection("--filter"))
    scorer: Selection = field(default_factory=lambda: Selection("--scorer"))
    cluster: str | None = None
    benchmark: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    declared: Callable[[str], bool] = _no

    @classmethod
    def parse(
        cls,
        *,
        metric: Iterable[str] = (),
        filter: Iterable[str] = (),  # noqa: A002 - the name of the option
        scorer: Iterable[str] = (),
        cluster: str | None = None,
        benchmark: str | None = None,
        columns: Iterable[str] = (),
        declared: Callable[[str], bool] = _no,
    ) -> Self:
        """Read the options of the command line.

        Raises
        ------
        ChoiceError
            If one of them cannot be meant.
        """
        return cls(
            Selection("--metric", metric),
            Selection("--filter", filter),
            Selection("--scorer", scorer),
            cluster,
            benchmark,
            parse_columns(columns),
            declared,
        )


def parse_columns(entries: Iterable[str]) -> dict[str, str]:
    """Read ``FIELD=COLUMN,...`` as often as it is given.

    Raises
    ------
    ChoiceError
        If a field is unknown, or stands twice.

    Examples
    --------
    >>> parse_columns(["model=system,item_id=question", "score=ok"])
    {'model': 'system', 'item_id': 'question', 'score': 'ok'}
    """
    found: dict[str, str] = {}
    for entry in (part.strip() for text in entries for part in text.split(",")):
        name, _, column = entry.partition("=")
        if name not in (*FIELDS, "models") or not column:
            raise ChoiceError(
                f"--columns {entry}: give FIELD=COLUMN with a field of {', '.join(FIELDS)}, or models={EVERY_OTHER}"
            )
        if name == "models" and column != EVERY_OTHER:
            raise ChoiceError(
                f"--columns {entry}: give models={EVERY_OTHER}: every column that is nothing else is a model"
            )
        if found.setdefault(name, column) != column:
            raise ChoiceError(f"--columns: {name} is given twice: {found[name]} and {column}")
    if "models" in found and found.keys() & {"model", "score"}:
        raise ChoiceError(f"--columns: models={EVERY_OTHER} takes the place of model and score: leave those out")
    return found
