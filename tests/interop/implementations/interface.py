"""The interface of client implementations: produce, and consume as a member of a group.

Each implementation is used as its own users use it; only the calls differ. A reader belongs to
one thread; members of a group wait for each other, so each has its own thread.

    Implementation ─▶ produce
                   ├▶ reader ─▶ Reader: poll, close      (ControllableReader: pause, seek, commit)
                   └▶ member ─▶ Member: a Reader in a thread
"""

from __future__ import annotations

import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

TIMEOUT_SECONDS: Final = 120.0
SESSION_MS: Final = 45_000
"""Long enough for a static member to come back after the slow start of a JVM."""
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RESETS: Final = ("earliest", "latest", "none")
CLASSIC: Final = "classic"
Held = frozenset[tuple[str, int]]


class SeenRecord(NamedTuple):
    """A record that a consumer received."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Sasl(NamedTuple):
    """SASL credentials. ca: the certificate of a broker with TLS."""

    mechanism: str
    user: str
    password: str
    ca: str | None = None

    @property
    def protocol(self) -> str:
        return "SASL_PLAINTEXT" if self.ca is None else "SASL_SSL"


@dataclass(frozen=True)
class Produce:
    """Records to produce, and how; only our client uses partition and timestamp."""

    bootstrap: str
    topic: str
    values: Sequence[bytes]
    acks: str = "all"
    codec: str = "none"
    idempotent: bool = False
    sasl: Sasl | None = None
    partition: int | None = None
    timestamp: int | None = None

    def places(self, delivered: Iterable[Any]) -> list[tuple[int, int]]:
        """Return the partition and offset of each record, from its delivery result."""
        unknown = self.acks == "0"
        return [(-1, -1) if unknown else (each.partition, each.offset) for each in delivered]


@dataclass(frozen=True)
class Consume:
    """How a reader consumes a topic, in a group.

    strategy: the assignor, by Kafka's short name; None for the implementation's default.
    auto_commit_ms: the auto-commit interval; None to disable it. protocol: `classic`, or `consumer`
    of KIP-848, which not all implementations have: brokers assign the partitions.
    """

    bootstrap: str
    topic: str
    group: str
    reset: str = "earliest"
    strategy: str | None = None
    instance: str | None = None
    sasl: Sasl | None = None
    auto_commit_ms: int | None = 1000
    protocol: str = CLASSIC

    @property
    def membership(self) -> dict[str, str | int]:
        """Settings of a member with Kafka's names; brokers have them for those of KIP-848."""
        if self.protocol != CLASSIC:
            return {"group.protocol": self.protocol}
        return {
            "partition.assignment.strategy": self.strategy or "range",
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": SESSION_MS,
        }


class Reader(ABC):
    """A consumer in a group. changes: the changes of its assignment, as its listener gets them."""

    def __init__(self) -> None:
        self.assigned: set[tuple[str, int]] = set()
        self.changes: list[tuple[str, Held]] = []

    def note(self, kind: str, partitions: Iterable[tuple[str, int]]) -> None:
        """Take in what the group gave ("assigned") or took."""
        held = frozenset(partitions)
        self.changes.append((kind, held))
        if kind == "assigned":
            self.assigned |= held
        else:
            self.assigned -= held

    def on_change(self, kind: str) -> Callable[..., None]:
        """Return a callback that records partitions, its last argument."""
        return lambda *given: self.note(kind, [(each.topic, each.partition) for each in given[-1]])

    @abstractmethod
    def poll(self) -> list[SeenRecord]:
        """Return new records; wait for at most a second."""

    @abstractmethod
    def close(self) -> list[SeenRecord]:
        """Commit if auto-commit is enabled, leave, close; returns records received meanwhile."""


class ControllableReader(Reader):
    """A reader with seek, pause and commit; `commit` is of partition 0."""

    @abstractmethod
    def pause(self, partition: int) -> None: ...

    @abstractmethod
    def resume(self, partition: int) -> None: ...

    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...

    @abstractmethod
    def commit(self, offset: int | None = None) -> None:
        """Commit an offset, or the consumed offsets, and wait for the result."""

    @abstractmethod
    def commit_async(self, offset: int) -> Callable[[], bool]:
        """Start to commit an offset; returns a function that tells whether it is committed."""


class Member:
    """A reader that polls in a thread until it leaves."""

    def __init__(self, begin: Callable[[], Reader]) -> None:
        self.seen: list[SeenRecord] = []
        self.error: BaseException | None = None
        self._reader: Reader | None = None
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._guarded, args=(begin,), daemon=True)
        self._thread.start()

    @property
    def assigned(self) -> Held:
        """The assigned partitions."""
        return frozenset(() if self._reader is None else self._reader.assigned)

    @property
    def changes(self) -> tuple[tuple[str, Held], ...]:
        """The changes of its assignment, in order."""
        return tuple(() if self._reader is None else self._reader.changes)

    def _guarded(self, begin: Callable[[], Reader]) -> None:
        try:
            self._reader = reader = begin()
            try:
                while not self._leave.is_set():
                    self.seen += reader.poll()
            finally:
                self.seen += reader.close()
        except BaseException as error:  # noqa: BLE001 - raised by the waiting test
            self.error = error

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, while the member polls."""
        until(condition, [self])

    def leave(self) -> None:
        """Leave the group, and stop the thread."""
        self._leave.set()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()
        assert self.error is None, self.error


def until(condition: Callable[[], bool], members: Sequence[Member] = ()) -> None:
    """Wait for a condition; fail if a member fails meanwhile."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        for each in members:
            assert each.error is None, each.error
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


class Implementation(ABC):
    """A client implementation, and its features."""

    name: str
    codecs: tuple[str, ...] = CODECS
    strategies: tuple[str, ...] = ("range", "roundrobin")
    resets: tuple[str, ...] = RESETS

    def produce(
        self, bootstrap: str, topic: str, values: Sequence[bytes], **how: Any
    ) -> list[tuple[int, int]]:
        """Produce values with keys k0, k1 ...; how: fields of `Produce`.

        Returns the partition and offset of each record, (-1, -1) with acks 0.
        """
        return self.send(Produce(bootstrap, topic, values, **how))

    @abstractmethod
    def send(self, args: Produce) -> list[tuple[int, int]]:
        """Produce records."""

    @abstractmethod
    def reader(self, args: Consume) -> Reader:
        """Start a consumer in a group, in this thread."""

    def member(self, bootstrap: str, topic: str, group: str, **more: Any) -> Member:
        """Start a consumer in a group, in a thread; more: fields of `Consume`."""
        return Member(lambda: self.reader(Consume(bootstrap, topic, group, **more)))


def sasl_settings(sasl: Sasl | None) -> dict[str, str]:
    """Return SASL settings with Kafka's names, for our client and librdkafka."""
    if sasl is None:
        return {}
    return {
        "security.protocol": sasl.protocol,
        "sasl.mechanism": sasl.mechanism,
        "sasl.username": sasl.user,
        "sasl.password": sasl.password,
        **({} if sasl.ca is None else {"ssl.ca.location": sasl.ca}),
    }


def sasl_arguments(sasl: Sasl | None) -> dict[str, Any]:
    """Return SASL settings with the names of kafka-python and aiokafka."""
    if sasl is None:
        return {}
    return {
        "security_protocol": sasl.protocol,
        "sasl_mechanism": sasl.mechanism,
        "sasl_plain_username": sasl.user,
        "sasl_plain_password": sasl.password,
        **({} if sasl.ca is None else {"ssl_context": ssl.create_default_context(cafile=sasl.ca)}),
    }
