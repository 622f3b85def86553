"""Reads a capture once for any number of collectors.

Each row, exchange and end of a connection is passed once to each collector, in their order.

    captures --> rows ------.
           `--> exchanges --+--> collectors
           `--> ends -------'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkawire.capture.exchanges.exchanges import Ended, Exchange, Exchanges
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.frames.decoding import LocatedItem
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Row, Status
from kafkawire.capture.tables.context import Context
from kafkawire.capture.tables.extraction.entities import ALL_KINDS, Entities, EntitySearch

if TYPE_CHECKING:
    from kafkawire.capture.filters import Filter


class Watch(Protocol):
    """Follows the progress of reading.

    packets, bytes: read so far. again: whether the files are being read a second time, which does
    not count.
    """

    packets: int
    bytes: int
    again: bool


class Collector:
    """Collects data while a capture is read; subclasses override the methods they need.

    apis: the API keys of the rows and exchanges that it needs; None: those of all. row_apis: those
    of rows, if they are fewer. statuses: the statuses of the rows that it needs; None: all.
    entities: the kinds of entities that it uses.
    """

    apis: frozenset[int] | None = None
    row_apis: frozenset[int] | None = None
    statuses: frozenset[Status] | None = None
    entities: frozenset[str] = ALL_KINDS

    def row(self, located: Located) -> None:
        """Handle the next row."""

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle the next exchange, with the entities of both messages, of the kinds that it uses.

        There may be others of other kinds. Exchanges may share entities, which are not changed.
        """

    def ended(self, connection: Ended) -> None:
        """Handle the end of a connection, after its last row and exchange."""


ROW: Final = "row"
EXCHANGE: Final = "exchange"
ENDED: Final = "ended"


Methods = tuple[Callable[..., None], ...]


class Handlers:
    """The methods of that name of the collectors that override it.

    by_api: those that need an API that only some need. others: those for any other API, or none.
    """

    def __init__(self, collectors: Sequence[Collector], name: str) -> None:
        own = overriding(collectors, name)
        self._apis = [(each, _apis(each, name)) for each in own]
        api_keys = {api_key for _, apis in self._apis for api_key in apis or ()}
        self.by_api: dict[int | None, Methods] = {
            api_key: tuple([getattr(each, name) for each in self._of(api_key)])
            for api_key in api_keys
        }
        self.others: Methods = tuple(
            [getattr(each, name) for each, apis in self._apis if apis is None]
        )

    def __bool__(self) -> bool:
        return bool(self._apis)

    def _of(self, api_key: int | None) -> list[Collector]:
        """List the collectors that need an API."""
        return [each for each, apis in self._apis if apis is None or api_key in apis]

    def entities(self, api_key: int | None) -> frozenset[str]:
        """Return the kinds of entities that the collectors of an API use."""
        return frozenset[str]().union(*[each.entities for each in self._of(api_key)])


def handlers_of_rows(collectors: Sequence[Collector]) -> dict[Status, Handlers]:
    """Find the handlers of rows, by status."""
    return {
        status: Handlers(
            [each for each in collectors if each.statuses is None or status in each.statuses], ROW
        )
        for status in Status
    }


def overriding(collectors: Sequence[Collector], name: str) -> list[Collector]:
    """List the collectors that override a method."""
    inherited = getattr(Collector, name)
    return [each for each in collectors if getattr(type(each), name) is not inherited]


def _apis(collector: Collector, method: str) -> frozenset[int] | None:
    """Return the API keys that a method of a collector needs; None: all."""
    return (collector.row_apis if method == ROW else None) or collector.apis


class Reading:
    """A capture to read.

    context: topic names and packet positions. watch: progress of reading. refused: number of given
    files that are not captures. where: only exchanges of which a message matches are passed, and
    other rows that match; matched: how many rows were passed with a filter; hint: what may be meant
    by a filter that matches none. interrupted: whether it was not read to its end.
    """

    def __init__(
        self, traffic: Traffic, watch: Watch, refused: int = 0, where: Filter | None = None
    ) -> None:
        self.traffic = traffic
        self.context = Context(traffic)
        self.watch = watch
        self.refused = refused
        self.where = where
        self.matched = 0
        self.hint = ""
        self.interrupted = False

    def read(self, *collectors: Collector) -> None:
        """Read the capture once, for these collectors."""
        rows, exchanges = handlers_of_rows(collectors), Handlers(collectors, EXCHANGE)
        handlers_of = {status: (one.by_api.get, one.others) for status, one in rows.items()}
        ends = [each.ended for each in overriding(collectors, ENDED)]  # connections have no API
        report = Reporting(exchanges, self.context.names).report
        pairs = Exchanges()
        take = pairs.take if exchanges else None
        decode: Callable[[Any], Located] = self.context.decode if self.where is None else _same
        for batch in self._batches():
            for item in batch:
                if isinstance(item, Ended):
                    report(pairs.end(item.connection))
                    for end in ends:
                        end(item)
                    continue
                located = decode(item)
                row = located.row
                of_api, others = handlers_of[row.status]
                for handle in of_api(row.api_key, others):
                    handle(located)
                if take is not None:
                    completed = take(located)
                    if completed:
                        report(completed)

    def name_topics(self) -> None:
        """Look up names of unnamed topics in the rest of the capture."""
        self.watch.again = True
        self.context.name_topics()
        self.watch.again = False

    def _batches(self) -> Iterator[Sequence[LocatedItem | Located | Ended]]:
        """Read the capture: undecoded, or, with a filter, what matches, decoded."""
        return self.traffic.batches() if self.where is None else self._selected(self.where)

    def _selected(self, where: Filter) -> Iterator[list[Located | Ended]]:
        from kafkawire.capture.filters.unmatched import Unmatched
        from kafkawire.capture.selection.selecting import Selection

        unmatched = Unmatched(where)
        selection = Selection[Located](where, self.traffic, self, whole=True, unmatched=unmatched)
        decode = self.context.decode
        for batch in self.traffic.batches():
            for item in batch:
                yield self._counted(
                    selection.handle([item if isinstance(item, Ended) else decode(item)])
                )
        yield self._counted(selection.finish())
        if not self.matched:
            self.hint = unmatched.hint()

    def _counted(self, selected: list[Located | Ended]) -> list[Located | Ended]:
        """Count the rows of what was selected."""
        self.matched += sum(not isinstance(item, Ended) for item in selected)
        return selected

    @property
    def names(self) -> TopicNames:
        """The names of topics."""
        return self.context.names

    def learn(self, row: Row) -> None:
        """Do nothing: the context has learned the names in a row before it yields it."""


def _same(located: Located) -> Located:
    return located


class Reporting:
    """Passes exchanges to the collectors, with the entities of the kinds that these use."""

    def __init__(self, handlers: Handlers, names: TopicNames) -> None:
        self._handlers = handlers
        self._entities = EntitySearch(names, handlers.entities).entities

    def report(self, exchanges: Iterable[Exchange]) -> None:
        """Pass the next exchanges."""
        by_api, others = self._handlers.by_api, self._handlers.others
        for exchange in exchanges:
            _, _, _, request, response = exchange
            row = request or response
            handlers = by_api.get(None if row is None else row.api_key, others)
            if handlers:
                entities = self._entities(request, response)
                for handle in handlers:
                    handle(exchange, entities)
