"""HELM: ``per_instance_stats.json`` of a run, with ``run_spec.json`` next to it."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_beside, read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Refusal
from schemas.records.text import shorten

_RUN_NAME: Final = re.compile(r"(?P<scenario>[^:]+):?(?P<args>.*)")
_ADAPTER: Final = ("model", "model_deployment")  # arguments of a run's name that name the model, and no data

_SUBTASK: Final = "subject"
_TEST: Final = "test"


class Name(msgspec.Struct):
    """The name of a statistic."""

    name: str
    perturbation: dict[str, Any] | None = None
    split: str | None = None


class Stat(msgspec.Struct):
    """A statistic of an instance; without a value its count is 0 and it has no mean."""

    name: Name
    mean: float | None = None


class Instance(msgspec.Struct):
    """The statistics of an instance, in one trial and under one perturbation."""

    instance_id: str
    stats: list[Stat]
    train_trial_index: int = 0
    perturbation: dict[str, Any] | None = None


class Adapter(msgspec.Struct):
    """How the model was asked."""

    model: str
    method: str = ""


class Spec(msgspec.Struct):
    """The specification of a run."""

    name: str
    adapter_spec: Adapter


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a run."""
    spec = read_beside(log.path.with_name("run_spec.json"), Spec) or _from_folder(log)
    match = _RUN_NAME.fullmatch(spec.name)
    scenario, text = (match["scenario"], match["args"]) if match else (spec.name, "")
    args = [arg for arg in text.split(",") if arg and arg.partition("=")[0] not in _ADAPTER]
    part = next((arg.partition("=")[2] for arg in args if arg.startswith(f"{_SUBTASK}=")), None)
    args = [arg for arg in args if not arg.startswith(f"{_SUBTASK}=")]
    benchmark = f"{scenario}:{','.join(args)}" if args else scenario
    perturbed = 0
    instances = read_document(log.path, list[Instance], TOOL.name)
    split = _split(log, instances, log.choices.benchmark or benchmark, scenario)
    for number, instance in enumerate(instances, 1):
        stats = [stat for stat in instance.stats if not stat.name.name.startswith(_COSTS)]
        if split is not None and stats and all(stat.name.split != split for stat in stats):
            continue
        values = {stat.name.name: stat.mean for stat in stats if stat.name.perturbation is None}
        if instance.perturbation is not None or not values:
            perturbed += 1
            continue
        if spec.adapter_spec.method.startswith("multiple_choice"):
            values = {name: values[name] for name in sorted(values, key=lambda name: name != "exact_match")}
        yield Result(
            benchmark, spec.adapter_spec.model, instance.instance_id, values, instance.train_trial_index, {},
            number=number, part=part,
        )  # fmt: skip
    if perturbed:
        log.note(f"{perturbed:,} records of perturbed instances are omitted; only unperturbed instances are read")


def _split(log: LogFile, instances: list[Instance], *benchmarks: str) -> str | None:
    """Return the split that is read: the chosen one, else `test`, else the only one; None for a file without splits."""
    counts = Counter(
        split for instance in instances for split in {stat.name.split for stat in instance.stats} if split is not None
    )
    wanted = log.choices.split.of(*benchmarks)
    chosen = wanted or (_TEST if _TEST in counts or len(counts) != 1 else next(iter(counts)))
    if not counts and wanted is None:
        return None
    if chosen not in counts:
        listed = ", ".join(map(shorten, sorted(counts))) or "none"
        reason = f"there is no split {shorten(chosen)}; choose one of {listed} with --split"
        raise Refusal("split", shorten(chosen), reason, benchmarks[0])
    others = ", ".join(f"{shorten(name)} ({counts[name]:,} records)" for name in sorted(counts) if name != chosen)
    rest = f"; not read: {others}, --split NAME reads another" if others else ""
    if others or chosen != _TEST:
        log.runs.note(benchmarks[0], f"split {shorten(chosen)}{rest}")
    return chosen


def _from_folder(log: LogFile) -> Spec:
    """Take the run from the name of its folder, in which a slash of the model is an underscore."""
    name = log.path.parent.name
    model = re.search(r"(?:^|[:,])model=([^,]+)", name)
    if model is None:
        reason = f"{show(log.path.parent)} has no run_spec.json, which names the model; copy it there, or name the folder as HELM does"
        raise Refusal("model", show(name), reason)
    log.note(f"there is no run_spec.json; the model is called {show(model[1])}, like the folder")
    return Spec(name, Adapter(model[1]))


_COSTS: Final = (
    "num_", "training_", "inference_", "batch_size", "finish_reason", "prompt_truncated", "max_prob", "logprob",
)  # fmt: skip

TOOL: Final = Tool(
    "statistics of HELM",
    read,
    metrics=(
        "f1_score", "exact_match", "quasi_exact_match", "rouge_2", "RR@10", "NDCG@10", "quasi_prefix_exact_match",
        "math_equiv_chain_of_thought", "math_equiv", "bleu_4", "ifeval_strict_accuracy", "chain_of_thought_correctness",
    ),
)  # fmt: skip
