"""Compile loops over arrays with Numba where it is installed; where it is not, Python runs the same functions."""

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
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
    """Compile a function that other loops call, together with them.

    It lacks what Python would call it by: to take some fifty arrays from Python objects is most of the code, and of the compiling.
    """
    return _compiled(function, no_cpython_wrapper=True)


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, on its first call, or take it from the cache."""
    return _compiled(function, cache=mode() == "compiled")


def _compiled(function: _Function, **options: bool) -> _Function:
    """Compile a function in which no reference to an array is counted, which would take most of the time: it allocates nothing."""
    if mode() == "interpreted":
        return function
    _prepare()
    from numba import njit, types  # noqa: PLC0415 - where it is installed

    options |= {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, "boundscheck": mode() == "checked"}
    loop = njit(error_model="numpy", **options)(function)
    loop.get_call_template = partial(_for_any_number, loop.get_call_template, types)
    return loop  # type: ignore[no-any-return]


def _for_any_number(template: Callable[..., Any], types: Any, arguments: Sequence[Any], others: Any) -> Any:  # noqa: ANN401 - of Numba
    """Let a loop have one version for all whole numbers: each constant and each width would be compiled again."""
    return template([types.int64 if isinstance(each, types.Integer) else each for each in arguments], others)


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
