"""Selects items of a capture with a filter, in order.

The result is a part of the items, in the same order. Conditions on latency, errors, topics,
partitions and groups are about the exchange, and hold for both of its messages. So a request waits
until its response decides, and what follows it waits, too; memory is bounded, and a request that
would exceed the bounds is judged without its response.

    items --> pairs --> filter: no ---> dropped
                          | yes ------> queue --.
                          `- not yet -> queue --+--> items, in order
    the response, the end of the connection, or the bounds decide

For reports, whole exchanges are selected: both messages, if one of them matches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, Generic

from ..exchanges.exchanges import Ended, Exchange, Exchanges
from ..filters import Filter
from ..filters.evaluation import Lookup
from ..filters.unmatched import Unmatched
from ..multifile import Traffic
from ..rows import Located, Status
from .messages import Item, Message, Names

MAX_WAITING: Final = 1 << 15
"""Messages in the queue at most."""

MAX_WAITING_BYTES: Final = 1 << 24
"""Their bytes at most."""


class Selection(Generic[Item]):
    """Selects items of one capture.

    traffic: the capture, for relative times. names: knows names of topics; without it, topics have
    the names that their messages state. whole: whether exchanges are selected as a whole.
    unmatched: gets the values that are compared until a message matches.
    """

    def __init__(
        self,
        where: Filter,
        traffic: Traffic | None = None,
        names: Names | None = None,
        *,
        whole: bool = False,
        unmatched: Unmatched | None = None,
    ) -> None:
        self._where = where
        self._traffic = traffic
        self._names = names
        self._whole = whole
        self._unmatched = None if unmatched is None or unmatched.matched else unmatched
        self._learns = names is not None and any(one.name == "topic" for one in where.fields)
        self._paired = whole or any(field.of_exchange for field in where.fields)
        self._pairs = Exchanges()
        self._open: dict[int, Message[Item]] = {}
        self._waiting: deque[Message[Item] | Ended] = deque()
        self._waiting_bytes = 0
        self._note: Message[Item] | None = None  # in front of the next message
        self._selected: list[Item | Ended] = []
        self._connections: set[int | None] = set()

    def handle(self, items: Iterable[Item | Ended]) -> list[Item | Ended]:
        """Handle the next items; return those that are selected, as far as that is decided.

        The end of a connection is selected if an item of it was.
        """
        for item in items:
            if isinstance(item, Ended):
                self._complete(self._pairs.end(item.connection))
                self._waiting.append(item)
            else:
                self._take(Message(item))
        return self._take_selected()

    def finish(self) -> list[Item | Ended]:
        """Handle the end of the capture."""
        self._complete(self._pairs.finish())
        return self._take_selected()

    def _take(self, message: Message[Item]) -> None:
        if self._learns and self._names is not None and message.may_name_topics():
            self._names.learn(message.row)
        if self._paired and message.header.status is Status.OUT_OF_ORDER:
            self._overtake(message)
            return
        if self._paired and message.is_paired:
            self._pair(message)
        else:
            message.alone = True
            self._judge(message)
        note, self._note = self._note, None
        if message.verdict is False:
            return
        if note is not None:
            note.verdict = True
            self._waiting.append(note)
        self._waiting.append(message)
        self._waiting_bytes += message.size
        self._release()
        while len(self._waiting) > MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES:
            first = self._waiting[0]
            assert not isinstance(first, Ended)
            first.alone = True
            self._judge(first)
            self._release()

    def _overtake(self, note: Message[Item]) -> None:
        """Handle the row in front of a response out of order, which is selected with that."""
        item = note.item
        self._pairs.take(Located(item.connection, item.client, item.broker, note.header))
        self._note = note

    def _pair(self, message: Message[Item]) -> None:
        item = message.item
        assert item.connection is not None
        ends = item.client or "", item.broker or ""
        self._open[id(message.header)] = message
        self._complete(self._pairs.take(Located(item.connection, *ends, message.header)))
        if message.verdict is None and not self._whole:
            self._judge(message)
        if message.verdict is None and message.expects_no_response():
            message.alone = True
            self._judge(message)

    def _complete(self, exchanges: Iterable[Exchange]) -> None:
        """Judge the messages of complete exchanges."""
        for exchange in exchanges:
            rows = (row for row in (exchange.request, exchange.response) if row is not None)
            of_exchange = [self._open.pop(id(row)) for row in rows]
            for message in of_exchange:
                others = [one for one in of_exchange if one is not message]
                message.other = others[0] if others else None
                message.alone = not others
                if message.verdict is None:
                    self._judge(message)
            if self._whole and any(message.verdict for message in of_exchange):
                for message in of_exchange:
                    message.verdict = True
            for message in of_exchange:
                message.other = None

    def _judge(self, message: Message[Item]) -> None:
        first_ns = None if self._traffic is None else self._traffic.first_ns
        names = self._names
        unmatched = self._unmatched
        if unmatched is None:
            lookup: Lookup = lambda field: message.values(field, names)  # noqa: E731
        else:
            lookup = lambda field: unmatched.add(field, message.values(field, names))  # noqa: E731
        message.verdict = self._where.matches(lookup, first_ns)
        if message.verdict and unmatched is not None:
            unmatched.matched = True
            self._unmatched = None

    def _release(self) -> None:
        """Move what is decided from the front of the queue to the result."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if isinstance(first, Ended):
                if first.connection in self._connections:
                    self._connections.remove(first.connection)
                    self._selected.append(first)
            elif first.verdict is None:
                return
            else:
                self._waiting_bytes -= first.size
                if first.verdict:
                    self._connections.add(first.item.connection)
                    self._selected.append(first.item)
            waiting.popleft()

    def _take_selected(self) -> list[Item | Ended]:
        self._release()
        selected, self._selected = self._selected, []
        return selected
