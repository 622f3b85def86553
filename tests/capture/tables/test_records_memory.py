"""The table `records` takes little memory, whatever record batches decompress to."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import tracemalloc
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.tables.arrow import record_fields
from kafkawire.capture.tables.arrow.record_columns import record_batches
from kafkawire.capture.tables.arrow.record_fields import Fields
from kafkawire.capture.tables.extraction.record_batches import (
    CorruptRecords,
    RecordsField,
    batches_in,
)
from kafkawire.records import column_reading
from kafkawire.records.checksum import crc32c
from tests.capture.wire import pcap
from tests.capture.written import Scenario

from .decoded_rows.records import hidden_content

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SMALL: Final = b"\x0c\x00\x00\x00\x01\x01\x00"
"""A record of magic 2: neither key nor value."""

GZIP, ZSTD = 1, 4
COMPRESS: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    GZIP: lambda data: gzip.compress(data, mtime=0),
    ZSTD: zstd.compress,
}


def varint(number: int) -> bytes:
    number <<= 1
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def record(size: int, delta: int = 0) -> bytes:
    """Write a record with a value of zeros and a header."""
    body = b"\x00\x00" + varint(delta) + b"\x02k" + varint(size) + bytes(size) + b"\x02\x02h\x02v"
    return varint(len(body)) + body


def batch(body: bytes, count: int, codec: int, cut: int = 0) -> bytes:
    """Write a batch of magic 2. cut: bytes that the compressed data lacks."""
    data = COMPRESS[codec](body)
    data = data[: len(data) - cut]
    after = struct.pack(">hiqqqhii", codec, max(count - 1, 0), 0, 0, -1, -1, 5, count) + data
    rest = struct.pack(">ibI", 0, 2, crc32c(after, 0, len(after))) + after
    return struct.pack(">qi", 70, len(rest)) + rest


def fields_of(*data: bytes, topic: str = "t") -> Fields:
    fields = Fields()
    for each in data:
        field = RecordsField(Topic(topic, None), 0, each)
        fields.add(field, "f.pcap", 1, 1, 0, "c", "b", "produce", "id", 1)
    return fields


def rows(fields: Fields, *, secrets: bool = True) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(record_batches(fields, secrets))
    table.validate(full=True)
    made: list[dict[str, Any]] = table.to_pylist()
    return made


LARGE: Final = {"many": (SMALL, 1_500_000), "large": (record(1 << 19), 120)}


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
@pytest.mark.parametrize("kind", LARGE)
def test_memory_does_not_grow_with_what_batches_decompress_to(kind: str, codec: int) -> None:
    one, count = LARGE[kind]
    body = one * count
    fields = fields_of(batch(body, count, codec))
    decompressed, got = len(body), 0
    del body
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for made in record_batches(fields, True):
        got += len(made)
        if got >= 100_000:  # a part of the rows is enough, which are handed on early
            break
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert got == count or got >= 100_000
    assert peak < 6 * record_fields.RUN_BYTES, (peak, decompressed)


BODIES: Final = {
    "records": (b"".join(record(at, at) for at in range(300)), 300, 0),
    "more are declared": (b"".join(record(at, at) for at in range(300)), 400, 0),
    "fewer are declared": (b"".join(record(at, at) for at in range(300)), 200, 0),
    "cut": (b"".join(record(at, at) for at in range(300)), 300, 30),
    "corrupt in the middle": (record(9) * 200 + b"\x06abc" + record(9) * 200, 401, 0),
    "a negative length": (record(9) * 200 + b"\x01" + record(9) * 200, 401, 0),
    "an endless length": (record(9) * 200 + b"\xff" * 20 + record(9) * 200, 401, 0),
    "a length beyond the end": (record(9) * 200 + varint(1 << 20) + record(9) * 9, 401, 0),
    "a large record": (record(9) + record(50_000, 1) + record(9, 2) * 9, 11, 0),
    "none": (b"", 0, 0),
}


@pytest.mark.parametrize("secrets", [True, False])
@pytest.mark.parametrize("codec", [0, GZIP, ZSTD])
@pytest.mark.parametrize("kind", BODIES)
def test_rows_are_those_of_the_whole_batches(
    kind: str, codec: int, secrets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_fields, "RUN_BYTES", 20_000)
    monkeypatch.setattr(column_reading, "WINDOW_BYTES", 1000)
    body, count, cut = BODIES[kind]
    data = batch(body, count, codec, cut if codec else 0)
    good = batch(record(3), 1, codec)
    topic = "__cluster_metadata"
    fields = fields_of(data, good + data + good, good, topic=topic)
    expected = []
    for field in fields.fields:
        for found in batches_in(field):
            if not isinstance(found, CorruptRecords):
                whole, records = found
                expected += [
                    (one.offset, one.timestamp, one.key, one.value, one.headers, whole.magic)
                    for one in (records if secrets else hidden_content(records))
                ]
    assert expected
    got = [
        (
            row["offset"],
            row["timestamp_ms"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
            row["magic"],
        )
        for row in rows(fields, secrets=secrets)
    ]
    assert got == expected


def test_a_batch_beyond_a_limit_has_no_rows() -> None:
    good = batch(record(3), 1, ZSTD)
    bomb = batch(bytes(1 << 28), 1, ZSTD)
    assert [row["value"] for row in rows(fields_of(good + bomb + good))] == [bytes(3)] * 2


def peak(*arguments: str) -> int:
    """Run the command, and return the most memory that it or a process of it has, in bytes."""
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-m", "kafkawire_cli.main", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


@pytest.mark.parametrize(
    "more",
    [("-o", "OUT.parquet"), ("-o", "OUT.jsonl", "-j3"), ("-o", "OUT.parquet", "-j2"), ("sql",)],
    ids=" ".join,
)
def test_the_command_takes_little_memory(more: tuple[str, ...], tmp_path: Path) -> None:
    paths = {}
    for name, count in (("one", 1), ("many", 12)):
        data = batch(record(1 << 20) * 30, 30, ZSTD)
        scenario = Scenario()
        for _ in range(count):
            partition = {"index": 0, "records": b64encode(data).decode()}
            topic = {"name": "t", "partitionData": [partition]}
            scenario.request("Produce", 9, acks=1, timeoutMs=1, topicData=[topic])
        paths[name] = tmp_path / f"{name}.pcap"
        paths[name].write_bytes(pcap(scenario.packets))
    used = {}
    for name, path in paths.items():
        out = [each.replace("OUT", str(tmp_path / name)) for each in more]
        if more == ("sql",):
            used[name] = peak("sql", "SELECT count(value) FROM records", str(path))
        else:
            used[name] = peak("decode", str(path), "--table", "records", *out)
    assert used["many"] - used["one"] < 200 << 20, used
