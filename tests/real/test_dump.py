"""Files of a real broker: kafkawire reads the same as Kafka's dump tool.

Batch by batch, record by record, entry by entry, all fields; the required content of the files
is asserted too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from kafkawire.log import (
    FileKind,
    Finding,
    InternalLog,
    LogFile,
    RecordRow,
    SegmentReader,
    StoredBatch,
    read,
    recognise,
    walk,
)
from kafkawire.records import Batch, Compression, reencode

from . import dump_format, traffic
from .broker import running
from .dump import File, dump
from .java import Installation

pytestmark = pytest.mark.xdist_group("segments")

OF_BATCHES: Final = (FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT)
OF_ENTRIES: Final = (
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX,
    FileKind.PRODUCER_SNAPSHOT,
)
DELETED: Final = re.compile(r"-delete/|\.deleted$")
"""Folders and files that are deleted, and go after a minute; the tool does not read all of them."""

WRITTEN: Final = {
    InternalLog.OFFSETS: {
        "OffsetCommitKey",
        "GroupMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupRegularExpressionKey",
        "ShareGroupMemberMetadataKey",
        "ShareGroupMetadataKey",
        "ShareGroupTargetAssignmentMetadataKey",
        "ShareGroupTargetAssignmentMemberKey",
        "ShareGroupCurrentMemberAssignmentKey",
        "ShareGroupStatePartitionMetadataKey",
        "StreamsGroupMetadataKey",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupCurrentMemberAssignmentKey",
        "StreamsGroupTopologyKey",
    },
    InternalLog.TRANSACTIONS: {"TransactionLogKey"},
    InternalLog.SHARE: {"ShareSnapshotKey", "ShareUpdateKey"},
    InternalLog.METADATA: {
        "RegisterBrokerRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "PartitionChangeRecord",
        "RemoveTopicRecord",
        "DelegationTokenRecord",
        "UserScramCredentialRecord",
        "FeatureLevelRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "BrokerRegistrationChangeRecord",
        "AccessControlEntryRecord",
        "RemoveAccessControlEntryRecord",
        "NoOpRecord",
        "BeginTransactionRecord",
        "EndTransactionRecord",
        "RegisterControllerRecord",
    },
}
"""Log -> the record types that the traffic must have caused."""


@pytest.fixture(scope="module")
def files(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> list[LogFile]:
    """The files of a broker that has run, and has shut down in order."""
    with running(installation, tmp_path_factory.mktemp("segments")) as broker:
        traffic.run(broker)
    found = [path for path in walk(broker.data) if not DELETED.search(str(path))]
    recognised = [recognise(path) for path in found]
    assert None not in recognised, found
    return [file for file in recognised if file is not None]


def compare(
    installation: Installation,
    files: list[LogFile],
    log: InternalLog | None,
    tell: Callable[[LogFile], File],
) -> None:
    """Read the files with both, and compare."""
    said = dump(installation, [file.path for file in files], log)
    assert said.keys() == {file.path for file in files}
    for file in files:
        assert tell(file) == said[file.path], file.path


@pytest.mark.parametrize("log", [None, *WRITTEN])
def test_batches_and_records(
    installation: Installation, files: list[LogFile], log: InternalLog | None
) -> None:
    chosen = [file for file in files if file.kind in OF_BATCHES and file.log is log]
    assert chosen
    compare(installation, chosen, log, dump_format.segment)


def test_indexes_and_producers(installation: Installation, files: list[LogFile]) -> None:
    chosen = [file for file in files if file.kind in OF_ENTRIES and file.path.stat().st_size]
    assert {file.kind for file in chosen} == set(OF_ENTRIES)
    compare(installation, chosen, None, dump_format.entries)


def test_nothing_is_wrong_with_any_file(files: list[LogFile]) -> None:
    assert [row for file in files for row in read(file, file.log) if isinstance(row, Finding)] == []


@pytest.mark.parametrize("log", list(WRITTEN))
def test_what_the_logs_hold(files: list[LogFile], log: InternalLog) -> None:
    found = set()
    for file in files:
        if file.kind in OF_BATCHES and file.log is log:
            for row in read(file, log):
                if isinstance(row, RecordRow) and row.decoded is not None and row.control is None:
                    part = row.decoded.key or row.decoded.value
                    found.add(None if part is None else part.name)
    assert WRITTEN[log] <= found


def batches(files: list[LogFile]) -> Iterator[tuple[Path, Batch]]:
    for file in files:
        if file.kind in OF_BATCHES:
            with file.path.open("rb") as stream:
                for found in SegmentReader(file, stream):
                    assert isinstance(found, StoredBatch)
                    yield file.path, found.batch


def test_what_the_batches_are(files: list[LogFile]) -> None:
    all_of_them = list(batches(files))
    for writer in ("client", "broker"):
        by_writer = {b.compression for path, b in all_of_them if writer in path.parent.name}
        assert by_writer >= set(Compression) - {Compression.NONE}
    just = [batch for _, batch in all_of_them]
    assert any(batch.log_append for batch in just)
    assert any(batch.delete_horizon_ms for batch in just)
    assert any(batch.transactional and not batch.control for batch in just)
    assert any(record.value is None and record.key for batch in just for record in batch)
    assert any(None in dict(record.headers).values() for batch in just for record in batch)
    assert len({path for path, _ in all_of_them if path.parent.name == "client-none-0"}) > 1


@pytest.mark.parametrize("topic", ["client-gzip", "client-none", "broker-zstd", "log-append"])
def test_records_are_those_that_were_sent(files: list[LogFile], topic: str) -> None:
    found = [
        traffic.Sent(record.key, record.value, record.headers)
        for path, batch in batches(files)
        if path.parent.name == f"{topic}-0"
        for record in batch
    ]
    assert found == list(traffic.records(topic))


def test_batches_encode_to_the_same_bytes(files: list[LogFile]) -> None:
    plain = [
        (path, batch)
        for path, batch in batches(files)
        if batch.compression is Compression.NONE and batch.records_count
    ]
    assert len(plain) > 50
    for path, batch in plain:
        assert reencode(batch) == batch.data[batch.start : batch.end], (path, batch)
