"""Has leaders write the markers of transactions, as Kafka's TransactionMarkerChannelManager.

A marker is sent until its partition has it: again after an error, to another leader after a
change. Each broker has one request in flight, with all markers that were due for it.

    WriteMarkers ─▶ due ─▶ queue of a leader ─▶ WriteTxnMarkers ─┬─▶ written: all of them? ─▶ done
                     ▲─────────── retry.backoff ────────────────┘
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ..messages.write_txn_markers_response import WriteTxnMarkersResponse
from ..protocol import ErrorCode
from .requests import WriteMarkers
from .transaction import TopicPartition

E = ErrorCode
BACKOFF: Final = 0.1
PER_REQUEST: Final = 10_000
"""Markers in one request at most."""
NO_LEADER: Final = -1
DELETED: Final = None
WRITTEN: Final = frozenset(
    {E.NONE, E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED}
)
"""The partition has the marker, or a later epoch of the producer, which began after it."""

LeaderOf = Callable[[TopicPartition], int | None]
"""Returns the leader of a partition, NO_LEADER, or DELETED for a partition that is not there."""


class Item(NamedTuple):
    """A marker for one partition."""

    marker: WriteMarkers
    partition: TopicPartition


class MarkerRequest(NamedTuple):
    """A request to a broker. Its response, or None, is handed to `response`."""

    broker_id: int
    body: WriteTxnMarkersRequest


@dataclass(slots=True)
class Broker:
    """A leader: what is queued for it, and what is in flight."""

    queue: deque[Item]
    in_flight: list[Item]


class TransactionMarkers:
    """The markers that are to be written for the coordinators of a node."""

    def __init__(self) -> None:
        self._missing: dict[WriteMarkers, set[TopicPartition]] = {}
        self._due: deque[Item] = deque()
        self._delayed: deque[tuple[float, Item]] = deque()
        self._brokers: dict[int, Broker] = {}
        self._done: list[WriteMarkers] = []
        self.work: tuple[Collection[object], ...] = (
            self._missing,
            self._due,
            self._delayed,
            self._done,
        )
        """All empty if there is nothing to write, to send, or to return."""

    def __len__(self) -> int:
        return len(self._missing)

    def add(self, marker: WriteMarkers) -> None:
        """Begin with the markers of a transaction."""
        self._missing[marker] = set(marker.partitions)
        self._due.extend(Item(marker, each) for each in sorted(marker.partitions))
        if not marker.partitions:
            self._finish(marker)

    def drop(self, coordinator: int) -> None:
        """Drop the markers of a partition's coordinator: another one goes on with them."""
        for marker in [each for each in self._missing if each.coordinator == coordinator]:
            del self._missing[marker]

    def take_done(self) -> list[WriteMarkers]:
        """Return the transactions that have all their markers since the last call."""
        done = self._done.copy()
        self._done.clear()
        return done

    # -- sending

    def requests(self, leader_of: LeaderOf, now: float) -> list[MarkerRequest]:
        """Return the requests that are due."""
        while self._delayed and self._delayed[0][0] <= now:
            self._due.append(self._delayed.popleft()[1])
        while self._due:
            item = self._due.popleft()
            if not self._is_missing(item):
                continue
            leader = leader_of(item.partition)
            if leader is DELETED:
                self._written(item)
            elif leader == NO_LEADER:
                self._delay(item, now)
            else:
                self._brokers.setdefault(leader, Broker(deque(), [])).queue.append(item)
        idle = [(key, each) for key, each in self._brokers.items() if not each.in_flight]
        requests = [self._request(key, each) for key, each in idle if each.queue]
        return [each for each in requests if each is not None]

    def _request(self, broker_id: int, broker: Broker) -> MarkerRequest | None:
        topics: dict[WriteMarkers, dict[str, list[int]]] = {}
        while broker.queue and len(broker.in_flight) < PER_REQUEST:
            item = broker.queue.popleft()
            if self._is_missing(item):
                broker.in_flight.append(item)
                name, index = item.partition
                topics.setdefault(item.marker, {}).setdefault(name, []).append(index)
        if not topics:
            return None
        markers = [_wire(marker, each) for marker, each in topics.items()]
        return MarkerRequest(broker_id, WriteTxnMarkersRequest(markers=markers))

    def response(self, broker_id: int, body: WriteTxnMarkersResponse | None, now: float) -> None:
        """Take note of what a broker has written; None if it did not respond."""
        broker = self._brokers[broker_id]
        items, broker.in_flight = broker.in_flight, []
        errors: dict[tuple[int, TopicPartition], int] = {}
        for marker in () if body is None else body.markers:
            for topic in marker.topics:
                for each in topic.partitions:
                    key = topic.name, each.partition_index
                    errors[marker.producer_id, key] = each.error_code
        for item in items:
            error = errors.get((item.marker.producer_id, item.partition), E.NETWORK_EXCEPTION)
            if error in WRITTEN:
                self._written(item)
            elif error == E.TRANSACTION_COORDINATOR_FENCED:
                self._missing.pop(item.marker, None)
            else:
                self._delay(item, now)

    def next_deadline(self) -> float | None:
        """Return when `requests` has more to send."""
        return self._delayed[0][0] if self._delayed else None

    def _is_missing(self, item: Item) -> bool:
        return item.partition in self._missing.get(item.marker, ())

    def _delay(self, item: Item, now: float) -> None:
        if self._is_missing(item):
            self._delayed.append((now + BACKOFF, item))

    def _written(self, item: Item) -> None:
        missing = self._missing.get(item.marker)
        if missing is None:
            return
        missing.discard(item.partition)
        if not missing:
            self._finish(item.marker)

    def _finish(self, marker: WriteMarkers) -> None:
        del self._missing[marker]
        self._done.append(marker)


def _wire(marker: WriteMarkers, topics: dict[str, list[int]]) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.version,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
    )
