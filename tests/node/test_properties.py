"""What a node reads from Kafka's keys when it starts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkawire.broker import Endpoint
from kafkawire.node import NodeConfig
from kafkawire.node.composition import InMemory
from kafkawire.node.config import NO_VOTERS
from kafkawire.node.properties import LOG_INTERVALS, Identity, node_config


def of(properties: dict[str, str]) -> NodeConfig:
    return node_config(Identity(1, "of one"), properties, NO_VOTERS, ())


def config(**properties: str) -> NodeConfig:
    return of({key.replace("_", "."): value for key, value in properties.items()})


@pytest.mark.parametrize(("field", "key"), LOG_INTERVALS.items())
def test_intervals_of_logs(field: str, key: str) -> None:
    assert of({key: "1234"}).log_intervals[field] == 1234


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("replica.fetch.max.bytes", "replica_fetch_max_bytes"),
        ("replica.fetch.min.bytes", "replica_fetch_min_bytes"),
        ("replica.fetch.response.max.bytes", "replica_fetch_response_max_bytes"),
    ],
)
def test_replication(key: str, field: str) -> None:
    made: Any = of({key: "1234"}).replication
    assert getattr(made, field) == 1234


def test_rebalances_snapshots_and_replica_selectors() -> None:
    assert config(auto_leader_rebalance_enable="false").rebalance_interval is None
    assert config(leader_imbalance_check_interval_seconds="7").rebalance_interval == 7
    assert config(metadata_log_max_record_bytes_between_snapshots="9").snapshot_bytes == 9
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert config(replica_selector_class=selector).replication.rack_aware
    assert not config().replication.rack_aware


def test_defaults_of_clusters_in_memory_are_not_static() -> None:
    properties = {"broker.heartbeat.interval.ms": "300"}
    [node] = InMemory([Endpoint(1, "127.0.0.1", 9092)], 0, properties, cluster_id="of one").nodes()
    assert (node.config.session_timeout, node.config.heartbeat_interval) == (1.0, 0.3)
    assert node.config.static == properties
