"""Choices that are made once scores are known: equal models, the rate of false verdicts, and what their sentences assume.

`python -m tests.calibration.provenance` makes 600 streams of each attack and keeps the counts.
"""

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from monitor.cli.shared.files import Resolution, read_results
from monitor.cli.shared.options import DeclareOptions, LogOptions
from monitor.view.build import benchmark_report, report_views
from monitor.view.gates.comparison import compare_with_margin
from monitor.view.gates.margin import Margin
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import board_views
from schemas.records.suites import Member, Suite
from stats import committed_order, exact_p
from tests.calibration import streams
from tests.calibration.streams import ALPHA, ITEMS, capacity, exchangeable, listed, named, packed, plain
from tests.fold_log import FoldLog

KEPT: Final = Path(__file__).with_name("provenance.json")
SEEDS: Final = 30
METRICS: Final = 5
Rng = np.random.Generator


class Seen(NamedTuple):
    """What an attack comes to: whether a verdict is false, and whether its facts name what the attack breaks."""

    false: bool
    named: bool = True


class Attack(NamedTuple):
    """An attack, its policy, and the codes of the assumptions of which each false verdict names one; none where the attack is refused."""

    row: str
    policy: str
    run: Callable[[Rng], Seen]
    codes: tuple[str, ...] = ()
    refused: str = ""
    """How rankwatch refuses it: then the rate is at most alpha."""


def seen(log: FoldLog, codes: tuple[str, ...]) -> Seen:
    """Return whether a log of equal models has a family-wise decision in force, and whether all of them name one of the codes."""
    found = [log.bench.changes[each.field] for each in log.bench.decisions() if each.claim == "anytime_family"]
    return Seen(bool(found), all({each["code"] for each in change.assumptions} & {*codes} for change in found))


def declared(**fields: object) -> dict[str, object]:
    """Return a declaration."""
    return {"declare": "bench", "alpha": ALPHA, **fields}


def sent(stream: streams.Stream, clusters: list[str] | None = None) -> bytes:
    """Return a record of the events of a stream."""
    return msgspec.json.encode(packed(stream, clusters=clusters))


def _best_seed(d: np.ndarray) -> str:
    return max(
        map(str, range(SEEDS)),
        key=lambda seed: np.abs(np.cumsum(d[committed_order(seed, listed(len(d)))])[: len(d) // 2]).max(),
    )


def seed_again(rng: Rng) -> Seen:
    """Commit to a seed, and to the best of 30 others before the first score and after a rejected one."""
    scores, ids = exchangeable(rng, ITEMS, 2), listed()
    best = {"policy": "committed", "seed": _best_seed(scores[:, 0, 0] - scores[:, 1, 0])}
    first = declared(item_ids=ids, order={"policy": "committed", "seed": str(rng.integers(2**63))}, family=capacity(2))
    again = first | {"order": best}
    log = FoldLog(first, again, {"benchmark": "bench", "item_id": "unknown", "model": "x", "score": 1}, again)
    assert len(log.letters) == 3
    log.send(sent(plain(scores)))
    return seen(log, ())


def ground(rng: Rng) -> Seen:
    """Commit to the best of 30 seeds at first, or to ids by which a public seed is good: the ids were not fixed before the seed."""
    scores = exchangeable(rng, ITEMS, 2)
    order = {"policy": "committed", "seed": _best_seed(scores[:, 0, 0] - scores[:, 1, 0])}
    return seen(
        FoldLog(declared(item_ids=listed(), order=order, family=capacity(2)), sent(plain(scores))), ("committed",)
    )


def _best_pair(scores: np.ndarray) -> list[str]:
    first, second = np.triu_indices(scores.shape[1], 1)
    d = scores[:, first, 0] - scores[:, second, 0]
    best = int(np.argmin(exact_p((d > 0).sum(axis=0), (d < 0).sum(axis=0))))
    return [named(int(first[best])), named(int(second[best]))]


def family_late(rng: Rng) -> Seen:
    """Declare the best-looking pair of 20 models as the family, once its scores are in."""
    scores = exchangeable(rng, ITEMS, 20)
    log = FoldLog(declared(items=ITEMS), sent(plain(scores)))
    log.send(declared(items=ITEMS, family={"models": _best_pair(scores)}, version=2))
    return seen(log, ("declared_late",))


def weights_late(rng: Rng) -> Seen:
    """Weight the clusters in which one model leads 1, and all others .001, once the scores are in."""
    scores = exchangeable(rng, ITEMS, 2)
    names = [f"cluster-{k // 5}" for k in range(ITEMS)]
    lead = (scores[:, 0, 0] - scores[:, 1, 0]).reshape(-1, 5).sum(axis=1)
    weights = {f"cluster-{k}": 1.0 if x > 0 else 0.001 for k, x in enumerate(lead.tolist())}
    first = declared(items=ITEMS, family=capacity(2))
    log = FoldLog(first, sent(plain(scores), names))
    clusters = dict.fromkeys(dict.fromkeys(names), 5)
    log.send(first | {"weights": weights, "clusters": clusters, "version": 2})
    return seen(log, ("declared_late",))


def count_late(rng: Rng) -> Seen:
    """Declare the items so far as all of them once p is small."""
    stream = streams.up_to(lambda b, c: exact_p(b, c) <= ALPHA, exchangeable(rng, 300, 2))
    log = FoldLog(declared(items=300, family=capacity(2)), sent(stream))
    log.send(declared(items=int(stream[0].max()) + 1, family=capacity(2), version=2))
    return seen(log, ("declared_late",))


def _files(texts: dict[str, dict[str, Any]], flags: DeclareOptions, resolution: Resolution | None = None) -> Any:
    with TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        for name, record in texts.items():
            Path(folder, name).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in record["events"]))
        return read_results([folder], 0.1, declared=flags, resolution=resolution)


def flags_late(rng: Rng) -> Seen:
    """Give `report` the best-looking pair of 20 models by a flag."""
    scores = exchangeable(rng, ITEMS, 20)
    flags = DeclareOptions(models=[",".join(_best_pair(scores))])
    boards = _files({"runs.jsonl": packed(plain(scores))}, flags)
    report = benchmark_report(boards["bench"], pairs="all", assert_complete=True)
    false = any(pair.decided.anytime_family is not None for pair in report.pairs)
    return Seen(false, any(each["code"] == "declared_late" for each in report.assumptions))


def metric_late(rng: Rng) -> Seen:
    """Read a table of two equal models by the one of five metrics in which they differ most."""
    scores = np.stack([exchangeable(rng, ITEMS, 2)[:, :, 0] for _ in range(METRICS)], axis=2)
    d = scores[:, 0] - scores[:, 1]
    best = int(np.argmin(exact_p((d > 0).sum(axis=0), (d < 0).sum(axis=0))))
    lines = [",".join(["benchmark", "item_id", "model", *(f"metric_{k}" for k in range(METRICS))])]
    for (item, model), row in zip(np.ndindex(ITEMS, 2), scores.reshape(-1, METRICS).tolist(), strict=True):
        lines.append(",".join(["bench", str(item), named(model), *map(str, row)]))
    with TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = Path(folder, "runs.csv")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        boards = read_results([str(path)], 0.1, LogOptions(columns=[f"score=metric_{best}"]))
    report = benchmark_report(boards["bench"], pairs="all", assert_complete=True)
    false = any(pair.decided.anytime_family is not None for pair in report.pairs)
    return Seen(false, any(each["code"] == "score_choice" for each in report.assumptions))


def _until_right(rng: Rng, scores: np.ndarray) -> streams.Stream:
    """Send null for every wrong answer of even models, and what up to five further runs of it come to if one is right."""
    item, model, repeat, score = plain(scores)
    easy = scores.mean(axis=1)[item, 0]
    retried = (model % 2 == 0) & (score == 0)
    again = np.where(retried & (rng.random(item.size) < 1 - (1 - np.clip(easy, 0.2, 0.9)) ** 5), 1, score)
    columns = [
        (item, model, repeat, np.where(retried, -1, score)),
        tuple(x[retried] for x in (item, model, repeat, again)),
    ]
    return tuple(map(np.concatenate, zip(*columns, strict=True)))


def nulls(rng: Rng, policy: str, rule: str = "filled", codes: tuple[str, ...] = ("score_choice",)) -> Seen:
    """Run wrong answers of one model again until they are right, with null in between."""
    stream = _until_right(rng, exchangeable(rng, ITEMS, 2))
    spec = {"order": "trusted"} if policy == "trusted" else {"items": ITEMS}
    return seen(FoldLog(declared(**spec, family=capacity(2), nulls=rule), sent(stream)), codes)


def alias(rng: Rng) -> Seen:
    """Run a model twice, and join the two runs by an alias: the better one of each item first."""
    scores = exchangeable(rng, ITEMS, 2)
    again = exchangeable(rng, ITEMS, 2)[:, 0, 0]
    events = packed(plain(scores))["events"]
    better = [event for event in events if event.model == named(0) and event.score]
    second = [
        msgspec.structs.replace(events[0], item_id=str(k), model="again", score=1)
        for k in np.flatnonzero(again).tolist()
    ]
    rest = [event for event in events if event.model != named(0) or not event.score]
    spec = declared(items=ITEMS, family=capacity(2), aliases={"again": named(0)})
    return seen(FoldLog(spec, msgspec.json.encode({"events": better + second + rest})), ("score_choice",))


def retried(rng: Rng, rule: str) -> Seen:
    """Gate a candidate that is 8 points worse, at a margin of 2 points, with a retried run that sorts first."""
    easy = rng.uniform(0.55, 0.95, ITEMS * 4)
    old, new = rng.random(easy.size) < easy, rng.random(easy.size) < easy - 0.08
    better = new | (rng.random(easy.size) < 0.35)
    repeat = np.zeros(easy.size, int)
    runs = {"1-retry.jsonl": (0, better), "2-first.jsonl": (0, new), "old.jsonl": (1, old)}
    files = {
        name: packed((np.arange(easy.size), np.full(easy.size, model), repeat, scores.astype(int)))
        for name, (model, scores) in runs.items()
    }
    boards = _files(files, DeclareOptions(), Resolution(rule, named(1)))
    ((view),) = report_views(boards, pairs="all", assert_complete=True)
    (pair,) = view.report.pairs
    comparison = compare_with_margin(view.table, pair, named(0), named(1), Margin(0.02), rule)
    return Seen(comparison.verdict == "pass", any(each["code"] == "score_choice" for each in comparison.assumptions))


SPELLINGS: Final = ("q{}", "Q{}", "q0{}", "Q0{}", "q{} ")


def spelled(rng: Rng) -> Seen:
    """Report each item under five spellings of its id: they stay apart, are named first, and are no independent items."""
    record = packed(plain(exchangeable(rng, 40, 2)))
    events = [
        msgspec.structs.replace(each, item_id=spelling.format(each.item_id))
        for each in record["events"]
        for spelling in SPELLINGS
    ]
    boards = _files({"runs.jsonl": record | {"events": events}}, DeclareOptions())
    report = benchmark_report(boards["bench"], pairs="all", assert_complete=True)
    false = any(pair.decided.anytime_family is not None for pair in report.pairs)
    listed_first = [each.groups for each in report.alike] == [40]
    return Seen(false, listed_first and any(each["code"] == "independent" for each in report.assumptions))


def copies(rng: Rng, *, distinct: bool) -> Seen:
    """Report a suite of five members that are copies of one another."""
    scores, models = exchangeable(rng, 40, 2), [named(0), named(1)]
    members = [f"part-{k}" for k in range(5)]
    log = FoldLog()
    for name in members:
        log.send({"declare": name, "items": 40, "family": {"models": models}})
        events = [msgspec.structs.replace(each, benchmark=name) for each in packed(plain(scores))["events"]]
        log.send(msgspec.json.encode({"events": events}))
    suite = Suite("overall", dict.fromkeys(members, Member()), distinct=distinct)
    (view, *_) = report_views(board_views([log.partition]), pairs="all", assert_complete=False, suites=[suite])
    assert isinstance(view.table, PairTable)
    false = any(pair.decided.anytime is not None for pair in view.report.pairs)
    return Seen(false, any(each["code"] == "distinct" for each in view.report.assumptions))


def _attacks() -> Iterator[Attack]:
    yield Attack("a second seed, the best of 30, before the first score", "committed", seed_again, refused="refused")
    yield Attack("the best of 30 seeds committed first", "committed", ground, ("committed",))
    yield Attack(
        "the best-looking pair of 20 models declared as the family", "completion", family_late, ("declared_late",)
    )
    yield Attack("the same, by a flag of `report`", "completion", flags_late, ("declared_late",))
    yield Attack(
        "weight 1 where one leads, .001 elsewhere, declared last", "completion", weights_late, ("declared_late",)
    )
    yield Attack("the item count declared once p <= .05, 300 items", "completion", count_late, ("declared_late",))
    yield Attack("the best of five metrics, by a flag of `report`", "completion", metric_late, ("score_choice",))
    for policy, codes in (("completion", ("score_choice",)), ("trusted", ("trusted", "score_choice"))):
        yield Attack(
            "wrong answers null, run again until right, filled",
            policy,
            partial(nulls, policy=policy, codes=codes),
            codes,
        )
    final = partial(nulls, policy="completion", rule="final")
    yield Attack("the same, `nulls: final`", "completion", final, ("score_choice",))
    yield Attack("two runs joined by an alias, right answers first", "completion", alias, ("score_choice",))
    first, worst = partial(retried, rule="first"), partial(retried, rule="worst")
    yield Attack(
        "a gate, 8 points worse, a retried run sorts first, `--conflicts first`", "files", first, ("score_choice",)
    )
    yield Attack("the same, by default", "files", worst, refused="conflicts at their worst")
    held, stated = partial(copies, distinct=False), partial(copies, distinct=True)
    yield Attack("a suite of five copies of one benchmark", "completion", held, refused="held")
    yield Attack("the same, `--distinct`", "completion", stated, ("distinct",))
    yield Attack("five spellings of the id of each of 40 items", "completion", spelled, ("independent",))


ATTACKS: Final = {f"{each.row}, {each.policy}": each for each in _attacks()}


def measure(name: str, runs: int, first: int = 0) -> dict[str, Any]:
    """Make streams of an attack; count the false verdicts, and those that do not name what the attack breaks."""
    attack = ATTACKS[name]
    found = [attack.run(np.random.default_rng([*name.encode(), k])) for k in range(first, first + runs)]
    return {
        "row": attack.row,
        "policy": attack.policy,
        "runs": runs,
        "false": sum(each.false for each in found),
        "unnamed": 0 if attack.refused else sum(each.false and not each.named for each in found),
        "answer": attack.refused or "`, `".join(attack.codes),
        "named": not attack.refused,
    }


def main() -> int:
    """Run every attack, and keep what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.provenance", description=__doc__)
    parser.add_argument("--runs", type=int, default=600, help="streams of each attack (600)")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        kept = dict(zip(ATTACKS, pool.map(partial(measure, runs=arguments.runs), ATTACKS), strict=True))
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(KEPT.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
