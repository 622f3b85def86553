"""The log of a replica on a disk: the tests and the simulation of `kafkawire.replication`."""

from __future__ import annotations

import pytest

from tests.fuzzing import replayable, seeds
from tests.replication.clients import Cluster
from tests.replication.log_contract import LogContract
from tests.replication.plan import draw

from .crashing_logs import CrashingReplicaLog


class TestStoredReplicaLog(LogContract):
    def new_log(self) -> CrashingReplicaLog:
        return CrashingReplicaLog()


class StoredCluster(Cluster):
    log_type = CrashingReplicaLog


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(2))
def test_replicas_keep_their_promises_on_disks(seed: int) -> None:
    with replayable(seed):
        StoredCluster(draw(seed)).simulate()
