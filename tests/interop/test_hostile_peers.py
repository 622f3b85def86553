"""Our producer and consumer against misbehaving brokers, over real sockets.

A misbehaving broker costs its own connection, and bounded memory. A client that has another
broker, or whose broker recovers, gets all its records in order; other clients are not affected.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import pytest

from kafkawire.broker import Request
from kafkawire.client.config import Setting
from kafkawire.client.consumer import TopicPartition
from kafkawire.client.failures import RequestFailed
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from kafkawire.net.server_thread import ServerThread

from .implementations import until

pytestmark = [pytest.mark.timeout(600), pytest.mark.kafka(brokers=2, topics={"t": 2})]
VICTIM: Final = "victim"
RECORDS: Final = 40
APIS: Final = (
    "ApiVersions",
    "Metadata",
    "InitProducerId",
    "Produce",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "OffsetFetch",
    "ListOffsets",
    "Fetch",
    "OffsetCommit",
)
HARM: Final[dict[str, dict[str, Any]]] = {
    "a size that is none": {"action": "corrupt", "at": 0},
    "another's correlation id": {"action": "corrupt", "at": 7},
    "cut in the size": {"action": "truncate", "keep": 3},
    "cut in the middle": {"action": "truncate"},
    "no response any more": {"action": "drop"},
}
HASTE: Final[dict[str, Setting]] = {
    "request.timeout.ms": 700,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.max.ms": 100,
}


def config(server: str, name: str, **more: Setting) -> dict[str, Setting]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"bootstrap.servers": server, "client.id": name, **HASTE, **given}


async def produce(server: str, name: str, prefix: str) -> None:
    """Deliver records to both partitions, one after the other."""
    async with Producer(config(server, name, delivery_timeout_ms=60_000)) as producer:
        for at in range(RECORDS):
            await producer.deliver("t", f"{prefix}{at}".encode(), partition=at % 2)


async def consume(server: str, name: str, count: int) -> list[bytes | None]:
    """Read so many records as the only member of a group, then commit and leave.

    A session's time is what a member id holds a rebalance up that was given and never arrived.
    """
    given = config(server, name, group_id=name, auto_offset_reset="earliest")
    async with Consumer(given | {"session.timeout.ms": 6_000}) as consumer:
        consumer.subscribe(["t"])
        found: dict[tuple[int, int], bytes | None] = {}
        while len(found) < count:
            for record in await consumer.poll():
                assert found.setdefault(record[1:3], record.value) == record.value
    return [found[place] for place in sorted(found)]


def from_victim(api: str) -> Callable[[Request], bool]:
    """Choose the requests that go wrong."""
    key = "".join(f"_{c}" if c.isupper() else c for c in api).upper().removeprefix("_")
    return lambda request: request.client_id == VICTIM and request.api_key.name == key


@pytest.mark.filterwarnings("ignore::kafkawire.net.pytest_plugin.UnusedFaultWarning")
@pytest.mark.parametrize("harm", HARM)
def test_what_is_answered_wrongly_costs_a_connection_and_no_record(
    kafka_broker: ServerThread, harm: str
) -> None:
    """Each API goes wrong twice, if there are two requests with it."""
    here = kafka_broker.bootstrap
    # a JoinGroup without a response is waited for as long as a rebalance may take: minutes
    apis = [api for api in APIS if (api, HARM[harm]["action"]) != ("JoinGroup", "drop")]
    faults = [
        kafka_broker.fault(from_victim(api), nth=nth, **HARM[harm])
        for api in apis
        for nth in (1, 2)
    ]

    async def scenario() -> None:
        async with asyncio.timeout(400):
            await asyncio.gather(produce(here, VICTIM, "a"), produce(here, "bystander", "b"))
            ours, others = await asyncio.gather(
                consume(here, VICTIM, 2 * RECORDS), consume(here, "bystander", 2 * RECORDS)
            )
        assert ours == others
        for prefix in (b"a", b"b"):
            mine = [each for each in others if each is not None and each.startswith(prefix)]
            expected = [
                b"%b%d" % (prefix, at) for at in (*range(0, RECORDS, 2), *range(1, RECORDS, 2))
            ]
            assert mine == expected

    asyncio.run(scenario())
    assert sum(fault.hit for fault in faults) >= len(apis)


# -- peers that are not brokers

Peer = Callable[[socket.socket, Random], None]
FLOOD: Final = 256 << 20
BOUND: Final = 24 << 20


def noise(peer: socket.socket, draws: Random) -> None:
    peer.sendall(draws.randbytes(4096))


def flood(peer: socket.socket, _: Random) -> None:
    """Announce the largest frame there is, and begin to send it."""
    peer.sendall(b"\x7f\xff\xff\xff")
    for _step in range(FLOOD >> 16):
        peer.sendall(bytes(1 << 16))


def trickle(peer: socket.socket, _: Random) -> None:
    """Announce a frame that may be, and send no more of it."""
    peer.sendall((50 << 20).to_bytes(4, "big") + b"\0")
    peer.recv(1 << 16)
    peer.recv(1)


def silence(peer: socket.socket, _: Random) -> None:
    """Take what comes as slowly as can be, and say nothing."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    peer.recv(1)
    peer.recv(1)


def gone(_: socket.socket, __: Random) -> None:
    """Close at once."""


@contextmanager
def hostile(behave: Peer) -> Iterator[tuple[str, list[int]]]:
    """Listen, and treat every client so; gives the address, and a list that grows with clients."""
    clients: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            clients.append(len(clients))
            threading.Thread(target=treat, args=(peer, Random(len(clients))), daemon=True).start()

    def treat(peer: socket.socket, draws: Random) -> None:
        with peer:
            peer.settimeout(30)
            try:
                behave(peer, draws)
            except OSError:
                return  # the client has closed, as it should

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", clients
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


PEERS: Final[list[Peer]] = [noise, flood, trickle, silence, gone]
SLOW: Final = (trickle, silence)
"""Of whom nobody knows yet, in so short a time, that they will not respond."""


@pytest.mark.parametrize("behave", PEERS)
def test_a_peer_that_is_no_broker_is_left_for_one_that_is(
    kafka_broker: ServerThread, behave: Peer
) -> None:
    with hostile(behave) as (where, clients):

        async def scenario() -> None:
            async with asyncio.timeout(400):
                for number in range(100):  # the first broker is chosen at random
                    await produce_one(f"{where},{kafka_broker.bootstrap}", number)
                    if clients:
                        break
                both = f"{where},{kafka_broker.bootstrap}"
                assert len(await consume(both, VICTIM, number + 1)) == number + 1

        asyncio.run(scenario())
    assert clients


async def produce_one(server: str, number: int) -> None:
    async with Producer(config(server, VICTIM, delivery_timeout_ms=30_000)) as producer:
        await producer.deliver("t", b"%d" % number, partition=0)


@pytest.mark.parametrize("behave", PEERS)
def test_where_there_is_no_other_that_is_said_in_time_and_costs_little(behave: Peer) -> None:
    tracemalloc.start()
    try:
        with hostile(behave) as (where, clients):

            async def said(patience_ms: int) -> str:
                async with Producer(config(where, VICTIM, max_block_ms=patience_ms)) as producer:
                    with pytest.raises(RequestFailed) as failed:
                        await producer.deliver("t", b"v")
                return str(failed.value)

            async def scenario() -> None:
                if where not in await said(1500) and behave not in SLOW:
                    assert where in await said(20_000), "on a machine that was busy"
                async with Consumer(config(where, VICTIM, group_id="g")) as consumer:
                    consumer.assign([TopicPartition("t", 0)])
                    assert await consumer.poll(1.5) == []

            asyncio.run(asyncio.wait_for(scenario(), 400))
            until(lambda: len(clients) >= 2)
        assert tracemalloc.get_traced_memory()[1] < BOUND
    finally:
        tracemalloc.stop()


def test_a_broker_that_stops_reading_holds_up_one_client_within_its_memory(
    kafka_broker: ServerThread,
) -> None:
    here, most, size = kafka_broker.bootstrap, 1 << 20, 400_000
    kafka_broker.fault(from_victim("Produce"), action="delay", delay=3600)
    given = config(
        here,
        VICTIM,
        buffer_memory=most,
        max_request_size=most,
        max_block_ms=2000,
        request_timeout_ms=2000,
        delivery_timeout_ms=3000,
    )

    async def scenario() -> tuple[int, int]:
        async with Producer(given) as producer:
            futures = [await producer.send("t", bytes(size), partition=0) for _ in range(4)]
            assert sum(future.done() for future in futures) >= 4 - most // size
            await produce(here, "bystander", "b")
            results = await asyncio.gather(*futures, return_exceptions=True)
        failed = sum(isinstance(each, RequestFailed) for each in results)
        return failed, len(results)

    failed, sent = asyncio.run(asyncio.wait_for(scenario(), 400))
    assert failed == sent
