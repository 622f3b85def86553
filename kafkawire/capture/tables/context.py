"""What all tables share while a capture is read: its packets' places, topic names, what to hide.

Law: a name that is learnt late still reaches the rows before it: when a batch goes out with topics
that have no name yet, the rest of the capture is read once for names, if it can be read twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from mypy_extensions import mypyc_attr

from ...primitives import DEFAULT_LIMITS, Limits
from ..engine import Located, located
from ..exchanges.exchanges import Ended, Exchange, exchanges
from ..exchanges.topic_ids import TopicNames, may_name
from ..frames.apis import api
from ..frames.decoding import InFlightRequest, RawFrame
from ..frames.serialised import LocatedItem
from ..multifile import Traffic
from ..rows import Row, Status
from .columns import INT64, TEXT, TIME, Column, known, micros

WHERE = (
    Column("file", TEXT, "The capture file, as it was given; `-` for a stream."),
    Column("packet", INT64, "Number of the packet in the file that completes it, from 1."),
    Column("time", TIME, "When that packet was captured."),
    Column("time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("connection", INT64, "The TCP connection, counted from 0 in order of appearance."),
    Column("client", TEXT, "Address and port of the side that asks."),
    Column("broker", TEXT, "Address and port of the side that answers."),
)
"""The columns that most tables begin with."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Context:
    """A capture being read for one table.

    secrets: whether secrets are shown (see `protocol.secrets`).
    """

    def __init__(
        self, traffic: Traffic, secrets: bool = False, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.traffic = traffic
        self.secrets = secrets
        self.limits = limits
        self.names = TopicNames()
        self._looked_ahead = False

    def located(self) -> Iterator[Located | Ended]:
        """Read the capture, learning names on the way."""
        for item in self.traffic:
            if isinstance(item, Located):
                self._learn(item.row)
            yield item

    def carriers(self, wanted: Collection[tuple[int | None, str]]) -> Iterator[Located]:
        """Read the capture for the requests and responses of some APIs; of the others only those
        are opened that may name topics.
        """
        return self._opened(self.traffic, wanted)

    def _opened(
        self, traffic: Traffic, wanted: Collection[tuple[int | None, str]]
    ) -> Iterator[Located]:
        for told in traffic.raw_frames():
            if isinstance(told, Ended):
                continue
            item = told.item
            if isinstance(item, RawFrame) and item.request is not None:
                direction = "request" if item.is_request else "response"
                is_wanted = (item.request.api_key, direction) in wanted
                if not is_wanted and not _may_name(item.request, item.is_request):
                    continue
            yield self.opened(told)

    def opened(self, told: LocatedItem) -> Located:
        """Open what is sealed, and learn the names that it states."""
        found = located(told, self.limits)
        self._learn(found.row)
        return found

    def exchanges(self) -> Iterator[Exchange]:
        """Read the capture as exchanges."""
        return exchanges(self.located())

    def name_topics(self) -> None:
        """Look up topics that have no name so far, in what is still to be read."""
        if self._looked_ahead or not self.traffic.repeatable or not self.names.has_unknown:
            return
        self._looked_ahead = True
        for _ in self._opened(self.traffic.again(), ()):
            pass  # names are learnt on the way

    def where(self, row: Row, connection: int | None, client: Any, broker: Any) -> tuple[Any, ...]:
        """Make the WHERE columns of a row."""
        file, packet = self.traffic.place(row.packet)
        time_ns = known(row.time_ns)
        return file, packet, micros(time_ns), time_ns, connection, client, broker

    def _learn(self, row: Row) -> None:
        if row.status is Status.GUESSED:
            return  # a guess is shown, not built upon
        if row.message is not None and row.body_version is not None:
            self.names.learn(row.message, row.body_version)


def _may_name(asked: InFlightRequest, is_request: bool) -> bool:
    """Whether a message may state names for topic ids, as far as its header tells."""
    known = api(asked.api_key)
    side = known.request if is_request else known.response
    if side is None:
        return False
    if not side.first <= asked.api_version <= side.last:
        return True
    return may_name(side.load(), asked.api_version)
