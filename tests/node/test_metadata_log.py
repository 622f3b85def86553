"""The log of a quorum's replica on a disk: the tests and the simulation of `kafkawire.raft`."""

from __future__ import annotations

import pytest

from kafkawire.raft import OffsetAndEpoch
from kafkawire.raft.control_batches import data_batch
from tests.fuzzing import replayable, seeds
from tests.raft.log_contract import LogContract
from tests.raft.scenarios import scenario
from tests.raft.simulation import Simulation

from .crashing_logs import CrashingMetadataLog


class TestKafkaMetadataLog(LogContract):
    def new_log(self) -> CrashingMetadataLog:
        return CrashingMetadataLog()


class StoredSimulation(Simulation):
    log_type = CrashingMetadataLog


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(2))
def test_a_quorum_keeps_its_promises_on_disks(seed: int) -> None:
    with replayable(seed):
        StoredSimulation(scenario(seed)).run()


def test_a_crash_loses_what_is_not_flushed() -> None:
    log = CrashingMetadataLog()
    log.append(data_batch([b"a", b"b"], 0, 1, 0))
    log.flush()
    log.append(data_batch([b"c"], 2, 2, 0))
    assert log.crash() == 1
    assert log.end == OffsetAndEpoch(2, 1)


def test_records_after_a_snapshot_survive_a_restart() -> None:
    log = CrashingMetadataLog()
    log.append(data_batch([b"a"], 0, 1, 0))
    log.append(data_batch([b"b"], 1, 2, 0))
    log.flush()
    log.store_snapshot(OffsetAndEpoch(1, 1), b"state")
    log.crash()
    assert (log.start_offset, log.end) == (1, OffsetAndEpoch(2, 2))
    assert log.snapshot(OffsetAndEpoch(1, 1)) == b"state"


def test_a_snapshot_that_was_stored_replaces_the_log_at_the_next_start() -> None:
    """The process ended between the snapshot and the cut."""
    log = CrashingMetadataLog()
    log.append(data_batch([b"a"], 0, 1, 0))
    log.flush()
    other = CrashingMetadataLog()
    other.store_snapshot(OffsetAndEpoch(7, 3), b"state")
    name = "__cluster_metadata-0/00000000000000000007-0000000003.checkpoint"
    log.memory.append(name, b"state")
    log.memory.fsync(name)
    log.memory.fsync_directory("__cluster_metadata-0")
    log.crash()
    assert (log.start_offset, log.end) == (7, OffsetAndEpoch(7, 3))


def test_the_quorum_state_is_durable() -> None:
    log = CrashingMetadataLog()
    assert log.read_quorum_state() is None
    log.write_quorum_state("{}")
    log.crash()
    assert log.read_quorum_state() == "{}"
