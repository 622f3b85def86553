"""Hundreds of connections to one `serve` process, a tenth hostile: the others notice nothing."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

import kafkawire
from kafkawire import Message
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafkawire.messages.fetch_response import FetchResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.messages.produce_response import ProduceResponse
from kafkawire.records import BatchBuilder, RecordBatches

from ...real.wire import HOST
from .test_serve import serving

pytestmark = pytest.mark.timeout(120)
FILES: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
CONNECTIONS: Final = min(300, FILES // 2 // 10 * 10)
"""Half of the files that a process may open: the tests run in one that has others."""
PARTITIONS: Final = 300
ROUNDS: Final = 3
GROWTH: Final = 32 << 20
"""Bytes of memory: what all connections together may cost the server."""
UNREAD: Final = 5_000
"""Requests of a client that reads nothing."""

M = TypeVar("M", bound=Message)


@dataclass
class Peer:
    """A connection of a client. number: of the client, and of its partition."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    correlation_id: int = 0
    expected: list[bytes] = field(default_factory=list)

    async def exchange(self, request: Message, version: int, expected: type[M]) -> M:
        """Send a request and return the body of its response."""
        self.correlation_id += 1
        self.writer.write(kafkawire.encode_frame(request, version, self.correlation_id))
        size = await self.reader.readexactly(4)
        data = size + await self.reader.readexactly(int.from_bytes(size, "big"))
        api_key = kafkawire.REGISTRY.get(type(request).__name__).api_key
        assert api_key is not None
        frame = kafkawire.decode_frame(data, response_to=(api_key, version))
        assert frame.correlation_id == self.correlation_id
        assert isinstance(frame.body, expected)
        return frame.body

    async def produce_and_fetch(self) -> None:
        """Append a record to the client's own partition; fetch all that it has appended."""
        builder = BatchBuilder()
        self.expected.append(f"{self.number}-{len(self.expected)}".encode())
        builder.append(None, self.expected[-1], 1_700_000_000_000)
        data = PartitionProduceData(index=self.number, records=builder.build())
        topic = TopicProduceData(name="t", partition_data=[data])
        produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        [produced] = (await self.exchange(produce, 9, ProduceResponse)).responses
        [partition] = produced.partition_responses
        assert (partition.error_code, partition.base_offset) == (0, len(self.expected) - 1)
        wanted = FetchPartition(partition=self.number, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="t", partitions=[wanted])]
        fetch = FetchRequest(max_wait_ms=0, session_epoch=-1, topics=topics)
        [fetched] = (await self.exchange(fetch, 12, FetchResponse)).responses
        records = fetched.partitions[0].records
        assert records is not None
        assert [record.value for record in RecordBatches(records).records()] == self.expected

    async def until_closed(self) -> None:
        """Read to the end of the connection, which the broker closes."""
        with suppress(ConnectionResetError):
            while await self.reader.read(1 << 16):
                pass


async def connected(port: int, number: int) -> Peer:
    return Peer(number, *await asyncio.open_connection(HOST, port))


# -- hostile clients


async def half_frame(peer: Peer) -> None:
    peer.writer.write((1000).to_bytes(4, "big") + bytes(500))


async def two_gigabytes(peer: Peer) -> None:
    peer.writer.write(b"\x7f\xff\xff\xff" + bytes(1000))
    await peer.until_closed()


async def never_read(peer: Peer) -> None:
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a ReadTransport
    peer.writer.write(kafkawire.encode_frame(MetadataRequest(topics=None), 9, 1) * UNREAD)


async def random_bytes(peer: Peer) -> None:
    """Bytes without frames; the first four, as a size, are not valid."""
    peer.writer.write(b"\xf0" + random.Random(peer.number).randbytes(5000))
    await peer.until_closed()


async def broken_request(peer: Peer) -> None:
    """A Metadata request, version 9, whose strings are longer than the request."""
    peer.writer.write((404).to_bytes(4, "big") + b"\x00\x03\x00\x09" + b"\xff" * 400)
    await peer.until_closed()


async def close_at_once(peer: Peer) -> None:
    peer.writer.transport.abort()


async def byte_per_second(peer: Peer) -> None:
    for byte in kafkawire.encode_frame(MetadataRequest(topics=None), 9, 1):
        peer.writer.write(bytes([byte]))
        await asyncio.sleep(1)


class Attack(NamedTuple):
    """What a hostile client does. ends: whether it ends while the server runs."""

    run: Callable[[Peer], Coroutine[Any, Any, None]]
    ends: bool = True


ATTACKS: Final = (
    Attack(half_frame),
    Attack(two_gigabytes),
    Attack(never_read),
    Attack(random_bytes),
    Attack(broken_request),
    Attack(close_at_once),
    Attack(byte_per_second, ends=False),
)


def memory(process: int) -> int:
    """Return the most bytes of memory that a process has had (VmHWM: the peak of VmRSS)."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


async def honest(peer: Peer) -> None:
    for _ in range(ROUNDS):
        await peer.produce_and_fetch()


async def serve_all(process: subprocess.Popen[str], port: int) -> None:
    """Run all clients; stop the server while hostile ones are still connected."""
    peers = [await connected(port, number) for number in range(CONNECTIONS)]
    hostile, others = peers[::10], [peer for peer in peers if peer.number % 10]
    await honest(others[0])  # what the first requests import
    before = memory(process.pid)
    async with asyncio.TaskGroup() as group:
        attacks = [(ATTACKS[n % len(ATTACKS)], peer) for n, peer in enumerate(hostile)]
        running = [(attack, group.create_task(attack.run(peer))) for attack, peer in attacks]
        honest_clients = [group.create_task(honest(peer)) for peer in others]
        await asyncio.gather(*honest_clients, *(task for attack, task in running if attack.ends))
        newcomer = await connected(port, 0)
        await honest(newcomer)
        assert memory(process.pid) - before < GROWTH
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 60) == 0
        for _, task in running:
            task.cancel()
    for peer in (*peers, newcomer):
        peer.writer.transport.abort()


def test_others_notice_nothing_of_hostile_connections() -> None:
    with serving("--quiet", "--topic", f"t:{PARTITIONS}") as (process, [port]):
        asyncio.run(serve_all(process, port))
