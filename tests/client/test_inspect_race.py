"""The adapter of Inspect without Inspect: its classes are plain ones here, and the monitor is real. test_hooks.py has the real package."""

import asyncio
import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest

from tests.client.test_race import ITEMS, SKILLS, score
from tests.served import Served

MODULES = ("rankwatch_client.inspect", "rankwatch_client.inspect_race")
NAMES = {
    "inspect_ai": ["Task"],
    "inspect_ai.dataset": ["Sample"],
    "inspect_ai.hooks": ["SampleEnd", "TaskEnd", "TaskStart"],
    "inspect_ai.log": ["EvalSpec"],
    "inspect_ai.scorer": ["SampleScore"],
    "inspect_ai.util": ["EarlyStop"],
}


@pytest.fixture
def adapter(monkeypatch):
    """The adapter, imported with plain classes in place of those of Inspect."""
    for path, names in NAMES.items():
        module = ModuleType(path)
        for name in names:
            setattr(module, name, type(name, (SimpleNamespace,), {}))
        monkeypatch.setitem(sys.modules, path, module)
    sys.modules["inspect_ai.hooks"].Hooks = object
    sys.modules["inspect_ai.hooks"].hooks = lambda **_: lambda made: made
    sys.modules["inspect_ai.util"].display_counter = lambda *_: None
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(MODULES[0])
    for name in MODULES:
        sys.modules.pop(name, None)


def make_task(adapter, **options):
    task = SimpleNamespace(dataset=[SimpleNamespace(id=item) for item in ITEMS], metadata=None, early_stopping=None)
    return adapter.race(task, models=list(SKILLS), seed="s", **options)


async def evaluate(adapter, task, model, before=lambda _: None):
    """Evaluate a model as Inspect does: ask for each sample, with some at once; return the items that ran, and what the log keeps."""
    spec = SimpleNamespace(
        task="bench", model=model, eval_id=model, metadata=task.metadata, scorers=None,
        dataset=SimpleNamespace(sample_ids=None, samples=len(ITEMS)), config=SimpleNamespace(limit=None, sample_id=None),
    )  # fmt: skip
    hook, stopping, ran, slots = adapter.RankwatchHooks(), task.early_stopping, [], asyncio.Semaphore(10)
    await hook.on_task_start(SimpleNamespace(spec=spec, eval_id=model))
    await stopping.start_task(spec, task.dataset, 1)

    async def run(item):
        async with slots:
            if await stopping.schedule_sample(item, 1) is not None:
                return
            before(ran)
            ran.append(item)
            scores = {"match": SimpleNamespace(value="C" if score(model, item) else "I")}
            sample = SimpleNamespace(id=item, epoch=1, metadata={}, error=None, scores=scores)
            await hook.on_sample_end(SimpleNamespace(eval_id=model, sample=sample))

    await asyncio.gather(*(run(sample.id) for sample in task.dataset))
    kept = await stopping.complete_task()
    await hook.on_task_end(SimpleNamespace(eval_id=model, log=SimpleNamespace(status="success")))
    return ran, kept


def race_all(adapter, task, **options):
    async def main():
        return await asyncio.gather(*(evaluate(adapter, task, model, **options) for model in SKILLS))

    return dict(zip(SKILLS, asyncio.run(main()), strict=True))


def test_samples_that_cannot_change_the_answer_are_stopped(adapter, monkeypatch):
    with Served() as served:
        monkeypatch.setenv("RANKWATCH_URL", served.url)
        task = make_task(adapter)
        ends = race_all(adapter, task)
        order = [sample.id for sample in task.dataset]
        assert served.get("order?benchmark=bench").text.split() == order
        assert all(sorted(ran, key=order.index) == order[: len(ran)] for ran, _ in ends.values())
        _, kept = ends["weak"]
        assert (kept["state"], kept["models"]) == ("met", ["strong"])
        assert kept["samples_stopped"] == len(ITEMS) - len(ends["weak"][0]) > 100
        (benchmark,) = served.get("benchmarks").json["benchmarks"]
        assert benchmark["events"] == sum(len(ran) for ran, _ in ends.values())


def test_every_sample_runs_when_the_monitor_dies(adapter, monkeypatch):
    for name in ("pacing", "races"):
        monkeypatch.setattr(f"rankwatch_client.{name}.AWAY_SECONDS", 0.1)
    monkeypatch.setattr("rankwatch_client.client.EXIT_SECONDS", 0.1)
    monkeypatch.setattr(adapter, "FLUSH_SECONDS", 0.1)
    with Served() as served:
        monkeypatch.setenv("RANKWATCH_URL", served.url)

        def before(ran, stopped=[]):  # noqa: B006 - once
            if len(ran) == 5 and not stopped:
                stopped.append(True)
                served.stop()

        ends = race_all(adapter, make_task(adapter), before=before)
    assert {model: sorted(ran) for model, (ran, _) in ends.items()} == dict.fromkeys(SKILLS, sorted(ITEMS))
    assert {kept["state"] for _, kept in ends.values()} == {"open"}


def test_every_sample_runs_without_a_monitor(adapter, monkeypatch, caplog):
    monkeypatch.delenv("RANKWATCH_URL", raising=False)
    task = make_task(adapter)
    assert not adapter.RankwatchHooks().enabled()
    spec = SimpleNamespace(task="bench", model="weak", eval_id="weak")

    async def main():
        await task.early_stopping.start_task(spec, task.dataset, 1)
        return [await task.early_stopping.schedule_sample(item, 1) for item in ITEMS]

    assert asyncio.run(main()) == [None] * len(ITEMS)
    assert "RANKWATCH_URL is not set: every sample of bench runs" in caplog.text


@pytest.mark.parametrize(("epochs", "turn", "says"), [(2, 1, "2 epochs"), (1, -1, "omit --sample-shuffle")])
def test_what_is_no_race_is_an_error_before_the_first_sample(adapter, epochs, turn, says):
    task = make_task(adapter)
    with pytest.raises(ValueError, match=says):
        asyncio.run(task.early_stopping.start_task(SimpleNamespace(), task.dataset[::turn], epochs))
