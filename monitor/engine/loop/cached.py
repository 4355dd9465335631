"""Where Numba finds compiled loops again; it imports this module by the name that it is given."""

import hashlib
from typing import Any

from numba.core.caching import _CacheLocator

from monitor.engine.loop.compiled import cache_folder


class CompiledLoops(_CacheLocator):  # type: ignore[misc]  # not there where Numba is not installed
    """A folder of this version of the loops, which need not be writable once it is complete."""

    def __init__(self, function: Any, _source: str) -> None:  # noqa: ANN401 - a function
        self._name = f"{function.__module__} {function.__qualname__}"  # wherever the program is

    def ensure_cache_path(self) -> None:
        """Make the folder, unless it is complete."""
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        """Return what the code was compiled from: its digest is in the name of the folder."""
        return cache_folder().name

    def get_disambiguator(self) -> str:
        """Return nothing: no two functions have one name."""
        return hashlib.sha256(self._name.encode()).hexdigest()[:4]

    @classmethod
    def from_function(cls, function: Any, source: str) -> "CompiledLoops":  # noqa: ANN401 - a function
        """Return the locator of any function."""
        locator = cls(function, source)
        locator.ensure_cache_path()
        return locator
