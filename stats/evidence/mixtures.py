"""Mixtures over the probability theta that a discordant item goes to model A; under the null theta = 1/2.

Accepted names: ``beta(a,b)`` (a Beta prior; ``beta(1,1)`` is the default), ``grid98`` (the paper's: equal weights on
.01, ..., .49, .51, ..., .99) and ``two_point(p,q)`` (equal weights on p < 1/2 < q).

``beta(a,a)``, for any a > 0, bets on smaller gaps the larger a is. For 1,680 wins and 1,454 losses ln e is 4.35, 4.75, 5.56, 6.26 with
a = 1, 2, 10, 100; for 352 and 242 it is 7.26, 7.63, 8.20, 6.96.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stats.numerics.checks import FloatArray
from stats.numerics.halfbeta import log_beta
from stats.numerics.special import betainc, betaln

_FORM = re.compile(r"(beta|two_point)\(([^,()]+),([^,()]+)\)")
_LARGE = 32  # from here on the difference of log-gammas loses digits
_ACCEPTED = "use 'beta(a,b)' with a, b > 0, 'grid98', 'two_point(p,q)' with 0 < p < 1/2 < q < 1"


@dataclass(frozen=True)
class Mixture:
    """A prior over theta: a Beta density, or equal weights on ``atoms``.

    Attributes
    ----------
    name : str
        Canonical name, which `parse_mixture` parses back.
    beta : tuple of float, or None
        The two parameters of the Beta density.
    atoms : tuple of float
        Support of a discrete mixture, in (0, 1) without 1/2; empty for a Beta density.
    """

    name: str
    beta: tuple[float, float] | None = None
    atoms: tuple[float, ...] = ()

    @property
    def weight_a(self) -> float:
        """Return the prior probability of theta > 1/2; 1/2 for every symmetric mixture."""
        if self.beta is None:
            return float(np.mean([theta > 0.5 for theta in self.atoms]))
        a, b = self.beta
        return 0.5 if a == b else float(betainc(b, a, 0.5))

    @property
    def symmetric(self) -> bool:
        """Whether theta and 1 - theta weigh the same, so that the evidence is for the model with more wins."""
        if self.beta is not None:
            return self.beta[0] == self.beta[1]
        return bool(np.allclose(np.sort(self.atoms), np.sort(1 - np.array(self.atoms)), rtol=0, atol=1e-12))

    @property
    def log_norm(self) -> float:
        """Return the logarithm of the Beta function of the prior's parameters."""
        if self.beta is None:
            raise ValueError(f"{self.name} has no Beta density")
        return float(betaln(*self.beta))

    @property
    def log_scaled_norm(self) -> float:
        """Return ln of 2^(a + b) B(a, b), which stays near 1 where B underflows: to 12 digits for parameters up to 1e8."""
        if self.beta is None:
            raise ValueError(f"{self.name} has no Beta density")
        a, b = self.beta
        if min(a, b) < _LARGE:
            return (a + b) * float(np.log(2)) + self.log_norm
        return float(log_beta(np.array([a]), np.array([b]))[0])

    @property
    def theta(self) -> FloatArray:
        """Return the atoms as an array."""
        return np.array(self.atoms)

    @property
    def above(self) -> FloatArray:
        """Return the atoms above 1/2: evidence that A is better."""
        return self.theta[self.theta > 0.5]

    @property
    def below(self) -> FloatArray:
        """Return the atoms below 1/2: evidence that B is better."""
        return self.theta[self.theta < 0.5]


def parse_mixture(name: str | Mixture) -> Mixture:
    """Parse the name of a mixture; a `Mixture` passes through.

    Examples
    --------
    >>> parse_mixture("beta(1, 1)").name
    'beta(1,1)'
    >>> len(parse_mixture("grid98").atoms)
    98
    """
    return name if isinstance(name, Mixture) else _parse(name)


@lru_cache(maxsize=64)
def _parse(name: str) -> Mixture:
    text = name.replace(" ", "").lower()
    if text == "grid98":
        return Mixture("grid98", atoms=tuple(k / 100 for k in range(1, 100) if k != 50))
    match = _FORM.fullmatch(text)
    try:
        kind, first, second = match.groups() if match else ("", "nan", "nan")
        low, high = float(first), float(second)
    except ValueError:
        low = high = float("nan")
    if kind == "beta" and 0 < low < float("inf") and 0 < high < float("inf"):
        return Mixture(f"beta({low:.12g},{high:.12g})", beta=(low, high))
    if kind == "two_point" and 0 < low < 0.5 < high < 1:
        return Mixture(f"two_point({low:.12g},{high:.12g})", atoms=(low, high))
    raise ValueError(f"mixture {name!r} is unknown; {_ACCEPTED}")
