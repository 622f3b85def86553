"""Records as the dissector shows them, and as kafkawire reads them.

A batch whose codec this version of Wireshark cannot decompress has `None` for its records.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkawire.records import Compression, RecordBatches

from .tshark import PREFIX, Item

UNSUPPORTED = "cannot decompress"


class Shown(NamedTuple):
    """A record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


class Batch(NamedTuple):
    """A batch: its magic, its codec and its records."""

    magic: int
    codec: int
    is_control: bool
    records: list[Shown] | None


def expected(batches: RecordBatches) -> list[Batch]:
    """Read batches with kafkawire."""
    return [
        Batch(
            batch.magic,
            int(batch.compression),
            batch.control,
            None
            if batch.compression == Compression.ZSTD
            else [
                Shown(
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    tuple((key.encode(), value) for key, value in record.headers),
                )
                for record in batch.records(faults=[])
            ],
        )
        for batch in batches.batches(faults=[])
    ]


def shown(field: Item) -> list[Batch]:
    """Read the batches below a records field."""
    return [_batch(item) for item in field.inside if item.name == f"{PREFIX}.batch"]


def _batch(batch: Item) -> Batch:
    magic, codec = _number(batch, "batch_magic"), _number(batch, "batch_compression")
    control = batch.value("batch_control") == "1"
    if any(UNSUPPORTED in item.show for item in batch.walk()):
        assert codec == Compression.ZSTD
        return Batch(magic, codec, control, None)
    inside = [item for item in batch.walk() if item.name == f"{PREFIX}.record"]
    if not inside and magic < 2:
        inside = [batch]
    return Batch(magic, codec, control, [_record(item) for item in inside])


def _number(item: Item, name: str) -> int:
    value = item.value(name)
    assert value is not None, name
    return int(value)


def _record(item: Item) -> Shown:
    timestamp = item.value("record_timestamp")
    headers = [each for each in item.inside if each.name == f"{PREFIX}.record_header"]
    return Shown(
        _number(item, "record_offset"),
        -1 if timestamp is None else int(timestamp),
        _bytes(item, "record_key"),
        _bytes(item, "record_value"),
        tuple((_key(each), _bytes(each, "record_header_value")) for each in headers),
    )


def _key(header: Item) -> bytes:
    found = header.find("record_header_key")
    assert found is not None
    return bytes.fromhex(found.data)


def _bytes(item: Item, name: str) -> bytes | None:
    for each in item.inside:
        if each.name == f"{PREFIX}.{name}":
            return bytes.fromhex(each.data)
    nulls = [each.show for each in item.inside if each.name == f"{PREFIX}.null"]
    assert f"{PREFIX}.{name}" in nulls, name
    return None
