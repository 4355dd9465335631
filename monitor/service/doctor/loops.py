"""Check whether the loops over events are compiled."""

from monitor.engine.loop.compiled import cache_folder, mode
from monitor.service.doctor.finding import Finding, ok, warning

_SUBJECT = "fold"


def check_loops() -> Finding:
    """Return how 0/1 scores under an order policy are folded."""
    if mode() == "interpreted":
        fact = "the loops over events run as Python, at some 20,000 events a second: Numba is not installed"
        return warning(_SUBJECT, fact, "pip install 'rankwatch[fast]'; verdicts stay the same")
    folder = cache_folder()
    if not (folder / "complete").exists():
        fact = f"the loops over events are not compiled yet, which the first fold waits for; they are kept in {folder}"
        return warning(_SUBJECT, fact, "run python -m monitor.compile_loops once, with this Python")
    return ok(_SUBJECT, "the loops over events are compiled")
