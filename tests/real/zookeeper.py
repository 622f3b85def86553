"""Records what the brokers of a real Kafka with ZooKeeper send each other: `fixtures/zookeeper`.

    python -m tests.real.zookeeper 2.7.2 FILE.pcap.gz

It makes the changes that `fixtures/zookeeper/README.md` lists, waits for each to be done, and
ends only processes that it started. A proxy in front of each listener records the bytes: brokers
connect to the advertised listeners.

    broker ─▶ proxy (records) ─▶ broker        mvn ─▶ jars ─▶ ZooKeeper, three brokers
"""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafkawire.capture import decode_capture
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.create_partitions_response import CreatePartitionsResponse
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.delete_topics_response import DeleteTopicsResponse
from kafkawire.messages.metadata_request import MetadataRequest
from kafkawire.messages.metadata_response import MetadataResponse
from kafkawire.net.brokers.recording import FILE_HEADER, PACKET_HEADER, Recording

from .java import OPTIONS, find_java
from .wire import HOST, Wire

ZOOKEEPER: Final = "3.5.9"
"""Of Kafka 2.7; the client of 3.4, which Kafka 2.2 has, does not run on Java 17."""
BASE: Final = 21_000
BROKERS: Final = (1, 2, 3)
SECONDS: Final = 120.0
PROPAGATION_SECONDS: Final = 9.0
"""Until a leader has announced a grown ISR: five seconds after its last change, and checks."""
BETWEEN: Final = frozenset({4, 5, 6, 7})
POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkawire</groupId> <artifactId>zookeeper</artifactId> <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId> <artifactId>kafka_{scala}</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.zookeeper</groupId> <artifactId>zookeeper</artifactId>
      <version>{zookeeper}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId> <artifactId>slf4j-simple</artifactId> <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
SERVER: Final = """dataDir={folder}/zookeeper
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
admin.enableServer=false
"""
BROKER: Final = """broker.id={node}
broker.rack=r{node}
zookeeper.connect={host}:{zookeeper}
zookeeper.session.timeout.ms=6000
listeners=PLAINTEXT://{host}:{port}
advertised.listeners=PLAINTEXT://{host}:{advertised}
log.dirs={folder}/data-{node}
auto.leader.rebalance.enable=false
log.cleaner.dedupe.buffer.size=4194304
log.index.size.max.bytes=65536
"""


def fetch(version: str, folder: Path) -> Path:
    """Have Maven fetch a version of Kafka and its dependencies."""
    scala = "2.12" if version < "2.4" else "2.13"
    pom = folder / "pom.xml"
    pom.write_text(POM.format(scala=scala, version=version, zookeeper=ZOOKEEPER), "utf-8")
    jars = folder / "jars"
    command = ("mvn", "--batch-mode", "--quiet", f"--file={pom}", "dependency:copy-dependencies")
    subprocess.run((*command, f"-DoutputDirectory={jars}"), check=True, timeout=600)
    return jars


class Ensemble:
    """ZooKeeper and the brokers, as processes."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self.folder = folder
        self._java = [find_java(), *OPTIONS, "-cp", f"{jars}/*"]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start_zookeeper(self) -> None:
        text = SERVER.format(folder=self.folder, host=HOST, port=BASE)
        self._start("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", text)

    def start_broker(self, node: int) -> None:
        ports = {"port": BASE + 10 + node, "advertised": BASE + 20 + node, "zookeeper": BASE}
        text = BROKER.format(node=node, host=HOST, folder=self.folder, **ports)
        self._start(f"broker-{node}", "kafka.Kafka", text)

    def _start(self, name: str, main: str, configuration: str) -> None:
        path = self.folder / f"{name}.properties"
        path.write_text(configuration, "utf-8")
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*self._java, main, str(path)], stdout=log, stderr=log, cwd=self.folder
            )

    def stop_broker(self, node: int, *, kill: bool = False) -> None:
        process = self._processes[f"broker-{node}"]
        process.kill() if kill else process.terminate()
        process.wait(SECONDS)

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: Callable[[bytes], None]
) -> None:
    try:
        while data := await reader.read(65_536):
            record(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def proxy(node: int, recording: Recording) -> asyncio.Server:
    """Listen where a broker is advertised."""
    port = BASE + 20 + node

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(HOST, BASE + 10 + node)
        except OSError:
            writer.close()
            return
        number = recording.open(writer.get_extra_info("peername")[:2], (HOST, port))
        with suppress(asyncio.CancelledError):  # the recording ends
            await asyncio.gather(
                _forward(reader, there[1], lambda data: recording.received(number, data)),
                _forward(there[0], writer, lambda data: recording.sent(number, data)),
            )
        recording.closed(number)

    return await asyncio.start_server(connected, HOST, port)


def metadata(done: Callable[[MetadataResponse], bool]) -> MetadataResponse:
    """Wait until the metadata of a broker is so, and has settled."""
    deadline = time.monotonic() + SECONDS
    while True:
        for node in BROKERS:
            try:
                with Wire(BASE + 10 + node, 3.0) as wire:
                    found = wire.exchange(MetadataRequest(topics=None), 5, MetadataResponse)
            except OSError:
                continue
            if done(found):
                time.sleep(2.0)
                return found
        assert time.monotonic() < deadline, "the brokers do not get there"
        time.sleep(0.3)


def scenario(ensemble: Ensemble) -> None:
    """Make the changes. The first broker that starts is the controller."""
    controller = metadata(lambda found: len(found.brokers) == len(BROKERS)).controller_id
    assert controller == 1
    with Wire(BASE + 10 + controller) as wire:
        _create(wire, "orders", 2, 2)
        more = CreatePartitionsTopic(name="orders", count=3, assignments=None)
        request = CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
        wire.exchange(request, 0, CreatePartitionsResponse)
        time.sleep(2.0)
        _create(wire, "kept", 3, 3)
        delete = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000)
        wire.exchange(delete, 1, DeleteTopicsResponse)
    time.sleep(2.0)
    for kill in (False, True):
        ensemble.stop_broker(2, kill=kill)
        metadata(lambda found: len(found.brokers) == len(BROKERS) - 1)
        ensemble.start_broker(2)
        metadata(lambda found: len(found.brokers) == len(BROKERS))
        time.sleep(PROPAGATION_SECONDS)
    ensemble.stop_broker(1)
    metadata(lambda found: found.controller_id in (2, 3))


def _create(wire: Wire, name: str, partitions: int, replicas: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    wire.exchange(request, 1, CreateTopicsResponse)
    time.sleep(2.0)


@contextmanager
def running(version: str, folder: Path) -> Iterator[Ensemble]:
    ensemble = Ensemble(fetch(version, folder), folder)
    try:
        ensemble.start_zookeeper()
        yield ensemble
    finally:
        ensemble.end()


async def record(version: str, folder: Path) -> Path:
    """Record all connections through the proxies."""
    path = folder / "all.pcap"
    recording = Recording(path)
    proxies = [await proxy(node, recording) for node in BROKERS]
    with running(version, folder) as ensemble:
        await asyncio.sleep(4.0)
        for node in BROKERS:
            ensemble.start_broker(node)
            await asyncio.sleep(3.0)
        await asyncio.to_thread(scenario, ensemble)
    for each in proxies:
        each.close()
    recording.close()
    return path


def only_between(path: Path) -> bytes:
    """Return a capture of only those connections on which brokers send each other changes."""
    clients = {each.client for each in decode_capture(path) if each.row.api_key in BETWEEN}
    ports = {int(each.rpartition(":")[2]) for each in clients if each is not None}
    data = path.read_bytes()
    kept, at = [data[: FILE_HEADER.size]], FILE_HEADER.size
    while at < len(data):
        size = PACKET_HEADER.size + PACKET_HEADER.unpack_from(data, at)[2]
        tcp = at + PACKET_HEADER.size + 20  # after an IPv4 header
        ends = {int.from_bytes(data[end : end + 2], "big") for end in (tcp, tcp + 2)}
        if ends & ports:
            kept.append(data[at : at + size])
        at += size
    return b"".join(kept)


def main() -> None:
    version, output = sys.argv[1:]
    with TemporaryDirectory() as folder:
        found = only_between(asyncio.run(record(version, Path(folder))))
    Path(output).write_bytes(gzip.compress(found, mtime=0))


if __name__ == "__main__":
    main()
