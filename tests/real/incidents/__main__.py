"""Records incidents: real clients in trouble at a real Kafka, each as a small capture.

    python -m tests.real.incidents [NAME...]

Writes fixtures/incidents/NAME.pcap.gz, where NAME begins with the rule of `kafkawire diagnose` that
reports the incident first. Needs dumpcap, Java and the jars of Kafka; takes about a quarter of an
hour.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.real.broker import Broker, running
from tests.real.class_archive import with_archive
from tests.real.java import install

from . import (
    asyncio_clients,
    brokers,
    connecting,
    consuming,
    java_clients,
    network,
    producing,
)
from .cluster import Cluster, running_cluster
from .healthy import healthy

INCIDENTS: Final[dict[str, Callable[[Broker], None]]] = {
    incident.__name__.replace("_", "-"): incident
    for incident in (
        producing.tiny_batches,
        producing.acks_mixed,
        producing.oversize_records,
        producing.throttling,
        producing.aborted_transactions,
        producing.long_transactions,
        producing.hot_keys,
        producing.unkeyed_skew,
        producing.fenced_producers,
        producing.hanging_transactions,
        producing.compression,
        producing.hot_partitions,
        producing.record_timestamps,
        producing.clock_offset,
        consuming.commit_rate,
        consuming.tiny_fetches,
        consuming.offset_resets,
        consuming.poll_timeouts,
        consuming.rebalance_storm,
        consuming.static_members_fighting,
        consuming.expelled_members,
        consuming.inconsistent_group_protocols,
        consuming.growing_lag,
        consuming.read_committed_stalled,
        consuming.long_rebalances,
        consuming.zombie_commits,
        connecting.unknown_topics,
        connecting.authentication_failures,
        connecting.authorization_failures,
        connecting.metadata_storm,
        connecting.connection_churn,
        connecting.many_connections,
        connecting.broker_stalls,
        connecting.unanswered_requests,
        connecting.slow_responses,
        asyncio_clients.commit_rate_aiokafka,
        asyncio_clients.poll_timeouts_aiokafka,
        asyncio_clients.rebalance_storm_aiokafka,
        java_clients.tiny_batches_java,
        java_clients.commit_rate_java,
        java_clients.expelled_members_java,
        java_clients.eager_beside_cooperative,
        java_clients.short_timeouts,
        network.tls_handshakes,
        network.zero_windows,
        network.one_way_captures,
        network.capture_loss,
        network.failed_connections,
        healthy,
    )
}
"""By name, which begins with that of a rule, or is `healthy`."""
CLUSTER_INCIDENTS: Final[dict[str, Callable[[Cluster], None]]] = {
    incident.__name__.replace("_", "-"): incident
    for incident in (
        brokers.controlled_shutdowns,
        brokers.leader_elections,
        brokers.too_few_in_sync_replicas,
        brokers.under_replicated,
        brokers.coordinator_unavailable,
        brokers.stale_metadata,
        brokers.slow_broker,
        brokers.slow_partition,
        brokers.head_of_line_blocking,
        brokers.request_timeouts,
        brokers.connection_resets,
        brokers.log_truncation,
        brokers.sequence_errors,
        brokers.other_rack,
    )
}
"""Those of three brokers."""


def main(names: list[str]) -> None:
    """Record the incidents with these names, or all."""
    installation = with_archive(install())
    selected = names or [*INCIDENTS, *CLUSTER_INCIDENTS]
    with tempfile.TemporaryDirectory() as folder:
        if of_one := [name for name in selected if name in INCIDENTS]:
            with running(installation, Path(folder)) as broker:
                for name in of_one:
                    print(name, flush=True)
                    INCIDENTS[name](broker)
    with tempfile.TemporaryDirectory() as folder:
        if of_several := [name for name in selected if name in CLUSTER_INCIDENTS]:
            with running_cluster(installation, Path(folder)) as cluster:
                for name in of_several:
                    print(name, flush=True)
                    CLUSTER_INCIDENTS[name](cluster)


if __name__ == "__main__":
    main(sys.argv[1:])
