"""Times how long a group of 100 of our consumers takes until each has a partition.

All members start at once, in one process; a round is a new group of each protocol at each
broker, and the time ends when every partition has one member. Heartbeats of KIP-848 come every
500 ms, and classic groups have no initial delay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import count
from time import perf_counter
from typing import Final

from kafkawire.client.config import Setting
from kafkawire.net.admin import Admin
from kafkawire.net.consumer import Consumer
from tests.real.broker import PROPERTIES

from ..brokers import Up, real, serving
from ..measure import Figure, figure, rotated

MEMBERS: Final = 100
TOPIC: Final = "shared"
CHECK_S: Final = 0.01
LIMIT_S: Final = 300.0
PROTOCOLS: Final[Mapping[str, Mapping[str, Setting]]] = {
    "consumer (KIP-848)": {"group.protocol": "consumer"},
    "classic, cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky"},
    "classic, range": {"partition.assignment.strategy": "range"},
}
SAME: Final = (
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.initial.rebalance.delay.ms",
)
"""The settings that decide how long groups take, as `tests.real.broker` has them."""


@contextmanager
def ours() -> Iterator[str]:
    """Run `kafkawire serve` with the settings of Apache Kafka here."""
    with serving(*(f"{key}={PROPERTIES[key]}" for key in SAME)) as (_, bootstrap):
        yield bootstrap


BROKERS: Final[Mapping[str, Up]] = {"kafkawire": ours, "Apache Kafka": real}
GROUPS: Final = count()


async def settle(bootstrap: str, protocol: Mapping[str, Setting], members: int) -> float:
    """Start a group; return the seconds until each partition has one member."""
    config = {"bootstrap.servers": bootstrap, "group.id": f"group-{next(GROUPS)}", **protocol}
    async with AsyncExitStack() as stack, asyncio.timeout(LIMIT_S):
        start = perf_counter()
        consumers = [await stack.enter_async_context(Consumer(config)) for _ in range(members)]
        for each in consumers:
            each.subscribe([TOPIC])
        polls = [asyncio.ensure_future(each.poll()) for each in consumers]
        while not all(len(each.assignment()) == 1 for each in consumers):
            await asyncio.sleep(CHECK_S)
        taken = perf_counter() - start
        for poll in polls:
            poll.cancel()
        await asyncio.wait(polls)
    return taken


async def create(bootstrap: str, partitions: int) -> None:
    """Create the topic of all groups."""
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(TOPIC, partitions=partitions)


def run(rounds: int) -> list[Figure]:
    """Measure; seconds until a group settles."""
    with ExitStack() as stack:
        running = {name: stack.enter_context(up()) for name, up in BROKERS.items()}
        for bootstrap in running.values():
            asyncio.run(create(bootstrap, MEMBERS))
        taken: dict[tuple[str, str], list[float]] = {}
        for turn in range(rounds):
            for broker in rotated(running, turn):
                for name in rotated(PROTOCOLS, turn):
                    seconds = asyncio.run(settle(running[broker], PROTOCOLS[name], MEMBERS))
                    taken.setdefault((broker, name), []).append(seconds)
    case = f"{MEMBERS} members settle, at"
    return [
        figure("groups", f"{case} {broker}", name, "s", values)
        for (broker, name), values in taken.items()
    ]
