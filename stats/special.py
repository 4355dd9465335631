"""scipy's special functions, without the rest of what ``import scipy.special`` loads.

The functions are ufuncs of one compiled module; the package around them also loads array-API wrappers, numpy.ma and numpy.f2py, which
takes five times as long (0.2 s, where a whole report of a small file shall take less than 0.7 s). So the compiled module is imported by
itself. Where that does not work, as with a scipy that is laid out differently, the package is imported as usual; what is got is the same
either way.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

_PACKAGE = "scipy.special"

if TYPE_CHECKING:
    from scipy.special import betainc, betaincinv, betaln, erfc, gammaln, ndtr, ndtri, stdtr, xlogy  # noqa: TC004 - set below

__all__ = ["betainc", "betaincinv", "betaln", "erfc", "gammaln", "ndtr", "ndtri", "stdtr", "xlogy"]


def _ufuncs_alone() -> ModuleType | None:
    spec = find_spec(_PACKAGE) if _PACKAGE not in sys.modules else None
    if spec is None or not spec.submodule_search_locations:
        return None
    # A bare stand-in lets the submodule be found without running the package; a later import of the package loads it whole.
    package = sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    try:
        module = import_module(f"{_PACKAGE}._ufuncs")
    except ImportError:
        return None
    finally:
        del sys.modules[_PACKAGE]
    return module if all(hasattr(module, name) for name in __all__) else None


_module = _ufuncs_alone() or import_module(_PACKAGE)
globals().update({name: getattr(_module, name) for name in __all__})
