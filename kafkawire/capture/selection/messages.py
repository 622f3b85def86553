"""The fields of a message that filters compare, with those of its exchange.

The header is enough for most filters; a body is decoded, once, if a filter needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from ..exchanges.exchanges import is_paired
from ..exchanges.topic_ids import Topic, TopicNames, may_name
from ..files.blocks import NO_TIME
from ..filters import Values
from ..filters.fields import addresses
from ..frames.apis import KAFKA_APIS
from ..frames.decoding import LocatedItem, RawFrame
from ..multifile import file_and_packet
from ..rows import Located, Row, Status

PRODUCE: Final = 0

Item = TypeVar("Item", LocatedItem, Located)


class Names(Protocol):
    """What knows names of topics: `tables.context.Context`."""

    @property
    def names(self) -> TopicNames:
        """The names that are known."""

    def learn(self, row: Row) -> None:
        """Learn the topic names in a message."""

    def name_topics(self) -> None:
        """Look up names of unnamed topics in the rest of the capture."""


class Message(Generic[Item]):
    """An item, and what is known of it.

    header: a row of which only what the header contains is valid. other: the other message of the
    exchange, once it is known. alone: whether there is none, or it will not be known. verdict: of
    the filter; None while it is not known.
    """

    __slots__ = ("_row", "alone", "header", "item", "other", "verdict")

    def __init__(self, item: Item) -> None:
        self.item: Item = item
        content = _content(item)
        self._row: Row | None = None if isinstance(content, RawFrame) else content
        self.header: Row = _header(content) if isinstance(content, RawFrame) else content
        self.other: Message[Item] | None = None
        self.alone = False
        self.verdict: bool | None = None

    @property
    def row(self) -> Row:
        """The decoded row."""
        row = self._row
        if row is None:
            content = _content(self.item)
            row = self._row = content.decode() if isinstance(content, RawFrame) else content
        return row

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.header.length

    @property
    def is_paired(self) -> bool:
        """Whether it is in an exchange, as `Exchanges` has it."""
        item, row = self.item, self.header
        if None in (item.connection, item.client, item.broker):
            return False
        return is_paired(row)

    def may_name_topics(self) -> bool:
        """Whether the message may state names of topic ids, judged by its header."""
        if self._row is not None:
            return self._row.message is not None
        header = self.header
        api = KAFKA_APIS.api(header.api_key or 0)
        side = api.request if header.direction == "request" else api.response
        version = header.api_version or 0
        if side is None:
            return False
        return not side.first <= version <= side.last or may_name(side.load(), version)

    def expects_no_response(self) -> bool:
        """Whether it is a Produce with acks=0."""
        if self.header.api_key != PRODUCE or self.header.direction != "request":
            return False
        return getattr(self.row.message, "acks", None) == 0

    def values(self, field: str, names: Names | None) -> Values:
        """Return the values of a field."""
        get = OWN.get(field)
        if get is not None:
            return Values(get(self))
        values = list(OF_EXCHANGE[field](self, names))
        complete = self.alone
        if self.other is not None:
            values += OF_EXCHANGE[field](self.other, names)
            complete = True
        if complete and not values:
            values = list(ABSENT.get(field, ()))
        return Values(values, complete)


def _content(item: LocatedItem | Located) -> Row | RawFrame:
    return item.item if isinstance(item, LocatedItem) else item.row


def _header(raw: RawFrame) -> Row:
    request = raw.request
    if request is None or raw.body < 0:
        return raw.decode()
    response = not raw.is_request
    return Row(
        raw.packet,
        raw.time_ns,
        "response" if response else "request",
        len(raw.frame),
        Status.OK,
        "",
        request.api_key,
        request.apis.api(request.api_key).name,
        request.api_version,
        request.correlation_id,
        request.client_id,
        request_packet=request.packet if response else None,
        request_time_ns=request.time_ns if response else None,
    )


# -- fields of the message itself

AnyMessage = Message[Any]


def _known(*values: Any) -> tuple[Any, ...]:
    return tuple(value for value in values if value is not None)


def _api(message: AnyMessage) -> tuple[str, ...]:
    row = message.header
    key = () if row.api_key is None else (str(row.api_key),)
    return key if row.api_name is None else (row.api_name.lower(), *key)


def _time(message: AnyMessage) -> tuple[int, ...]:
    time_ns = message.header.time_ns
    return () if time_ns in (NO_TIME, 0) else (time_ns,)


def _packet(message: AnyMessage) -> tuple[int, ...]:
    number = file_and_packet(message.header.packet)[1]
    return (number,) if number else ()


OWN: Final[dict[str, Callable[[AnyMessage], Iterable[Any]]]] = {
    "api": _api,
    "client": lambda message: _known(message.header.client_id),
    "client_address": lambda message: addresses(message.item.client),
    "broker": lambda message: addresses(message.item.broker),
    "connection": lambda message: _known(message.item.connection),
    "direction": lambda message: (message.header.direction,),
    "status": lambda message: (message.row.status.value,),
    "size": lambda message: (message.header.length,),
    "time": _time,
    "packet": _packet,
    "correlation_id": lambda message: _known(message.header.correlation_id),
    "version": lambda message: _known(message.header.api_version),
}
"""Fields of a message itself."""


# -- fields of the exchange: what each of its messages contributes


def _latency(message: AnyMessage, _: Names | None) -> list[int]:
    row = message.header
    if row.request_time_ns is None or min(row.time_ns, row.request_time_ns) <= 0:
        return []
    return [row.time_ns - row.request_time_ns]


def _answered(message: AnyMessage, _: Names | None) -> list[str]:
    is_answer = message.header.direction == "response"
    return ["yes"] if is_answer or message.expects_no_response() else []


def _errors(message: AnyMessage, _: Names | None) -> list[str]:
    from ...protocol.error_code import ErrorCode

    if message.header.direction != "response":
        return []
    return [ErrorCode.name_of(code).lower() for code in _entities(message, None).error_codes]


def _topics(message: AnyMessage, names: Names | None) -> list[str]:
    topics = list(_entities(message, names).topics.values())
    return _texts(topics, names)


def _texts(topics: list[Topic], names: Names | None) -> list[str]:
    """Return names and ids of topics; a name may be stated later in the capture."""
    if names is not None and any(topic.name is None for topic in topics):
        names.name_topics()
    return [text for topic in topics for text in (topic.name, topic.id_text) if text]


def _partitions(message: AnyMessage, names: Names | None) -> list[int]:
    from ..tables.extraction.partition_fields import partition_references

    topic_names = TopicNames() if names is None else names.names
    return [one.partition for one in partition_references(message.row, topic_names)]


def _groups(message: AnyMessage, names: Names | None) -> list[str]:
    return list(_entities(message, names).groups)


def _entities(message: AnyMessage, names: Names | None) -> Any:
    from ..tables.extraction.entities import Entities

    entities = Entities(TopicNames() if names is None else names.names)
    entities.add(message.row)
    return entities


OF_EXCHANGE: Final[dict[str, Callable[[AnyMessage, Names | None], list[Any]]]] = {
    "latency": _latency,
    "answered": _answered,
    "error": _errors,
    "topic": _topics,
    "partition": _partitions,
    "group": _groups,
}
"""Fields of an exchange: what one of its messages contributes."""

ABSENT: Final = {"error": ("none",), "answered": ("no",)}
"""Values of fields of an exchange to which no message contributes."""
