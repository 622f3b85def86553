"""What simulated clients share: topics, records, names, and connections to brokers.

What repeats, repeats in real traffic, too: names of topics, groups and clients, and the
versions that a client uses.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final, NamedTuple

import kafkawire
from kafkawire.broker.releases import Offer, versions_of
from kafkawire.messages.api_key import ApiKey
from kafkawire.primitives import Message
from kafkawire.records import BatchBuilder, Compression

from .network import Actor, Connection, Endpoint, Simulation

BROKERS: Final = 6
BROKER_PORT: Final = 9092
BROKER_ADDRESS: Final = 0x0A000001
CLIENT_ADDRESS: Final = 0x0A010000
RELEASES: Final = ("2.2", "2.4", "2.8")
"""Clients speak the versions of these releases: tshark 4.0 decodes them."""
TSHARK_DECODES: Final = {
    "Produce": 8, "Fetch": 11, "ListOffsets": 5, "Metadata": 9, "OffsetCommit": 8,
    "OffsetFetch": 7, "FindCoordinator": 3, "JoinGroup": 7, "Heartbeat": 4, "LeaveGroup": 4,
    "SyncGroup": 5, "DescribeGroups": 5, "ListGroups": 4, "ApiVersions": 3, "CreateTopics": 5,
    "DescribeConfigs": 2, "InitProducerId": 3,
}  # fmt: skip
"""The highest version of each API that tshark 4.0 decodes."""
CODECS: Final = (
    Compression.NONE, Compression.NONE, Compression.LZ4, Compression.ZSTD, Compression.GZIP,
    Compression.SNAPPY,
)  # fmt: skip
SOFTWARE: Final = ("apache-kafka-java", "librdkafka", "aiokafka", "franz-go", "kafka-python")
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz      0123456789"
SUBJECTS: Final = ("orders", "payments", "clicks", "audit", "stock", "users", "mail", "metrics")


class Topic(NamedTuple):
    """A topic: the size and compression of its records are its own."""

    name: str
    partitions: int
    record_bytes: float
    codec: Compression
    ends: list[int]


class Scale(NamedTuple):
    """How many of each there are."""

    topics: int = 400
    groups: int = 200
    producers: int = 150
    administrators: int = 9


class Cluster:
    """What the actors share: the simulation, topics and clients' names."""

    def __init__(self, simulation: Simulation, scale: Scale) -> None:
        self.simulation = simulation
        self.rng = simulation.rng
        self.topics = [self._topic(number) for number in range(scale.topics)]
        self._clients = 0
        self._versions = {release: versions_of(release) for release in RELEASES}

    def _topic(self, number: int) -> Topic:
        rng = self.rng
        partitions = rng.choice((1, 3, 6, 12, 24))
        size = min(max(rng.lognormvariate(5.2, 1.1), 20), 8192)
        name = f"{rng.choice(SUBJECTS)}.{self.word(8)}.{number}"
        ends = [rng.randrange(1 << 40) for _ in range(partitions)]
        return Topic(name, partitions, size, rng.choice(CODECS), ends)

    def word(self, length: int) -> str:
        """Make up a word."""
        return "".join(self.rng.choices(LETTERS[:26], k=length))

    def connect(self, client: Client, broker: int) -> Channel:
        """Open a connection from a client to a broker."""
        self._clients += 1
        port = 32768 + self._clients % 28000
        address = Endpoint(CLIENT_ADDRESS + client.host, port)
        end = Endpoint(BROKER_ADDRESS + broker, BROKER_PORT)
        return Channel(Connection(self.simulation, address, end), client, self.rng)

    def client(self, role: str) -> Client:
        """Make up a client."""
        rng = self.rng
        versions = self._versions[rng.choice(RELEASES)]
        name = f"{role}-{self.word(5)}-{rng.randrange(1000)}"
        return Client(name, rng.randrange(1 << 12), versions, rng.choice(SOFTWARE))

    def records(self, topic: Topic, base_offset: int, most: int) -> tuple[bytes, int]:
        """Make a batch of 1 to `most` records; returns it with the number of records."""
        rng = self.rng
        number = min(1 + int(rng.expovariate(1 / most)), 4 * most)
        now = 1_700_000_000_000 + round(self.simulation.now * 1000)
        builder = BatchBuilder(base_offset=base_offset, compression=topic.codec)
        for offset in range(base_offset, base_offset + number):
            key = None if rng.random() < 0.2 else f"user-{rng.randrange(100_000)}".encode()
            headers = (("trace", rng.randbytes(16)),) if rng.random() < 0.2 else ()
            builder.append(key, self._value(topic, offset), now, headers)
        return builder.build(), number

    def _value(self, topic: Topic, offset: int) -> bytes | None:
        rng = self.rng
        size = int(rng.lognormvariate(0, 0.5) * topic.record_bytes)
        if rng.random() < 0.02:
            return None
        fields: dict[str, float] = {
            "id": offset,
            "user": rng.randrange(100_000),
            "amount": rng.randrange(100_000) / 100,
        }
        if rng.random() < 0.1:
            fields["score"] = rng.random()  # 17 digits: the slowest number to write
        note = "".join(rng.choices(LETTERS, k=max(size - 60, 1)))
        return json.dumps({**fields, "note": note}).encode()


class Client(NamedTuple):
    """A client: its client id, host, versions, and the software it reports."""

    name: str
    host: int
    versions: Offer
    software: str

    def version(self, api: str) -> int:
        """The version of an API that the client uses."""
        return min(self.versions[ApiKey[_constant(api)]].last, TSHARK_DECODES[api])


def _constant(api: str) -> str:
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(api)).upper()


class Channel:
    """The requests and responses of one connection."""

    def __init__(self, connection: Connection, client: Client, rng: random.Random) -> None:
        self._connection = connection
        self.client = client
        self._rng = rng
        self._correlation_id = rng.randrange(1000)

    def request(self, api: str, body: Any) -> int:
        """Send a request; returns its correlation id."""
        self._correlation_id += 1
        self._send(0, f"{api}Request", api, body, self._correlation_id)
        return self._correlation_id

    def respond(self, api: str, body: Any, correlation_id: int) -> None:
        """Send the response to a request."""
        self._send(1, f"{api}Response", api, body, correlation_id)

    def exchange(self, api: str, request: Any, response: Any, wait: float = 0.0) -> Actor:
        """Send a request, and its response a little later. wait: what the broker waits more."""
        correlation_id = self.request(api, request)
        yield self._rng.lognormvariate(-6.5, 1.0) + wait
        self.respond(api, response, correlation_id)
        yield self._rng.expovariate(500)

    def close(self) -> None:
        self._connection.close()

    def _send(self, side: int, name: str, api: str, body: Any, correlation_id: int) -> None:
        version = self.client.version(api)
        message = body if isinstance(body, Message) else kafkawire.from_json(name, version, body)
        client_id = self.client.name if side == 0 else None
        frame = kafkawire.encode_frame(message, version, correlation_id, client_id=client_id)
        self._connection.send(side, frame)
