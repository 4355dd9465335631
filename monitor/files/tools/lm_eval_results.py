"""The results file of a run of lm-evaluation-harness, with what its samples do not hold."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_bytes
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Broken, Refusal

_ROUNDING: Final = 1e-9  # by how much two sums of the same scores may differ


class _SampleCounts(msgspec.Struct):
    effective: int | None = None
    original: int | None = None


class Results(msgspec.Struct):
    """The fields of a results file that are read."""

    model: str | None = msgspec.field(default=None, name="model_name")
    higher_is_better: dict[str, dict[str, Any]] = {}
    versions: dict[str, Any] = {}
    samples: dict[str, _SampleCounts] = msgspec.field(default_factory=dict, name="n-samples")
    configs: dict[str, dict[str, Any]] = {}
    results: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    group_subtasks: dict[str, list[str]] = {}

    def group(self, task: str) -> str | None:
        """Return the outermost group of a task that has a metric of its own, or None: other groups only name a list of benchmarks."""
        found, inner = None, task
        seen = {task}
        while (
            outer := next((name for name, parts in self.group_subtasks.items() if inner in parts), None)
        ) not in seen:
            if outer is None:
                break
            seen.add(outer)
            found, inner = outer if self._is_scored(outer) else found, outer
        return found

    def _is_scored(self, group: str) -> bool:
        return any("," in key for key in self.groups.get(group, ()))

    def lists(self, *, apart: bool) -> dict[str, list[str]]:
        """Return the groups that only name benchmarks, at least two each, with these; `apart`: each subtask is a benchmark."""
        results = {}
        for name in self.group_subtasks:
            if self.group_subtasks[name] and (apart or not (self._is_scored(name) or self.group(name))):
                members = dict.fromkeys(task if apart else self.group(task) or task for task in self.subtasks(name))
                results[name] = list(members)
        return {name: members for name, members in results.items() if len(members) > 1}

    def means_by_subtask(self, group: str) -> bool:
        """Return whether the harness gave a group the mean of its subtasks, each counting the same, and not the mean of their items."""
        tasks = self.subtasks(group)
        sizes = [size for size in map(self.items, tasks) if size is not None]
        for key, value in self.groups.get(group, {}).items():
            means = [mean for task in tasks if isinstance(mean := self.results.get(task, {}).get(key), int | float)]
            if "," in key and isinstance(value, int | float) and len(tasks) == len(sizes) == len(means):
                of_items = sum(size * mean for size, mean in zip(sizes, means, strict=True)) / sum(sizes)
                return abs(value - of_items) > _ROUNDING and abs(value - sum(means) / len(means)) <= _ROUNDING
        return False

    def subtasks(self, group: str) -> list[str]:
        """Return the tasks in a group, and in the groups in it."""
        tasks: dict[str, None] = {}
        waiting, seen = [group], {group}
        while waiting:
            for part in self.group_subtasks.get(waiting.pop(), ()):
                if part in seen:
                    continue
                seen.add(part)
                if self.group_subtasks.get(part):
                    waiting.append(part)
                else:
                    tasks[part] = None
        return list(tasks)

    def items(self, task: str) -> int | None:
        """Return how many documents of a task or a group the run covers."""
        if parts := self.subtasks(task):
            counts = [self.items(part) for part in parts]
            return sum(count or 0 for count in counts) if all(counts) else None
        samples = self.samples.get(task)
        count = (samples.effective or samples.original) if samples else None
        return count if count is not None and count > 0 else None

    def filters(self, task: str) -> list[str]:
        """Return the names of the filters of a task."""
        filters = self.configs.get(task, {}).get("filter_list")
        names = [each.get("name") for each in filters if isinstance(each, dict)] if isinstance(filters, list) else []
        return [name for name in names if isinstance(name, str)]


def read_results(samples: Path, time: str) -> Results | None:
    """Read the results file of the run that wrote a file of samples; None if there is none."""
    path = samples.with_name(f"results_{time}.json")
    if not path.is_symlink() and not path.exists():
        others = sorted(path.parent.glob(f"*_{time}.json"))
        if not others:
            return None
        path = others[0]
    try:
        status = path.lstat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, Broken, msgspec.MsgspecError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a results file of lm-eval"
        raise Refusal(
            "results",
            show(path),
            f"{show(path)}, which names the model, cannot be read ({problem}); restore it, or remove it and name the model with "
            "NAME=PATH (the field model of an upload)",
        ) from error


@lru_cache(maxsize=8)
def _read(path: Path, *_: int) -> Results:
    return msgspec.json.decode(read_bytes(path), type=Results)
