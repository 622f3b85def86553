"""What a rule is: a collector that looks for one kind of trouble and returns findings.

Memory is bounded by clients, topics, partitions and groups, and by `MAX_SUBJECTS`: what exceeds it
is counted together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, TopicNames
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.group_event import GroupEvent

from ..clients import Clients, UndecodedConnections, host
from ..groups.silences import Silences
from ..reading import Collector, Reading
from ..watermarks import Watermarks
from .fetched import Fetched
from .finding import Finding, Subject
from .partition_counts import PartitionCounts
from .produced import Keys, Produced
from .production import Production
from .responding import Responding
from .subjects import MAX_SUBJECTS, Subjects

__all__ = ["MAX_SUBJECTS", "Rule", "Scene", "Subjects", "Threshold", "client_at", "client_of"]


class Threshold(NamedTuple):
    """A limit of a rule, which users may change. reason: why the default is what it is."""

    name: str
    default: float
    unit: str
    reason: str


class Scene(NamedTuple):
    """What rules know besides the traffic.

    clients, watermarks, silences, partitions: collectors that handle everything before the rules;
    the last one counts the partitions of topics. production: what clients produced, counted before
    rules handle it. dropped_in: returns the first Kafka release that no longer supports a version
    of an API, None if all do. responding: the brokers that respond. explained: by rule, connections
    that are not decoded because of what it finds.
    """

    captures: Reading
    clients: Clients
    watermarks: Watermarks
    silences: Silences
    dropped_in: Callable[[str, int], str | None]
    partitions: PartitionCounts
    responding: Responding
    production: Production
    explained: dict[str, Counter[UndecodedConnections]]

    @classmethod
    def of(cls, captures: Reading, dropped_in: Callable[[str, int], str | None]) -> Scene:
        """Make the scene of captures."""
        return cls.beside(captures, Clients(), Watermarks(captures), Silences(), dropped_in)

    @classmethod
    def beside(
        cls,
        captures: Reading,
        clients: Clients,
        watermarks: Watermarks,
        silences: Silences,
        dropped_in: Callable[[str, int], str | None],
    ) -> Scene:
        """Make the scene of captures of which another report has these collectors."""
        own = PartitionCounts(), Responding(), Production()
        return cls(captures, clients, watermarks, silences, dropped_in, *own, {})

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

    least_latency_ns: int = 0
    """The latency from which `responded` is called."""

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

    def fetched(self, fetched: Fetched) -> None:
        """Handle a Fetch with its response."""

    def keys(self, keys: Keys) -> None:
        """Handle the keys of a produced batch, of some batches of each topic."""

    @abstractmethod
    def findings(self) -> Iterable[Finding]:
        """Return what is wrong, after the end of the capture."""


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
