"""Which field of an item names its cluster."""

from collections.abc import Mapping
from typing import Final

from monitor.ingest.formats.choices import NONE, Choices

USUAL: Final = ("cluster", "category", "subject", "topic", "domain")
"""What such a field is usually called; the first that is there counts."""


def cluster_field(item: Mapping[str, object], choices: Choices) -> str | None:
    """Return the name of the field of an item that holds its cluster, or None if there is none.

    Examples
    --------
    >>> cluster_field({"question": "?", "subject": "law"}, Choices())
    'subject'
    """
    chosen = choices.cluster or choices.columns.get("cluster")
    if chosen is not None:
        return None if chosen == NONE else chosen
    return next((name for name in USUAL if isinstance(item.get(name), str | int)), None)
