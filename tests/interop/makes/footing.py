"""What every make of client is asked for here: to produce, and to read as a member of a group.

Law: each make is used as its own users use it; what differs is only how it is called. A reader
belongs to one thread; members of a group wait for each other, so each has a thread of its own.

    Make ─▶ produce
         └▶ reader ─▶ Reader: poll, close            (Steered: pause, seek, commit as well)
         └▶ member ─▶ Member: a Reader in a thread
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

TIMEOUT_SECONDS: Final = 120.0
SESSION_MS: Final = 45_000
"""Long enough for a static member to come back as slowly as a JVM starts on a busy machine."""
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RESETS: Final = ("earliest", "latest", "none")
Held = frozenset[tuple[str, int]]


class Seen(NamedTuple):
    """A record as a consumer saw it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Sasl(NamedTuple):
    """Who to be."""

    mechanism: str
    user: str
    password: str


@dataclass(frozen=True)
class Order:
    """What is to be produced, where and how; of partition and timestamp only ours are told."""

    bootstrap: str
    topic: str
    values: Sequence[bytes]
    acks: str = "all"
    codec: str = "none"
    idempotent: bool = False
    sasl: Sasl | None = None
    partition: int | None = None
    timestamp: int | None = None

    def places(self, went: Iterable[Any]) -> list[tuple[int, int]]:
        """Say where records went, of what a make told of each."""
        unknown = self.acks == "0"
        return [(-1, -1) if unknown else (each.partition, each.offset) for each in went]


@dataclass(frozen=True)
class Part:
    """What a reader reads, as whom: a topic whole, in a group.

    strategy: the assignor, by Kafka's short name; None for the first that the make has.
    auto_commit_ms: how often it commits by itself; None for never.
    """

    bootstrap: str
    topic: str
    group: str
    reset: str = "earliest"
    strategy: str | None = None
    instance: str | None = None
    sasl: Sasl | None = None
    auto_commit_ms: int | None = 1000


class Reader(ABC):
    """A consumer in a group; `changes` are what the group gave and took, as the user is told."""

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

    def told(self, kind: str) -> Callable[..., None]:
        """Give a callback that notes partitions, its last argument."""
        return lambda *told: self.note(kind, [(each.topic, each.partition) for each in told[-1]])

    @abstractmethod
    def poll(self) -> list[Seen]:
        """Read what there is; wait for it a second at most."""

    @abstractmethod
    def close(self) -> list[Seen]:
        """Commit if it commits by itself, leave, end; gives what came meanwhile."""


class Steered(Reader):
    """A consumer that does what it is told; `commit` is of partition 0."""

    @abstractmethod
    def pause(self, partition: int) -> None: ...

    @abstractmethod
    def resume(self, partition: int) -> None: ...

    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...

    @abstractmethod
    def commit(self, offset: int | None = None) -> None:
        """Commit an offset, or what was read, and wait for it."""

    @abstractmethod
    def commit_async(self, offset: int) -> Callable[[], bool]:
        """Begin to commit an offset; gives what says, as it is polled, whether that is done."""


class Member:
    """A reader that polls in a thread until it is told to leave."""

    def __init__(self, begin: Callable[[], Reader]) -> None:
        self.seen: list[Seen] = []
        self.error: BaseException | None = None
        self._reader: Reader | None = None
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._guarded, args=(begin,), daemon=True)
        self._thread.start()

    @property
    def assigned(self) -> Held:
        """What it has."""
        return frozenset(() if self._reader is None else self._reader.assigned)

    @property
    def changes(self) -> tuple[tuple[str, Held], ...]:
        """What it was given and what was taken from it, in order."""
        return tuple(() if self._reader is None else self._reader.changes)

    def _guarded(self, begin: Callable[[], Reader]) -> None:
        try:
            self._reader = reader = begin()
            try:
                while not self._leave.is_set():
                    self.seen += reader.poll()
            finally:
                self.seen += reader.close()
        except BaseException as error:  # noqa: BLE001 - told to the test that waits
            self.error = error

    def until(self, happens: Callable[[], bool]) -> None:
        """Wait for something that polling brings about."""
        until(happens, [self])

    def leave(self) -> None:
        """Have it leave the group, and end."""
        self._leave.set()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()
        assert self.error is None, self.error


def until(happens: Callable[[], bool], members: Sequence[Member] = ()) -> None:
    """Wait until something is so, and none of the members that bring it about has failed."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not happens():
        for each in members:
            assert each.error is None, each.error
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Make(ABC):
    """A make of client, and what it has."""

    name: str
    codecs: tuple[str, ...] = CODECS
    strategies: tuple[str, ...] = ("range", "roundrobin")
    resets: tuple[str, ...] = RESETS

    def produce(
        self, bootstrap: str, topic: str, values: Sequence[bytes], **how: Any
    ) -> list[tuple[int, int]]:
        """Produce values with keys k0, k1 ...; how: fields of `Order`. Gives where each went,
        (-1, -1) with acks 0.
        """
        return self.send(Order(bootstrap, topic, values, **how))

    @abstractmethod
    def send(self, order: Order) -> list[tuple[int, int]]:
        """Produce what is ordered."""

    @abstractmethod
    def reader(self, part: Part) -> Reader:
        """Start a consumer in a group, in this thread."""

    def member(self, bootstrap: str, topic: str, group: str, **more: Any) -> Member:
        """Start a consumer in a group, in a thread; more: fields of `Part`."""
        return Member(lambda: self.reader(Part(bootstrap, topic, group, **more)))


def sasl_settings(sasl: Sasl | None) -> dict[str, str]:
    """Kafka's settings, as ours and librdkafka's are, for who to be."""
    if sasl is None:
        return {}
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": sasl.mechanism,
        "sasl.username": sasl.user,
        "sasl.password": sasl.password,
    }


def sasl_words(sasl: Sasl | None) -> dict[str, str]:
    """The same in the words of kafka-python and aiokafka."""
    if sasl is None:
        return {}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": sasl.mechanism,
        "sasl_plain_username": sasl.user,
        "sasl_plain_password": sasl.password,
    }
