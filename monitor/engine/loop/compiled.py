"""Compile loops over arrays with Numba where it is installed; where it is not, Python runs the same functions."""

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

SWITCH: Final = "RANKWATCH_LOOPS"
"""Variable of the environment: `interpreted` compiles nothing, `checked` compiles with the bounds of arrays checked."""

KERNELS: Final = Path(__file__).with_name("kernels.py")


@cache
def mode() -> str:
    """Return how the loops run: `compiled`, `checked` or `interpreted`."""
    wanted = os.environ.get(SWITCH, "compiled")
    return wanted if wanted in {"checked", "interpreted"} else "compiled" if find_spec("numba") else "interpreted"


def compiled(function: _Function) -> _Function:
    """Compile a function on its first call, or take it from the cache.

    No reference to an array is counted, which would take most of the time: so a function allocates nothing.
    """
    if mode() == "interpreted":
        return function
    _prepare()
    from numba import njit  # noqa: PLC0415 - where it is installed

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
    if mode() == "checked":
        return njit(boundscheck=True, **options)(function)  # type: ignore[no-any-return]
    return njit(cache=True, **options)(function)  # type: ignore[no-any-return]


@cache
def _prepare() -> None:
    """Let Numba keep compiled code where it is found again: next to the program, or where only this user can write."""
    os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "monitor.engine.loop.cached.CompiledLoops")
    # A program for any processor of the family: its cache is good on all of them, and no slower.
    os.environ.setdefault("NUMBA_CPU_NAME", "generic")
    os.environ.setdefault("NUMBA_CPU_FEATURES", "")


def cache_folder() -> Path:
    """Return where compiled loops are kept: next to the program if they are there or can be written there, else with the user."""
    key = f"{sys.implementation.cache_tag}-{platform.machine()}-{_digest()}"
    near = KERNELS.with_name("__pycache__") / f"loops-{key}"
    if (near / "complete").is_file() or os.access(KERNELS.parent, os.W_OK):
        return near
    base = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.access(Path.home(), os.W_OK) else "")
    return Path(base or tempfile.gettempdir()) / "rankwatch" / f"loops-{key}"


@cache
def _digest() -> str:
    """Return a digest of what compiled loops depend on."""
    from importlib.metadata import version  # noqa: PLC0415

    files = sorted(path for path in KERNELS.parent.glob("*.py") if path.stem != "board")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    return hashlib.sha256(f"{version('numba')} {version('llvmlite')} {text}".encode()).hexdigest()[:12]
