"""What a rule is: a collector that looks for one kind of trouble and returns findings.

Memory is bounded by clients, topics, partitions and groups, and by `MAX_SUBJECTS`: what exceeds it
is counted together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, TopicNames
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.group_event import GroupEvent

from ..clients import Clients, UndecodedConnections, host
from ..groups.silences import Silences
from ..reading import Collector, Reading
from ..watermarks import Watermarks
from .finding import OTHERS, Finding, Subject
from .partition_counts import PartitionCounts
from .produced import Keys, Produced
from .responding import Responding

MAX_SUBJECTS: Final = 10_000
"""Subjects of a rule that are counted apart."""


class Threshold(NamedTuple):
    """A limit of a rule, which users may change. reason: why the default is what it is."""

    name: str
    default: float
    unit: str
    reason: str


class Scene(NamedTuple):
    """What rules know besides the traffic.

    clients, watermarks, silences, partitions: collectors that handle everything before the rules;
    the last one counts the partitions of topics. dropped_in: returns the first Kafka release that
    no longer supports a version of an API, None if all do. responding: the brokers that respond.
    explained: by rule, connections that are not decoded because of what it finds.
    """

    captures: Reading
    clients: Clients
    watermarks: Watermarks
    silences: Silences
    dropped_in: Callable[[str, int], str | None]
    partitions: PartitionCounts
    responding: Responding
    explained: dict[str, Counter[UndecodedConnections]]

    @classmethod
    def of(cls, captures: Reading, dropped_in: Callable[[str, int], str | None]) -> Scene:
        """Make the scene of captures."""
        collectors = Clients(), Watermarks(captures), Silences()
        return cls(captures, *collectors, dropped_in, PartitionCounts(), Responding(), {})

    @property
    def names(self) -> TopicNames:
        """The names of topics."""
        return self.captures.context.names

    def topic_name(self, key: TopicKey) -> str:
        """Return the name of a topic, or its id while the name is unknown."""
        names = self.names
        topic = names.topic(None, key) if isinstance(key, bytes) else names.topic(key)
        return topic.name or topic.id_text or ""


class Rule(Collector, ABC):
    """A rule; subclasses override what they need of `row`, `exchange`, `ended` and `error`, ...

    name: in lower case with hyphens. description: what it looks for, one sentence or more.
    """

    name: str
    description: str
    thresholds: tuple[Threshold, ...] = ()
    entities: frozenset[str] = frozenset()

    error_codes: frozenset[int] = frozenset()
    """The error codes for which `error` is called, for exchanges of `apis`."""

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        self.scene = scene
        self.limits = limits

    def error(self, exchange: Exchange, code: int) -> None:
        """Handle an exchange whose response has one of the error codes."""

    def responded(self, exchange: Exchange, latency_ns: int) -> None:
        """Handle an exchange of `apis` with a response, if its latency is known."""

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Handle a request of `apis` that expects a response and has none."""

    def throttled(self, exchange: Exchange, throttle_time_ms: int) -> None:
        """Handle an exchange whose response has a throttle time."""

    def group_event(self, event: GroupEvent) -> None:
        """Handle an event of a consumer group."""

    def produced(self, produced: Produced) -> None:
        """Handle the batches that a Produce request has for a partition."""

    def keys(self, keys: Keys) -> None:
        """Handle the keys of a produced batch, of some batches of each topic."""

    @abstractmethod
    def findings(self) -> Iterable[Finding]:
        """Return what is wrong, after the end of the capture."""


T = TypeVar("T")


class Subjects(Generic[T]):
    """The state of each subject; that of subjects beyond `MAX_SUBJECTS` is the one of OTHERS."""

    def __init__(self, create: Callable[[], T]) -> None:
        self._create = create
        self._states: dict[Subject, T] = {}
        self._by_key: dict[Hashable, T] = {}

    def of(self, subject: Subject) -> T:
        """Return the state of a subject."""
        state = self._states.get(subject)
        if state is None:
            if len(self._states) >= MAX_SUBJECTS and subject != OTHERS:
                return self.of(OTHERS)
            state = self._states[subject] = self._create()
        return state

    def of_key(self, key: Hashable, subject: Callable[[], Subject]) -> T:
        """Return the state of a subject by a key, which is looked up faster."""
        state = self._by_key.get(key)
        if state is None:
            state = self.of(subject())
            if len(self._by_key) < MAX_SUBJECTS:
                self._by_key[key] = state
        return state

    def __iter__(self) -> Iterator[tuple[Subject, T]]:
        return iter(self._states.items())


def client_of(
    exchange: Exchange,
    group: str | None = None,
    transactional_id: str | None = None,
    topic: TopicKey = None,
    broker: str | None = None,
    api: str | None = None,
) -> Subject:
    """Return the client of an exchange as a subject: all with the same client id are one.

    The arguments are the other fields of the subject.
    """
    client = exchange.main_row.client_id or None
    address = None if client else host(exchange.client)
    return Subject(client, address, group, None, transactional_id, topic, None, broker, None, api)


def client_at(exchange: Exchange, broker: str | None = None) -> Subject:
    """Return the client of an exchange as a subject: its client id and its address."""
    client = exchange.main_row.client_id or None
    return Subject(client=client, address=host(exchange.client), broker=broker)
