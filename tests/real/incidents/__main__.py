"""Records incidents: real clients in trouble at a real Kafka, each as a small capture.

    python -m tests.real.incidents [NAME...]

Writes fixtures/incidents/NAME.pcap.gz, where NAME begins with the rule of `kafkawire diagnose` that
reports the incident first. Needs dumpcap, Java and the jars of Kafka; takes about nine minutes.
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

from . import asyncio_clients, connecting, consuming, java_clients, network, producing
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
        network.tls_handshakes,
        network.zero_windows,
        network.failed_connections,
        healthy,
    )
}
"""By name, which begins with that of a rule, or is `healthy`."""


def main(names: list[str]) -> None:
    """Record the incidents with these names, or all."""
    installation = with_archive(install())
    with tempfile.TemporaryDirectory() as folder, running(installation, Path(folder)) as broker:
        for name in names or INCIDENTS:
            print(name, flush=True)
            INCIDENTS[name](broker)


if __name__ == "__main__":
    main(sys.argv[1:])
