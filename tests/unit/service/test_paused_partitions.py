"""A partition whose outbox is full is read again once there is room, whoever notices it first."""

import asyncio
from types import SimpleNamespace

import pytest

from monitor.service import worker as service_worker
from monitor.service.worker import ClusterWorker


class Outbox:
    """The outbox of a partition that nothing is folded of."""

    committed, is_full = 5, True

    async def has_room(self):
        return not self.is_full


@pytest.mark.parametrize("probed", [True, False])
async def test_a_paused_partition_is_read_again(monkeypatch, probed):
    monkeypatch.setattr(service_worker, "_WATCH_SECONDS", 0)
    outbox, resumed = Outbox(), asyncio.Event()

    async def check_topic():
        """Ask nothing."""

    def resume(partitions):
        assert not outbox.is_full
        assert {tp.partition for tp in partitions} == {0}
        resumed.set()

    worker = SimpleNamespace(
        _faust=SimpleNamespace(consumer=SimpleNamespace(check_topic=check_topic, resume_partitions=resume)),
        _relays={},
        _paused={0},
        _log_ends=lambda: {0: 9},
        _report_lag=lambda _: None,
        partitions={0: outbox},
        settings=SimpleNamespace(topic="t", stall_seconds=1e9),
    )
    if probed:  # the metrics of the process have asked how long the outbox is
        outbox.is_full = False
    watching = asyncio.create_task(ClusterWorker._watch(worker))
    for _ in range(10):
        await asyncio.sleep(0)
    assert resumed.is_set() == probed
    outbox.is_full = False
    await asyncio.wait_for(resumed.wait(), 60)
    assert not worker._paused
    watching.cancel()
