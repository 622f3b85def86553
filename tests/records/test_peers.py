"""Other libraries read what we write, and we read what they write."""

from __future__ import annotations

from typing import Any

import aiokafka.record.memory_records as aiokafka
import kafka.record.memory_records as kafka_python
import pytest

from kafkawire.records import BatchBuilder, Compression, MessageSetBuilder, Record, RecordBatches

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value" * 300, (("h", b"x"), ("n", None))),
    Record(1, 1_700_000_000_007, None, b""),
    Record(2, 1_700_000_000_001, b"", b"z" * 40_000),
]
OLD = [
    (codec, magic)
    for codec in list(Compression)[:4]
    for magic in (0, 1)
    if (codec, magic) != (Compression.LZ4, 0)  # aiokafka has not its header checksum
]
LEGACY = [Record(r.offset, r.timestamp, r.key, r.value) for r in RECORDS]


def read_by(records: Any, timestamps: bool = True) -> list[Record]:
    """Read with a library whose batches have kafka-python's interface."""
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for r in batch:
            stamp = r.timestamp if timestamps else -1
            found.append(Record(r.offset, stamp, r.key, r.value, tuple(r.headers)))
    return found


@pytest.mark.parametrize("codec", list(Compression))
def test_magic_2_is_read_by_aiokafka(codec: Compression) -> None:
    builder = BatchBuilder(compression=codec)
    builder.extend(RECORDS)
    assert read_by(aiokafka.MemoryRecords(builder.build())) == RECORDS


@pytest.mark.parametrize(("codec", "magic"), OLD)
def test_message_sets_are_read_by_aiokafka(codec: Compression, magic: int) -> None:
    builder = MessageSetBuilder(magic, compression=codec)
    for record in LEGACY:
        builder.append(record.key, record.value, record.timestamp)
    read = read_by(aiokafka.MemoryRecords(builder.build()), timestamps=magic == 1)
    assert read == [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in LEGACY]


@pytest.mark.parametrize("codec", list(Compression)[:2])
def test_magic_2_is_read_by_kafka_python(codec: Compression) -> None:
    builder = BatchBuilder(compression=codec)
    builder.extend(RECORDS)
    assert read_by(kafka_python.MemoryRecords(builder.build())) == RECORDS


@pytest.mark.parametrize("codec", list(Compression))
def test_magic_2_of_aiokafka_is_read(codec: Compression) -> None:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for r in RECORDS:
        builder.append(r.offset, r.timestamp, r.key, r.value, list(r.headers))
    assert list(RecordBatches(bytes(builder.build())).records()) == RECORDS


@pytest.mark.parametrize(("codec", "magic"), OLD)
def test_message_sets_of_aiokafka_are_read(codec: Compression, magic: int) -> None:
    from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for r in LEGACY:
        builder.append(r.offset, r.timestamp, r.key, r.value)
    read = list(RecordBatches(bytes(builder.build())).records())
    assert read == [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in LEGACY]
