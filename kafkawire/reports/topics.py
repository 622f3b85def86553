"""Counts what was produced to topics and fetched from them.

Bytes and records are those on the wire, of complete batches, whether the broker accepted them
or not; what it did not accept is counted beside them. A topic that is referred to by id and by
name is one topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import ZERO, TopicKey, TopicNames
from kafkawire.capture.exchanges.topic_ids import Topic as NamedTopic
from kafkawire.capture.rows import Located
from kafkawire.capture.tables.arrow.record_fields import batch_names
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.capture.tables.extraction.partition_paths import REQUESTS, RESPONSES, PartitionPath
from kafkawire.errors import WireError
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.records import Budget, RecordBatches

from .expected import expects_no_response
from .reading import Collector

PRODUCED: Final = "produced"
FETCHED: Final = "fetched"


RECORDS: Final[dict[int, PartitionPath]] = {
    ApiKey.PRODUCE: REQUESTS[ApiKey.PRODUCE][0],
    ApiKey.FETCH: RESPONSES[ApiKey.FETCH][0],
    ApiKey.SHARE_FETCH: RESPONSES[ApiKey.SHARE_FETCH][0],
}
"""Where the messages of an API have records: requests of Produce, responses of others."""

RESPONDED: Final = {**RECORDS, ApiKey.PRODUCE: RESPONSES[ApiKey.PRODUCE][0]}
"""Where responses have error codes of partitions."""

PRODUCE: Final = int(ApiKey.PRODUCE)


class Amount:
    """Counts of records in one direction."""

    def __init__(self) -> None:
        self.bytes = self.batches = self.records = 0
        self.clients: dict[str, None] = {}

    def add(self, other: Amount) -> None:
        """Add the counts of another."""
        self.bytes += other.bytes
        self.batches += other.batches
        self.records += other.records
        self.clients |= other.clients

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "bytes": self.bytes,
            "batches": self.batches,
            "records": self.records,
            "client_ids": list(self.clients),
        }


class Topic:
    """What is known of one topic. name: None if it is not in the capture.

    topic_ids: several if it was deleted and created again, the last one at the end. refused:
    produced records with an error code in the response; unanswered: those without a response that
    was captured and decoded, unless acks=0.
    """

    def __init__(self, name: str | None, topic_id: str | None) -> None:
        self.name = name
        self.topic_ids = [] if topic_id is None else [topic_id]
        self.directions = {PRODUCED: Amount(), FETCHED: Amount()}
        self.refused = self.unanswered = 0
        self.partitions: set[int] = set()
        self.codecs: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()

    @property
    def label(self) -> str:
        """The name, or else the id."""
        return self.name or self.topic_id or ""

    @property
    def topic_id(self) -> str | None:
        """The last id; None if it is not in the capture."""
        return self.topic_ids[-1] if self.topic_ids else None

    @property
    def bytes(self) -> int:
        return sum(direction.bytes for direction in self.directions.values())

    @property
    def records(self) -> int:
        return sum(direction.records for direction in self.directions.values())

    def add(self, other: Topic) -> None:
        """Add the counts of the same topic."""
        self.topic_ids += [id for id in other.topic_ids if id not in self.topic_ids]
        for name, direction in self.directions.items():
            direction.add(other.directions[name])
        self.refused += other.refused
        self.unanswered += other.unanswered
        self.partitions |= other.partitions
        self.codecs.update(other.codecs)
        self.codes.update(other.codes)

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        amounts = {name: direction.json() for name, direction in self.directions.items()}
        amounts[PRODUCED] |= {"refused": self.refused, "unanswered": self.unanswered}
        return {
            "topic": self.name,
            "topic_id": self.topic_id,
            "topic_ids": self.topic_ids,
            "partitions": sorted(self.partitions),
            "bytes": self.bytes,
            "records": self.records,
            **amounts,
            "codecs": dict(self.codecs.most_common()),
            "error_codes": {ErrorCode.name_of(code): n for code, n in self.codes.most_common()},
        }


class Topics(Collector):
    """Collects the topics of a capture. on_corrupt: called for each corrupt batch."""

    apis = frozenset(RECORDS)
    row_apis = frozenset({ApiKey.PRODUCE})
    entities = frozenset({ERROR_CODES})

    def __init__(self, names: TopicNames, on_corrupt: Callable[[Located, int, str], None]) -> None:
        self._names = names
        self._on_corrupt = on_corrupt
        self._topics: dict[TopicKey, tuple[NamedTopic, Topic]] = {}

    def row(self, located: Located) -> None:
        """Count the records of a Produce request."""
        if located.row.direction == "request":
            self._count(located, RECORDS[PRODUCE], PRODUCED)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count fetched records, error codes, and produced records that were not accepted."""
        connection, client, broker, request, response = exchange
        if response is not None and response.message is not None and response.api_key is not None:
            if entities.error_codes:
                self._count_codes(response.message, RESPONDED[response.api_key])
            if response.api_key != PRODUCE:
                located = Located(connection, client, broker, response)
                self._count(located, RECORDS[response.api_key], FETCHED)
                return
        if request is not None and request.api_key == PRODUCE:
            self._count_not_accepted(exchange, entities)

    def _count(self, located: Located, path: PartitionPath, direction: str) -> None:
        """Count the records of a message."""
        row = located.row
        if row.message is None:
            return
        partitions, number = path.partitions, path.number
        for struct in getattr(row.message, path.attributes[0]) or ():
            topic = None
            for one in getattr(struct, partitions) or ():
                data = one.records
                if not data:
                    continue
                if topic is None:
                    topic = self._topic(path, struct)
                partition = getattr(one, number)
                topic.partitions.add(partition)
                for error in _count(topic, topic.directions[direction], row.client_id, data):
                    name = self._names.topic(*_reference(path, struct)).name
                    self._on_corrupt(located, len(data), f"{name}-{partition}: {error}")

    def _count_codes(self, response: Any, path: PartitionPath) -> None:
        """Count the error codes of partitions."""
        for struct in getattr(response, path.attributes[0]) or ():
            for one in getattr(struct, path.partitions) or ():
                if one.error_code:
                    topic = self._topic(path, struct)
                    topic.partitions.add(getattr(one, path.number))
                    topic.codes[one.error_code] += 1

    def _count_not_accepted(self, exchange: Exchange, entities: Entities) -> None:
        """Count the records of a Produce request that were refused, or have no response."""
        request: Any = None if exchange.request is None else exchange.request.message
        response: Any = None if exchange.response is None else exchange.response.message
        if request is None or expects_no_response(exchange):
            return
        if response is not None and not entities.error_codes:
            responded = sum([len(struct.partition_responses) for struct in response.responses])
            if responded == sum([len(struct.partition_data) for struct in request.topic_data]):
                return  # all accepted
        codes = _error_codes(response)
        path = RECORDS[PRODUCE]
        for struct in getattr(request, path.attributes[0]):
            for one in getattr(struct, path.partitions):
                code = codes.get((_reference(path, struct), getattr(one, path.number)))
                if code == ErrorCode.NONE or not one.records:
                    continue
                records = sum(count for _, count in _batches(one.records, []))
                topic = self._topic(path, struct)
                if code is None:
                    topic.unanswered += records
                else:
                    topic.refused += records

    def _topic(self, path: PartitionPath, struct: Any) -> Topic:
        """Return the counts of the topic of a struct; its name is looked up at the end."""
        name, id = _reference(path, struct)
        key = id if id and id != ZERO else name or None
        entry = self._topics.get(key)
        if entry is None:
            entry = self._topics[key] = self._names.topic(name, id), Topic(None, None)
        return entry[1]

    @property
    def all(self) -> list[Topic]:
        """Return the topics, the one with the most bytes first."""
        topics: dict[str, Topic] = {}
        for known, counts in self._topics.values():
            topic = Topic(known.name, known.id_text)
            topic.add(counts)
            same = topics.setdefault(topic.label, topic)
            if same is not topic:
                same.add(topic)
        return sorted(
            topics.values(), key=lambda topic: (-topic.bytes, -topic.records, topic.label)
        )


def _reference(path: PartitionPath, struct: Any) -> tuple[str | None, bytes | None]:
    """Return the name and the id of the topic of a struct."""
    return getattr(struct, path.name) if path.name else None, TOPIC_ID.of(struct)


def _error_codes(response: Any) -> dict[tuple[Any, int], int]:
    """Return the error code of each partition in a Produce response; none if it is None."""
    path = RESPONDED[PRODUCE]
    return {
        (_reference(path, struct), getattr(one, path.number)): one.error_code
        for struct in getattr(response, path.attributes[0], ())
        for one in getattr(struct, path.partitions)
    }


def _count(topic: Topic, direction: Amount, client_id: str | None, data: bytes) -> list[WireError]:
    """Count records; return what is wrong with them."""
    direction.bytes += len(data)
    if client_id is not None:
        direction.clients[client_id] = None
    errors: list[WireError] = []
    for codec, records in _batches(data, errors):
        direction.batches += 1
        direction.records += records
        if codec is not None:
            topic.codecs[codec] += 1
    return errors


def _batches(data: bytes, errors: list[WireError]) -> Iterator[tuple[str | None, int]]:
    """Return codec and number of records of each batch, from their headers if possible.

    The codec of a batch with an unknown one is None. errors: gets what is wrong with batches.
    """
    batches = RecordBatches(data)
    budget: Budget | None = None  # of batches whose headers have no count
    for batch in batches.batches(errors):
        try:
            codec = batch_names(batch)[1]
        except WireError as error:
            errors.append(error)
            yield None, 0
            continue
        count = batch.records_count
        if count < 0:
            budget = Budget(batches.limits) if budget is None else budget
            count = len(batch.records(budget, faults=errors))
        yield codec, count
