"""What comes first in a report: names that may mean one model, refused files, and items without a readable line."""

import re
import shlex
from collections.abc import Sequence
from typing import Final

from monitor.words.columns import _NAMED
from monitor.words.counts import counted
from monitor.words.order import because
from schemas.records.reading import Reading
from schemas.records.text import printable
from schemas.results.reasons import Reason, fact
from schemas.results.report import AlikeNames, BenchmarkReport, RefusedDeclaration, RefusedFile

_SWAPPED: Final = 10  # models an item from which, if all are numbered, they may be the items

_NUMBERED: Final = re.compile(r"[0-9]$")

_BY: Final = {"decimal point": "a decimal point (1 and 1.0)"}


def first(benchmark: BenchmarkReport, *, live: bool = False) -> list[str]:
    """Return what comes ahead of the result, a paragraph each; a live board may begin with few items."""
    b = benchmark
    texts = [_alike(each) for each in b.alike if each.apart is not None]
    if b.differing is not None and b.result is None:
        texts.append(f"No verdict: {b.differing}.")
    if b.off_scale is not None and b.result is None:
        texts.append(f"No verdict: {b.off_scale}.")
    texts += not_counted(b)
    many = not live and len(b.models) >= _SWAPPED * max(1, b.items)
    if many and all(_NUMBERED.search(each.model) for each in b.models):
        texts.append(
            f"{len(b.models):,} models and {counted(b.items, 'item')}: if the columns of items and models are swapped, read them with "
            "--columns item_id=MODEL_COLUMN,model=ITEM_COLUMN."
        )
    return [*texts, *(_alike(each) for each in b.alike if each.apart is None)]


def not_counted(benchmark: BenchmarkReport) -> list[str]:
    """Return what of the files was not read, and which declarations do not count, a paragraph each."""
    b = benchmark
    texts = _refused(b.refused, "Refused, so what was read is not taken for the whole benchmark")
    texts += _refused(b.refused_elsewhere, "Refused, of a benchmark without any result")
    if b.unread_items:
        verb, those = ("is", "it") if b.unread_items == 1 else ("are", "them")
        texts.append(
            f"{counted(b.unread_items, 'item')} {verb} missing for all models: every line of {those} was rejected."
        )
    return [*texts, *_declarations(b.refused_declarations)]


def not_read(reading: Reading, unread: int) -> str:
    """Return how many files and items of a benchmark were not read; empty where all were."""
    counts = ((len(reading.refused), "file", "refused"), (unread, "item", "unread"))
    return ", ".join(f"{counted(count, what)} {how}" for count, what, how in counts if count)


def why_not_whole(reading: Reading) -> str | None:
    """Return why the files are not taken for the whole benchmark; None where nothing shows it."""
    if reading.refused:
        return because([fact(Reason.REFUSED_FILES, files=len(reading.refused), path=reading.refused[0].path)])
    return reading.hold or None


def _alike(names: AlikeNames) -> str:
    """Return which names are alike, that nothing is joined, and what to do."""
    by = " or ".join(_BY.get(rule, rule) for rule in names.rules) or "their spelling"
    pairs = ", ".join(" and ".join(map(quoted, group[:_NAMED])) for group in names.names)
    more = f" and {names.groups - len(names.names):,} more" if names.groups > len(names.names) else ""
    if names.kind == "model":
        flags = " ".join(f"--alias {shlex.quote(f'{new}={old}')}" for old, *others in names.names for new in others)
        return (
            f"Names of models differ by {by} alone, and count as different models: {pairs}{more}. If two names are one model, join them "
            f"with {flags}; nothing is joined without it."
        )
    subject = f"Item ids differ by {by} alone, and count as different items: {pairs}{more}."
    remedy = "If they are the same items, write each id in one way, or give them one unit (--units FILE); nothing is joined without it."
    if names.apart is None:
        return f"{subject} {remedy}"
    a = names.apart
    shared = "share no item" if not a.shared else f"share {counted(a.shared, 'item')}"
    return (
        f"{quoted(a.model_a)} and {quoted(a.model_b)} {shared}, and would share {a.would_share:,} if alike ids were one. "
        f"{subject} {remedy}"
    )


def quoted(name: str) -> str:
    """Return a name as a sentence has it: in quotation marks where a space at its end would not be seen.

    >>> quoted("new"), quoted("new ")
    ('new', '"new "')
    """
    return f'"{name}"' if name != name.strip() else name


def _refused(files: Sequence[RefusedFile], what: str) -> list[str]:
    if not files:
        return []
    listed = "; ".join(f"{printable(each.path)} ({each.reason})" for each in files[:_NAMED])
    more = f"; and {counted(len(files) - _NAMED, 'more file')}" if len(files) > _NAMED else ""
    return [f"{what}: {listed}{more}. To go on, {files[0].remedy}."]


def _declarations(refused: Sequence[RefusedDeclaration]) -> list[str]:
    texts = [f"Declaration refused ({printable(each.where)}): {printable(each.reason)}." for each in refused[:_NAMED]]
    more = len(refused) - _NAMED
    return [*texts, f"{counted(more, 'more declaration')} refused."] if more > 0 else texts


def skips_of(benchmark: BenchmarkReport) -> str | None:
    """Return which models have results without a score; None without any."""
    by_model = list(benchmark.skipped_by_model.items())
    if not by_model:
        return None
    names = ", ".join(f"{quoted(model)} {count:,}" for model, count in by_model[:_NAMED])
    more = f" and {counted(len(by_model) - _NAMED, 'more model')}" if len(by_model) > _NAMED else ""
    return f"Results without a score do not count: {names}{more}."
