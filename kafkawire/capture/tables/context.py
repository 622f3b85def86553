"""Holds what tables share while a capture is read: packet positions, topic names, redaction.

A topic name that is learned late still reaches earlier rows: before a batch with unnamed
topics is made, the rest of the capture is read once for names, if it can be read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mypy_extensions import mypyc_attr

from ...primitives import DEFAULT_LIMITS, Limits, Message
from ..exchanges.exchanges import Ended, Exchange, exchanges
from ..exchanges.topic_ids import TopicNames, may_name
from ..frames.decoding import LocatedItem, RawFrame, located
from ..multifile import Reader
from ..rows import Located, Row, Status
from .columns import INT64, TEXT, TIME, Column, known, micros

WHERE = (
    Column("file", TEXT, "The capture file, as given; `-` for a stream."),
    Column("packet", INT64, "Number in the file of the packet that completes the message, from 1."),
    Column("time", TIME, "When that packet was captured."),
    Column("time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("connection", INT64, "Number of the TCP connection, from 0 in order of appearance."),
    Column("client", TEXT, "Address and port of the client."),
    Column("broker", TEXT, "Address and port of the broker."),
)
"""The columns that most tables begin with."""

GUESSED: Final = Status.GUESSED


@mypyc_attr(allow_interpreted_subclasses=True)
class Context:
    """The state of reading a capture into tables.

    secrets: whether secrets are shown (see `protocol.secrets`).
    """

    def __init__(
        self, traffic: Reader, secrets: bool = False, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.traffic = traffic
        self.secrets = secrets
        self.limits = limits
        self.names = TopicNames()
        self._looked_ahead = False
        self._may_name: dict[tuple[type[Message], int], bool] = {}

    def located(self) -> Iterator[Located | Ended]:
        """Read the capture, and learn topic names."""
        for item in self.traffic:
            if isinstance(item, Located):
                self.learn(item.row)
            yield item

    def reach(self, located_item: LocatedItem) -> None:
        """Note that the topic names of this item are learned next, which some readers record."""

    def decode(self, located_item: LocatedItem) -> Located:
        """Decode a frame, and learn the topic names in it."""
        decoded = located(located_item, self.limits)
        self.learn(decoded.row)
        return decoded

    def exchanges(self) -> Iterator[Exchange]:
        """Read the capture as exchanges."""
        return exchanges(self.located())

    def name_topics(self) -> None:
        """Look up names of unnamed topics in the rest of the capture."""
        if self._looked_ahead or not self.traffic.repeatable or not self.names.has_unknown:
            return
        self._looked_ahead = True
        for located_item in self.traffic.again().raw_frames():
            if not isinstance(located_item, Ended) and _is_naming(located_item.item):
                self.decode(located_item)

    def where(self, row: Row, connection: int | None, client: Any, broker: Any) -> tuple[Any, ...]:
        """Build the WHERE columns of a row."""
        file, packet = self.traffic.place(row.packet)
        time_ns = known(row.time_ns)
        return file, packet, micros(time_ns), time_ns, connection, client, broker

    def learn(self, row: Row) -> None:
        """Learn the topic names in a message."""
        if row.status is GUESSED:
            return  # a guess may be wrong
        message, version = row.message, row.body_version
        if message is None or version is None:
            return
        cls: type[Message] = type(message)
        names = self._may_name.get((cls, version))
        if names is None:
            names = self._may_name[cls, version] = may_name(cls, version)
        if names:
            self.names.learn(message, version)


def _is_naming(item: Row | RawFrame) -> bool:
    """Whether a message may map topic ids to names, judged by its header."""
    if not isinstance(item, RawFrame) or item.request is None:
        return True
    request, is_request = item.request, item.is_request
    api = request.apis.api(request.api_key)
    side = api.request if is_request else api.response
    if side is None:
        return False
    if not side.first <= request.api_version <= side.last:
        return True
    return may_name(side.load(), request.api_version)
