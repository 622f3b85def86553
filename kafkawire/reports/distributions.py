"""Counts latencies and errors by API, client, broker and topic.

An exchange of several topics counts for each of them. So many names of a kind are counted by
name, in order of appearance; the exchanges of later names are counted together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.extraction.entities import Entities

from .cell import Cell
from .quantiles import Quantiles
from .reading import Collector

MAX_NAMES: Final = 1000
KINDS: Final = ("api", "client", "broker", "topic")
SHARES: Final = {"p50_ns": 0.5, "p95_ns": 0.95, "p99_ns": 0.99}


class Distribution(Cell[Quantiles]):
    """The exchanges of one API, client, broker or topic; name: None for all others of its kind."""

    __slots__ = ("_name",)

    def __init__(self, name: str | Topic | None) -> None:
        super().__init__(Quantiles())
        self._name = name

    @property
    def name(self) -> str | None:
        """The name; that of a topic may be learned late."""
        name = self._name
        return name if name is None or isinstance(name, str) else name.name or name.id_text

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "exchanges": self.exchanges,
            "errors": self.errors,
            "bytes": self.bytes,
            **{key: self.latency.at(share) for key, share in SHARES.items()},
            "max_ns": self.latency.max,
        }


class Distributions(Collector):
    """Collects the distributions of all kinds."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[object, Distribution]] = {kind: {} for kind in KINDS}

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Count the next exchange."""
        row = exchange.main_row
        api = row.api_name or "unknown"
        client = row.client_id or exchange.client.rpartition(":")[0]
        names: dict[str, Iterable[tuple[object, str | Topic]]] = {
            "api": [(api, api)],
            "client": [(client, client)],
            "broker": [(exchange.broker, exchange.broker)],
            "topic": entities.topics.items(),
        }
        for kind, named in names.items():
            for key, name in named:
                self._one(self._by_kind[kind], key, name).count(exchange, entities)

    def _one(
        self, known: dict[object, Distribution], key: object, name: str | Topic
    ) -> Distribution:
        distribution = known.get(key)
        if distribution is None:
            if len(known) >= MAX_NAMES:
                return known.setdefault(None, Distribution(None))
            distribution = known[key] = Distribution(name)
        return distribution

    def of(self, kind: str) -> list[Distribution]:
        """Return the distributions of a kind, those with the most exchanges first."""
        return sorted(
            self._by_kind[kind].values(),
            key=lambda one: (one.name is None, -one.exchanges, one.name or ""),
        )
