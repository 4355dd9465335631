"""scipy's special functions, without the rest of what ``import scipy.special`` loads.

The functions are ufuncs of one compiled module. The packages around it also load array-API wrappers, numpy.ma and numpy.f2py, which takes
five times as long or more: 0.2 s, where a whole report on a small file should take less than 0.7 s. So only the compiled module is
imported. Where that fails, as with another layout of scipy, the package is imported as usual; the functions are the same.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final

_PACKAGE: Final = "scipy.special"
_PACKAGES: Final = (_PACKAGE, "scipy.linalg")
"""The packages of the compiled module and of the compiled module that it imports (since scipy 1.18)."""

if TYPE_CHECKING:
    from scipy.special import betainc, betaincinv, betaln, erfc, gammaln, nctdtr, ndtr, ndtri, stdtr, stdtrit, xlogy  # noqa: TC004 - set below

__all__ = ["betainc", "betaincinv", "betaln", "erfc", "gammaln", "nctdtr", "ndtr", "ndtri", "stdtr", "stdtrit", "xlogy"]


@contextmanager
def _without_init(name: str) -> Iterator[None]:
    """Let modules of a package be imported without its `__init__`; a later import of the package runs it."""
    spec = find_spec(name) if name not in sys.modules else None
    if spec is None or not spec.submodule_search_locations:
        yield
        return
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    try:
        yield
    finally:
        del sys.modules[name]


def _load() -> ModuleType:
    if _PACKAGE not in sys.modules:
        try:
            with _without_init(_PACKAGES[0]), _without_init(_PACKAGES[1]):
                module = import_module(f"{_PACKAGE}._ufuncs")
        except ImportError:
            pass
        else:
            if all(hasattr(module, name) for name in __all__):
                return module
    return import_module(_PACKAGE)


_module = _load()
globals().update({name: getattr(_module, name) for name in __all__})
