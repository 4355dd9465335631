"""Samples as the text of a scrape: written as they come, for tens of thousands of series are told at a time."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final

from monitor.serve.metrics.catalogue import Metric

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Exposition:
    """Families of the catalogue with their samples; see https://prometheus.io/docs/instrumenting/exposition_formats.

    Parameters
    ----------
    metrics : iterable of Metric
        The families, in the order in which they are written; those without a sample too.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._families: dict[Metric, list[str]] = {metric: [] for metric in metrics}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add one sample; `labels` are the values of the metric's labels."""
        series = ",".join(labelled(name, text) for name, text in sorted(zip(metric.labels, labels, strict=True)))
        self._families[metric].append(f"{metric.exposed}{f'{{{series}}}' if series else ''} {float(value)!r}\n")

    def add_column(
        self, metric: Metric, series: Sequence[str], values: Iterable[float], more: tuple[str, str] | None = None
    ) -> None:
        """Add a sample for each of several series, where its value is finite.

        Parameters
        ----------
        metric : Metric
        series : sequence of str
            Labels of each, as `labelled` writes them, joined by commas.
        values : iterable of float
        more : tuple of str, optional
            A label that they have in common besides, and its value.
        """
        name, tail = metric.exposed, "" if more is None else f",{labelled(*more)}"
        self._families[metric] += [
            f"{name}{{{text}{tail}}} {value!r}\n" for text, value in zip(series, values, strict=True) if isfinite(value)
        ]

    def text(self, *, openmetrics: bool) -> bytes:
        """Return what is told so far; OpenMetrics names a family without the suffix of its kind, and goes on after this."""
        parts: list[str] = []
        for metric, samples in self._families.items():
            name = metric.name if openmetrics else metric.exposed
            kind = "gauge" if metric.kind == "info" and not openmetrics else metric.kind
            parts.append(f"# HELP {name} {metric.help}\n# TYPE {name} {kind}\n")
            parts += samples
        return "".join(parts).encode()


def labelled(name: str, value: str) -> str:
    r"""Write a label; its value may hold anything.

    Examples
    --------
    >>> print(labelled("model", 'a "b"'))
    model="a \"b\""
    """
    return f'{name}="{value.translate(_ESCAPES)}"'
