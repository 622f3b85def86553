"""Counts who produces to which topics and who consumes from them.

Bytes are those of record batches on the wire; followers, which fetch as brokers, are not
consumers. Memory is bounded by `MAX_LINKS`.

    client --produced--> topic --fetched--> client
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import partition_references
from kafkawire.messages.api_key import ApiKey

from .clients import host
from .reading import Collector, Reading
from .topics import FETCHED, PRODUCED

MAX_LINKS: Final = 10_000
"""Links that are counted apart."""

OTHERS: Final = "(others)"
CONSUMER: Final = -1
"""The replica id of consumers in Fetch requests."""


class Key(NamedTuple):
    """A client and a topic, and which of them sends records to the other."""

    client: str
    topic: object
    direction: str


class Link:
    """What passed between a client and a topic. errors: partitions of responses with an error."""

    __slots__ = ("bytes", "errors", "exchanges")

    def __init__(self) -> None:
        self.exchanges = self.bytes = self.errors = 0

    def add(self, other: Link) -> None:
        """Add the counts of another link."""
        self.exchanges += other.exchanges
        self.bytes += other.bytes
        self.errors += other.errors


class Topology(Collector):
    """Collects the links between clients and topics."""

    apis = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH})
    entities = frozenset[str]()

    def __init__(self, captures: Reading) -> None:
        self._names = captures.context.names
        self._topics: dict[object, Topic] = {}
        self._links: dict[Key, Link] = {}

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Count the partitions of an exchange."""
        row = exchange.main_row
        client = row.client_id or host(exchange.client)
        if row.api_key == ApiKey.PRODUCE:
            self._count(client, PRODUCED, exchange.request, records=True)
            self._count(client, PRODUCED, exchange.response, records=False)
        elif is_consumer(exchange):
            self._count(client, FETCHED, exchange.response, records=True)

    def _count(self, client: str, direction: str, row: Row | None, *, records: bool) -> None:
        """Add the partitions of a message to the links. records: whether it has records."""
        if row is None or row.message is None:
            return
        links: dict[object, Link] = {}
        for one in partition_references(row, self._names):
            topic = one.topic
            link = links.get(topic.key)
            if link is None:
                link = links[topic.key] = self._link(Key(client, topic.key, direction))
                link.exchanges += records
                self._topics.setdefault(topic.key, topic)
            link.bytes += len(getattr(one.struct, "records", None) or b"")
            link.errors += bool(getattr(one.struct, "error_code", 0))

    def _link(self, key: Key) -> Link:
        link = self._links.get(key)
        if link is None:
            if len(self._links) >= MAX_LINKS and key.client != OTHERS:
                return self._link(key._replace(client=OTHERS))
            link = self._links[key] = Link()
        return link

    @property
    def links(self) -> dict[Key, Link]:
        """The links, by names of topics, those with the most bytes first."""
        named: dict[Key, Link] = {}
        for key, link in self._links.items():
            topic = self._topics[key.topic]
            name = key._replace(topic=topic.name or topic.id_text or "")
            named.setdefault(name, Link()).add(link)
        return dict(sorted(named.items(), key=lambda item: (-item[1].bytes, str(item[0]))))


def is_consumer(exchange: Exchange) -> bool:
    """Whether a Fetch is that of a consumer; yes, if its request was not captured."""
    message: Any = exchange.request and exchange.request.message
    if message is None or exchange.main_row.api_key == ApiKey.SHARE_FETCH:
        return True
    return bool(message.replica_id == CONSUMER and message.replica_state.replica_id < 0)
