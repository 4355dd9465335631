"""The words of a verdict that every surface shares: what it assumes, and for which family it holds."""

from typing import Final

ASSUMPTIONS: Final = {
    "completion": "the declared number of items is the whole benchmark",
    "committed": "the items are a sample, and their order comes from the committed seed",
    "trusted": "the arrival order does not depend on outcomes or clusters",
}
"""What a verdict assumes under each order policy; a sentence starts with "Assumes that"."""

SCOPES: Final = {"anytime": "for this pair only", "anytime_family": "family-wise"}
"""What each anytime procedure controls the error of."""


def assumption(policy: str, items: int | None = None) -> str | None:
    """Return what verdicts assume under an order policy; None under policy `none`.

    Parameters
    ----------
    policy : str
    items : int, optional
        The number of items read, if these are taken for the whole benchmark and no policy was declared.

    Examples
    --------
    >>> assumption("completion", 12_032)
    'the 12,032 items read are the whole benchmark'
    """
    if items is not None:
        return f"the {items:,} items read are the whole benchmark"
    return ASSUMPTIONS.get(policy)
