"""Append records of several producers to a log and print which of them are acknowledged, for a test that kills the process."""

import asyncio
import json
import os
import sys

from monitor.log.file.log import FileLog

BATCH = 7
PRODUCERS = 3


async def produce(log, name):
    """Append one batch after the other."""
    for number in range(0, 100_000, BATCH):
        await log.append([json.dumps([name, n]).encode() for n in range(number, number + BATCH)])
        os.write(1, b"%d %d\n" % (name, number))


async def main():
    log = FileLog.open(sys.argv[1])
    await asyncio.gather(*(produce(log, name) for name in range(PRODUCERS)))


if __name__ == "__main__":
    asyncio.run(main())
