"""Decodes and encodes record batches with records of 100 bytes: kafkawire, aiokafka, kafka-python.

Every contender verifies the batch's checksum and has all records at the end: as objects with
their fields read, as columns in Arrow's layout, or as Arrow arrays of them (whose cost does not
depend on the number of rows).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from kafkawire.records import BatchBuilder, Compression, RecordBatches

from . import report
from .measure import Figure, interleave

DECODE: Final = "records decode"
ENCODE: Final = "records encode"
SIZES: Final = {"16 KiB": (1, 16 << 10), "64 x 16 KiB": (64, 16 << 10), "1 MiB": (1, 1 << 20)}
"""Number of batches in a field, and their approximate size before compression."""

FIRST_TIMESTAMP: Final = 1_700_000_000_000
RECORD_BYTES: Final = 100
OVERHEAD: Final = 11
"""Bytes of such a record besides its value, approximately."""


def values(size: int) -> list[bytes]:
    """Make values of RECORD_BYTES that fill a batch of about `size`, compressible as logs are."""
    line = b'{"sequence":%08d,"level":"INFO","message":"the quick brown fox jumps over the dog"}'
    return [
        (line % index).ljust(RECORD_BYTES, b".")
        for index in range(size // (RECORD_BYTES + OVERHEAD))
    ]


def encode_own(codec: Compression, size: int) -> Callable[[], bytes]:
    """Bind the writing of one batch with kafkawire."""
    filling = values(size)

    def encode() -> bytes:
        builder = BatchBuilder(compression=codec)
        for index, value in enumerate(filling):
            builder.append(None, value, FIRST_TIMESTAMP + index)
        return builder.build()

    return encode


def encode_peer(package: str, codec: Compression, size: int) -> Callable[[], bytes]:
    """Bind the same with a library whose builders have kafka-python's interface."""
    builder_class = import_module(f"{package}.record.default_records").DefaultRecordBatchBuilder
    filling = values(size)

    def encode() -> bytes:
        builder = builder_class(2, int(codec), False, -1, -1, -1, 2 * size)
        for index, value in enumerate(filling):
            builder.append(index, FIRST_TIMESTAMP + index, None, value, [])
        return bytes(builder.build())

    return encode


def decode_peer(package: str, data: bytes) -> Callable[[], list[Any]]:
    """Bind reading with a library whose batches have kafka-python's interface."""
    reader = import_module(f"{package}.record.memory_records").MemoryRecords

    def decode() -> list[Any]:
        batches: list[Any] = []
        records = reader(data)
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise AssertionError(f"{package} refuses the checksum")
            batches.extend(batch)
        return batches

    return decode


def decode_figures(codec: Compression, name: str, rounds: int) -> list[Figure]:
    """Time reading one field."""
    count, size = SIZES[name]
    data = encode_own(codec, size)() * count
    expected = count * len(values(size))
    contenders: dict[str, Callable[[], Any]] = {
        "objects": lambda: list(RecordBatches(data).records()),
        "columns": lambda: RecordBatches(data).columns(),
        "arrays": lambda: RecordBatches(data).columns().to_arrow(),
        "aiokafka": decode_peer("aiokafka", data),
        "kafka-python": decode_peer("kafka", data),
    }
    for contender, decode in contenders.items():
        decoded = decode()
        if (decoded.num_rows if contender == "arrays" else len(decoded)) != expected:
            raise AssertionError(f"{contender} does not read {expected} records")
    return interleave(DECODE, f"{codec.name.lower()} {name}", contenders, rounds)


def encode_figures(codec: Compression, name: str, rounds: int) -> list[Figure]:
    """Time writing one batch."""
    _, size = SIZES[name]
    contenders = {
        "kafkawire": encode_own(codec, size),
        "aiokafka": encode_peer("aiokafka", codec, size),
        "kafka-python": encode_peer("kafka", codec, size),
    }
    for contender, encode in contenders.items():
        read = [record.value for record in RecordBatches(encode()).records()]
        if read != values(size):
            raise AssertionError(f"{contender} does not write what it was given")
    return interleave(ENCODE, f"{codec.name.lower()} {name}", contenders, rounds)


def run(rounds: int) -> list[Figure]:
    """Measure; µs per field or batch."""
    figures: list[Figure] = []
    for codec in Compression:
        for name in SIZES:
            figures += decode_figures(codec, name, rounds)
            if SIZES[name][0] == 1:
                figures += encode_figures(codec, name, rounds)
    return figures


def main() -> None:
    """Print the tables and write the figures."""
    figures = run(rounds=5)
    for suite in (DECODE, ENCODE):
        print(f"\n{report.table([f for f in figures if f.suite == suite])}")
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
