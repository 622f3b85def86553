"""The values of a client's metrics now: of its sensors, and of its state."""

from __future__ import annotations

import math
from typing import Any, Final

from ..client.consumer import IsolationLevel
from ..client.consumer.offsets.positions import Positions
from ..client.metrics import MetricName, Metrics
from ..client.metrics.tables import CONSUMER_COORDINATOR, CONSUMER_FETCHES
from .clients.driver import Driver

LAG: Final = "records-lag"


def measured(metrics: Metrics, driver: Driver[Any, Any]) -> dict[MetricName, float]:
    """Return the metrics of a client with its connections."""
    connections = driver.client.network.connections
    values = metrics.measured(driver.now())
    values[metrics.name(metrics.group, "connection-count")] = float(len(connections))
    in_flight = sum(len(each.connection.in_flight) for each in connections if each.connection)
    values[metrics.name(metrics.group, "requests-in-flight")] = float(in_flight)
    return values


def lags(metrics: Metrics, positions: Positions, level: IsolationLevel) -> dict[MetricName, float]:
    """Return how many records a consumer has not got yet, by partition, and what it is assigned.

    Partitions whose position or end is unknown have no lag.
    """
    values: dict[MetricName, float] = {}
    assigned = list(positions)
    for partition in assigned:
        state = positions[partition]
        committed = level is IsolationLevel.READ_COMMITTED
        end = state.last_stable_offset if committed else state.high_watermark
        if state.position is not None and end >= 0:
            tags = ("topic", partition.topic), ("partition", str(partition.partition))
            lag = max(end - state.position.offset, 0)
            values[metrics.name(CONSUMER_FETCHES, LAG, *tags)] = float(lag)
    values[metrics.name(CONSUMER_FETCHES, f"{LAG}-max")] = max(values.values(), default=math.nan)
    number = metrics.name(CONSUMER_COORDINATOR, "assigned-partitions")
    values[number] = float(len(assigned))
    return values
