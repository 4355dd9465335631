"""Write samples in the Prometheus and OpenMetrics text formats, fast enough for tens of thousands of series per scrape."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Final

from monitor.serve.metrics.catalogue import Metric

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Exposition:
    """Metric families with their samples; see https://prometheus.io/docs/instrumenting/exposition_formats."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._families: dict[str, tuple[Metric, str, list[str]]] = {
            metric.name: (metric, metric.exposed, []) for metric in metrics
        }

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add one sample; `labels` are the values of the metric's labels."""
        _, name, samples = self._families[metric.name]
        if len(labels) > 1:
            series = ",".join([label(each, text) for each, text in sorted(zip(metric.labels, labels, strict=True))])
        else:
            series = label(metric.labels[0], labels[0]) if labels else ""
        samples.append(f"{name}{{{series}}} {float(value)!r}\n" if series else f"{name} {float(value)!r}\n")

    def add_column(
        self, metric: Metric, series: Sequence[str], values: Iterable[float], extra: tuple[str, str] | None = None
    ) -> None:
        """Add one sample for each finite value; `series` are joined labels, and `extra` is one more label of all of them."""
        tail = "" if extra is None else f",{label(*extra)}"
        _, name, samples = self._families[metric.name]
        samples += [
            f"{name}{{{text}{tail}}} {value!r}\n" for text, value in zip(series, values, strict=True) if isfinite(value)
        ]

    def text(self, *, openmetrics: bool) -> bytes:
        """Return the text so far. OpenMetrics names a family without the suffix of its kind."""
        parts: list[str] = []
        for metric, exposed, samples in self._families.values():
            name = metric.name if openmetrics else exposed
            kind = "gauge" if metric.kind == "info" and not openmetrics else metric.kind
            parts.append(f"# HELP {name} {metric.help}\n# TYPE {name} {kind}\n")
            parts += samples
        return "".join(parts).encode()


@lru_cache(maxsize=4_096)  # a board has some thirty samples in a row
def label(name: str, value: str) -> str:
    r"""Return a label with its value escaped.

    >>> print(label("model", 'a "b"'))
    model="a \"b\""
    """
    return f'{name}="{value.translate(_ESCAPES)}"'
