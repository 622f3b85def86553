"""The log of a replica on a disk: the tests and the simulation of `kafkawire.replication`."""

from __future__ import annotations

import pytest

from kafkawire.protocol import ErrorCode
from kafkawire.records import Batch, BatchBuilder
from kafkawire.records.validated import ValidatedBatch
from kafkawire.replication import AppendRejected, LogAppendInfo
from tests.fuzzing import replayable, seeds
from tests.replication.clients import Cluster
from tests.replication.log_contract import LogContract
from tests.replication.plan import draw

from .crashing_logs import CrashingReplicaLog


class TestStoredReplicaLog(LogContract):
    def new_log(self) -> CrashingReplicaLog:
        return CrashingReplicaLog()


def of_producer(sequence: int, *values: bytes) -> list[ValidatedBatch]:
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=sequence)
    for timestamp, value in enumerate(values, 1000):
        builder.append(None, value, timestamp)
    data = builder.build()
    return [ValidatedBatch(Batch(data, 0, len(data)), builder.max_timestamp)]


def test_a_batch_that_is_there_already_has_its_timestamp() -> None:
    log = CrashingReplicaLog()
    for _ in range(2):
        info = log.append_as_leader(of_producer(0, b"a", b"b"), 0)
    assert (info, log.log_end_offset) == (LogAppendInfo(0, 1, 1001), 2)


@pytest.mark.parametrize(
    ("batches", "error", "content_checked"),
    [
        (of_producer(5, b"c"), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, True),
        (of_producer(1, bytes(2000)), ErrorCode.RECORD_LIST_TOO_LARGE, False),
    ],
)
def test_refused(batches: list[ValidatedBatch], error: ErrorCode, content_checked: bool) -> None:
    log = CrashingReplicaLog()
    log.append_as_leader(of_producer(0, b"a"), 0)
    with pytest.raises(AppendRejected) as refused:
        log.append_as_leader(batches, 0)
    assert (refused.value.error, refused.value.content_checked) == (error, content_checked)


class StoredCluster(Cluster):
    log_type = CrashingReplicaLog


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(2))
def test_replicas_keep_their_promises_on_disks(seed: int) -> None:
    with replayable(seed):
        StoredCluster(draw(seed)).simulate()
