"""A cluster of nodes that all vote, in a thread of its own, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from ..server_config import QUICK, ServerConfig
from ..server_thread import ServerThread

if TYPE_CHECKING:
    from ...node.composition import Disks
    from ..brokers.recording import Recording

SOON: Final = {
    **QUICK,
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.append.linger.ms": "1",
    "offsets.topic.num.partitions": "3",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "3",
}
"""Default settings of a cluster in tests: failures are noticed soon."""
THREE: Final = ServerConfig(brokers=3)


class ClusterThread(ServerThread):
    """A cluster of nodes that are brokers and controllers.

    config: its settings take precedence over `SOON`; replication factors are the number of brokers
    unless it sets them. persisted: what another cluster had on its disks, to begin with that.
    """

    combined: ClassVar = True

    def __init__(
        self,
        config: ServerConfig = THREE,
        *,
        recording: Recording | None = None,
        persisted: Disks | None = None,
    ) -> None:
        config.refuse("zookeeper", "nodes that vote have a KRaft quorum")
        factor = {"default.replication.factor": str(config.brokers)}
        config = replace(config, settings={**factor, **SOON, **config.settings})
        super().__init__(config, recording=recording, persisted=persisted)
