"""The metrics of one client: sensors, which its parts record into, and their values by name.

Nothing is recorded for a record alone: a value is that of a request, a batch, or a poll. Time is
passed in.

    record, on_response ─▶ sensors ─▶ measured(now): {MetricName: value}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ...messages.api_key import ApiKey
from ..requests import ResponseReceived
from . import tables
from .sensors import SampleSettings, Sensor
from .tables import Row


class MetricName(NamedTuple):
    """The name of a metric. tags: (tag, value), as `client-id`, `node-id`, `topic`, `partition`."""

    group: str
    name: str
    tags: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        tags = ", ".join(f"{tag}={value}" for tag, value in self.tags)
        return f"{self.group}: {self.name} ({tags})"


Assigned = frozenset[tuple[bytes, int]]
"""Topic ids and partitions."""


class Metrics:
    """What a client measures. prefix: of its groups, as `producer`. rows: its own metrics."""

    def __init__(
        self,
        prefix: str,
        rows: Iterable[Row],
        client_id: str,
        settings: SampleSettings,
    ) -> None:
        self.group = f"{prefix}-metrics"
        self._node_group = f"{prefix}-node-metrics"
        self._settings = settings
        self._rows = [*rows, *tables.request_rows(self.group)]
        self._node_rows = tables.request_rows(self._node_group)
        self._client = ("client-id", client_id)
        self._sensors = {row.sensor: Sensor(settings) for row in self._rows}
        self._nodes: dict[int, Sensor] = {}
        self._assigned: Assigned = frozenset()

    def record(self, sensor: str, value: float, now: float) -> None:
        """Record a value; of a sensor that this client does not have, nothing."""
        measured = self._sensors.get(sensor)
        if measured is not None:
            measured.record(value, now)

    def on_response(self, event: ResponseReceived, now: float) -> None:
        """Record the latency of a request, and what the response says."""
        latency_ms = event.latency_s * 1000
        api = event.request.api
        self.record(tables.REQUEST, latency_ms, now)
        node = self._nodes.get(event.node)
        if node is None:
            node = self._nodes[event.node] = Sensor(self._settings)
        node.record(latency_ms, now)
        sensor = tables.SENSORS.get(api)
        if sensor is not None and not (api in ONLY_SUCCESSFUL and _error(event.message)):
            self.record(sensor, latency_ms, now)
        value_of = VALUES.get(api)
        if value_of is not None:
            value = value_of(self, event.message)
            if value is not None:
                self.record(*value, now)

    def assigned(self, partitions: Assigned) -> bool:
        """Note an assignment; return whether it is another than before."""
        before, self._assigned = self._assigned, partitions
        return partitions != before

    def name(self, group: str, name: str, *tags: tuple[str, str]) -> MetricName:
        """Return the name of a metric of this client."""
        return MetricName(group, name, (self._client, *tags))

    def measured(self, now: float) -> dict[MetricName, float]:
        """Return the values of all metrics that have a sensor."""
        values = {
            self.name(row.group, row.name): row.stat(self._sensors[row.sensor], now)
            for row in self._rows
        }
        for node, sensor in sorted(self._nodes.items()):
            for row in self._node_rows:
                name = self.name(row.group, row.name, ("node-id", f"node-{node}"))
                values[name] = row.stat(sensor, now)
        return values


Value = tuple[str, float] | None
"""A sensor and a value for it."""


def _error(message: Any) -> int:
    code: int = message.error_code
    return code


def _fetch_size(_metrics: Metrics, message: Any) -> Value:
    rows = [row for topic in message.responses for row in topic.partitions]
    return tables.FETCH_SIZE, float(sum(len(row.records or b"") for row in rows))


def _rebalance_by_sync(_metrics: Metrics, message: Any) -> Value:
    return None if _error(message) else (tables.REBALANCE, 1.0)


def _rebalance_by_heartbeat(metrics: Metrics, message: Any) -> Value:
    """A rebalance is another assignment; the first one may be empty, as before."""
    if _error(message) or message.assignment is None:
        return None
    partitions = frozenset(
        (topic.topic_id, partition)
        for topic in message.assignment.topic_partitions
        for partition in topic.partitions
    )
    return (tables.REBALANCE, 1.0) if metrics.assigned(partitions) else None


ONLY_SUCCESSFUL: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""Requests whose latency is recorded only if they have no error."""

VALUES: Final[Mapping[ApiKey, Callable[[Metrics, Any], Value]]] = {
    ApiKey.FETCH: _fetch_size,
    ApiKey.SHARE_FETCH: _fetch_size,
    ApiKey.SYNC_GROUP: _rebalance_by_sync,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _rebalance_by_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _rebalance_by_heartbeat,
}
"""API -> what is recorded of a response."""
