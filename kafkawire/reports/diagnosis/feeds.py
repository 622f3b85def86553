"""Reads something once for all rules: responses, errors, group events, batches, keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, TypeAlias

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, topic_key
from kafkawire.capture.rows import Located
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, THROTTLING, Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.capture.tables.group_events import APIS as GROUP_APIS
from kafkawire.capture.tables.group_events import CAUSES
from kafkawire.capture.tables.group_events import Groups as GroupEvents
from kafkawire.errors import WireError
from kafkawire.messages.api_key import ApiKey
from kafkawire.records import Batch, Budget, RecordBatches, RecordLimits

from ..expected import expects_no_response
from ..reading import Collector, Methods
from .produced import Keys, Produced
from .production import Production, add_codec
from .responding import Responding
from .rule import MAX_SUBJECTS, Rule, client_of


class ResponseFeed(Collector):
    """Passes latencies to rules, and requests without a response; notes which brokers respond."""

    entities = frozenset[str]()

    def __init__(
        self, responding: Responding, responded: Sequence[Rule], unanswered: Sequence[Rule]
    ) -> None:
        self._responding = responding
        self._responded = [rule for rule in responded if rule.least_latency_ns <= 0]
        self._slow = [rule for rule in responded if rule.least_latency_ns > 0]
        self._least_ns = min([rule.least_latency_ns for rule in self._slow], default=inf)
        self._unanswered = unanswered
        self._handlers: dict[tuple[str, int | None], Methods] = {}  # of brokers that respond

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Pass an exchange to the rules that need its API."""
        broker, request, response = exchange[2:]
        if response is not None:
            place = broker, response.api_key
            handlers = self._handlers.get(place)
            if handlers is None:
                handlers = self._handlers[place] = self._first(*place)
            latency_ns = since(response.request_time_ns, response.time_ns)
            if latency_ns is not None:
                for handle in handlers:
                    handle(exchange, latency_ns)
                if latency_ns >= self._least_ns:
                    self._responded_late(exchange, response.api_key, latency_ns)
        elif request is not None and not expects_no_response(exchange):
            for rule in _needing(self._unanswered, request.api_key):
                rule.unanswered(exchange, request)

    def _responded_late(self, exchange: Exchange, api_key: int | None, latency_ns: int) -> None:
        """Pass an exchange to the rules that need long latencies only."""
        for rule in _needing(self._slow, api_key):
            if latency_ns >= rule.least_latency_ns:
                rule.responded(exchange, latency_ns)

    def _first(self, broker: str, api_key: int | None) -> Methods:
        """Note that a broker responds to an API; return what handles the responses."""
        self._responding.add(broker, api_key)
        return tuple([rule.responded for rule in _needing(self._responded, api_key)])


def _needing(rules: Sequence[Rule], api_key: int | None) -> list[Rule]:
    """List the rules that need an API."""
    return [rule for rule in rules if rule.apis is None or api_key in rule.apis]


class OutcomeFeed(Collector):
    """Passes exchanges with error codes to the rules that have these, and throttled ones."""

    entities = frozenset({ERROR_CODES, THROTTLING})

    def __init__(self, erring: Iterable[Rule], throttled: Sequence[Rule]) -> None:
        self._throttled = throttled
        self._rules: dict[int, list[Rule]] = {}
        for rule in erring:
            for code in rule.error_codes:
                self._rules.setdefault(code, []).append(rule)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Pass an exchange to the rules of its error codes, and of throttling."""
        throttle_time_ms = entities.numbers.get(THROTTLING)
        if throttle_time_ms:
            for rule in self._throttled:
                rule.throttled(exchange, throttle_time_ms)
        if not entities.error_codes:
            return
        api_key = exchange.main_row.api_key
        for code in entities.error_codes:
            for rule in self._rules.get(code, ()):
                if rule.apis is None or api_key in rule.apis:
                    rule.error(exchange, code)


class GroupFeed(Collector):
    """Passes the events of consumer groups to rules."""

    apis = frozenset(GROUP_APIS)
    row_apis = CAUSES
    entities = frozenset[str]()

    def __init__(self, context: Context, rules: Sequence[Rule]) -> None:
        self._events = GroupEvents(context)
        self._rules = rules

    def row(self, located: Located) -> None:
        """Note a request that may cause a rebalance, when it is sent."""
        self._events.requested(located)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Pass the events of an exchange to the rules."""
        for event in self._events.handle(exchange):
            for rule in self._rules:
                rule.group_event(event)


_make: Final[Any] = tuple.__new__
"""Creates a named tuple from all its values in order, three times as fast as its class."""

Producing: TypeAlias = Callable[[Produced], None]
"""Handles the batches that a Produce request has for a partition."""


class ProduceFeed(Collector):
    """Counts the record batches of Produce requests, and passes them to rules, by partition.

    Corrupt batches are left out: `problems` reports them.
    """

    apis = frozenset({ApiKey.PRODUCE})
    entities = frozenset[str]()

    def __init__(self, handlers: Sequence[Producing], production: Production) -> None:
        self._produced = handlers
        self._production = production

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Count the batches of a Produce request, and pass them to the rules."""
        request = exchange.request
        if request is None or request.message is None:
            return
        message: Any = request.message
        acks, production, handlers = message.acks, self._production, self._produced
        client = request.client_id or exchange.client
        faults: list[WireError] = []
        for topic in message.topic_data:
            key = topic_key(topic.name, TOPIC_ID.of(topic))
            flow = production.flow(client, key) or production.begin(
                client, key, client_of(exchange, topic=key)
            )
            sent, load = flow.sent, flow.load
            subjects = flow.client_and_topic, flow.client, flow.topic
            partitions = sent_bytes = 0
            for partition in topic.partition_data:
                data = partition.records
                if not data:
                    continue
                batches = list(RecordBatches(data).batches(faults))
                records = 0
                for batch in batches:  # -1: unknown without decompression, of old formats
                    count = batch.records_count
                    records += count if count > 1 else 1
                    add_codec(load, batch, client)
                size, index = len(data), partition.index
                partitions += 1
                sent_bytes += size
                sent.batches += len(batches)
                sent.records += records
                load.records += records
                production.add_bytes(load, index, size)
                values = exchange, request, *subjects, index, acks, batches, records, size
                produced = _make(Produced, values)
                for handle in handlers:
                    handle(produced)
            if partitions:
                sent.seen.add(request, sent_bytes, count=partitions)
                load.seen.add(request, sent_bytes, count=partitions)


BATCHES_PER_RATE: Final = 128
"""Batches of a topic whose keys are read before only half as many are chosen.

The work for n batches is proportional to log n. A share of 10 % of the records is estimated with a
standard error of less than 3 %.
"""

KEY_LIMITS: Final = RecordLimits(
    max_batch_bytes=1 << 24, max_batch_records=100_000, max_bytes=1 << 24, max_records=100_000
)
"""Larger batches are left out: max.request.size is 1 MiB, compressed or not."""


FEW_RECORDS: Final = 5000
FEW_BYTES: Final = 1_000_000
"""The keys of a topic are read after so many records or bytes: most topics of a cluster are small,
and say nothing about load."""


class Rate:
    """How many batches of a topic are chosen: one of 2**halvings. chosen: at this rate, so far.

    records, bytes: of all batches of the topic.
    """

    __slots__ = ("bytes", "chosen", "halvings", "records")

    def __init__(self) -> None:
        self.chosen = self.halvings = self.records = self.bytes = 0


class KeyFeed:
    """Passes the keys of some batches of each topic to rules.

    The checksum of a batch decides by chance whether it is chosen, whatever its partition.
    """

    def __init__(self, handlers: Sequence[Callable[[Keys], None]]) -> None:
        self._keys = handlers
        self._rates: dict[TopicKey, Rate] = {}

    def produced(self, produced: Produced) -> None:
        """Read the keys of the batches that are chosen."""
        topic = produced.topic.topic
        rate = self._rates.get(topic)
        if rate is None:
            if len(self._rates) >= MAX_SUBJECTS:
                return
            rate = self._rates[topic] = Rate()
        rate.records += produced.records
        rate.bytes += produced.size
        if rate.records <= FEW_RECORDS and rate.bytes <= FEW_BYTES:
            return
        for batch in produced.batches:
            weight = 1 << rate.halvings
            if batch.crc & (weight - 1):
                continue
            rate.chosen += 1
            if rate.chosen == BATCHES_PER_RATE:
                rate.chosen = 0
                rate.halvings += 1
            counts = keys_of(batch)
            if counts:
                keys = Keys(produced, counts, weight, batch.size)
                for handle in self._keys:
                    handle(keys)


def keys_of(batch: Batch) -> Counter[bytes | None]:
    """Count the records of a batch by key; those before a fault of a corrupt one."""
    return Counter(record.key for record in batch.records(Budget(KEY_LIMITS), faults=[]))
