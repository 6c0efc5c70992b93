"""Record a Redis client: ten lines around `publish` and `listen`, and a run that uses them.

redis-server &
python recorded.py pooled pooled/      # every publish on any free connection
python recorded.py single single/      # every publish on one connection
"""

import asyncio
import json
import random
import sys
import time
from pathlib import Path

import redis.asyncio as redis

PUBLISHERS, SUBSCRIBERS, MESSAGES = ("quotes", "trades"), ("desk-1", "desk-2", "desk-3"), 25


# The ten lines. One log per process; a send is noted before it happens, a delivery when it is seen.
class Record:
    def __init__(self, folder: Path, process: str) -> None:
        self.log = (folder / f"{process}.jsonl").open("w")
        self.process = process

    def __call__(self, what: str, message: str, channel: str) -> None:
        note = {"t": time.time(), "client": self.process, "op": what, "id": message, "ch": channel}
        self.log.write(json.dumps(note) + "\n")
        self.log.flush()


async def publish(client: redis.Redis, record: Record, messages: int) -> None:
    sending = []
    for number in range(messages):
        message = f"{record.process}-{number}"
        record("publish", message, "ticks")
        sending.append(asyncio.create_task(client.publish("ticks", message)))
        await asyncio.sleep(random.expovariate(5_000))
    await asyncio.gather(*sending)


async def subscribe(record: Record, ready: asyncio.Event, messages: int) -> None:
    async with redis.Redis(decode_responses=True).pubsub() as channel:
        await channel.subscribe("ticks")
        async for item in channel.listen():
            if item["type"] == "subscribe":
                ready.set()
                continue
            record("message", item["data"], item["channel"])
            messages -= 1
            if not messages:
                break
    record("idle", "", "ticks")


async def main(mode: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    everything = len(PUBLISHERS) * MESSAGES
    ready = {name: asyncio.Event() for name in SUBSCRIBERS}
    desks = [
        asyncio.create_task(subscribe(Record(folder, name), ready[name], everything))
        for name in SUBSCRIBERS
    ]
    await asyncio.gather(*(event.wait() for event in ready.values()))
    clients = [redis.Redis(single_connection_client=mode == "single") for _ in PUBLISHERS]
    records = [Record(folder, name) for name in PUBLISHERS]
    await asyncio.gather(*(publish(c, r, MESSAGES) for c, r in zip(clients, records, strict=True)))
    await asyncio.gather(*desks, *(client.aclose() for client in clients))


asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
