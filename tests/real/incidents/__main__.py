"""Records incidents: real clients in trouble at a real Kafka, each as a small capture.

    python -m tests.real.incidents [NAME...]

Writes fixtures/incidents/NAME.pcap.gz, where NAME begins with the rule of `kafkawire diagnose` that
reports the incident first. Needs dumpcap, Java and the jars of Kafka; takes about a quarter of an
hour.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from tests.real.broker import Broker, running
from tests.real.class_archive import with_archive
from tests.real.java import Installation, install

from . import (
    asyncio_clients,
    brokers,
    connecting,
    consuming,
    devices,
    java_clients,
    link,
    network,
    old_brokers,
    producing,
    transacting,
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
        transacting.unstable_offsets,
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
        producing.invalid_requests,
        connecting.other_errors,
        java_clients.refused_delegation_tokens,
        java_clients.late_acknowledgements,
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
        brokers.broker_clocks,
        brokers.stale_brokers,
        transacting.concurrent_transactions,
    )
}
"""Those of three brokers."""


def by_name(incidents: Iterable[Callable[[Any], None]]) -> dict[str, Callable[[Any], None]]:
    """Return incidents by the names of their captures."""
    return {incident.__name__.replace("_", "-"): incident for incident in incidents}


SITE_INCIDENTS: Final = by_name(
    (
        devices.produce_retries,
        devices.broker_errors,
        devices.unsupported_versions,
        devices.rejected_records,
        devices.refused_members,
        devices.refused_transactions,
        devices.refused_changes,
        devices.rejected_requests,
        devices.rejected_requests_consumer,
        devices.undecoded_connections,
        devices.damaged_captures,
        devices.disk_failures,  # the last one: the disk is gone
    )
)
"""Those of a broker behind a proxy."""
LINK_INCIDENTS: Final = by_name(
    (
        link.retransmissions,
        link.network_latency,
        link.small_segments,
        link.copied_connections,
    )
)
"""Those of a network between client and broker: `unshare -n python -m tests.real.incidents`."""
OLD_INCIDENTS: Final = by_name(
    (
        old_brokers.old_versions,
        old_brokers.down_conversion,
        old_brokers.api_versions_fallback,
    )
)
"""Those of a broker of Kafka 3.9.1."""


TWIN_INCIDENTS: Final = by_name((brokers.refused_registrations,))
"""Those after which a cluster is of no use."""
FORGETFUL_INCIDENTS: Final = by_name((transacting.expired_transactional_ids,))
"""Those of a broker that forgets idle producers."""

Start = Callable[[Installation, Path], AbstractContextManager[Any]]
"""Runs what incidents need, in an empty folder."""


def main(names: list[str]) -> None:
    """Record the incidents with these names, or all but those of a network."""
    newest = with_archive(install())
    groups: list[tuple[dict[str, Callable[[Any], None]], Start, Installation]] = [
        (INCIDENTS, running, newest),
        (CLUSTER_INCIDENTS, running_cluster, newest),
        (SITE_INCIDENTS, devices.running_site, newest),
        (LINK_INCIDENTS, link.far_broker, newest),
        (TWIN_INCIDENTS, running_cluster, newest),
        (FORGETFUL_INCIDENTS, transacting.forgetful, newest),
        (OLD_INCIDENTS, running, install(version=old_brokers.RELEASE)),
    ]
    for incidents, start, installation in groups:
        selected = [name for name in names if name in incidents]
        if not names and incidents is not LINK_INCIDENTS:
            selected = list(incidents)
        if selected:
            with (
                tempfile.TemporaryDirectory() as folder,
                start(installation, Path(folder)) as running_one,
            ):
                for name in selected:
                    print(name, flush=True)
                    incidents[name](running_one)


if __name__ == "__main__":
    main(sys.argv[1:])
