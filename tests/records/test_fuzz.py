"""Batches of every format and codec, mutated: one truth however they are read.

Objects, columns, JSON text and the records table give the same records of the same bytes, and
name the same faults; no content raises but WireError; what is decompressed and held is bounded.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from struct import pack_into
from typing import Any, Final

import pytest

from kafkawire.capture.exchanges.topic_ids import Topic
from kafkawire.capture.jsonl.records import batch_body, records_of, shown_value
from kafkawire.capture.jsonl.writer import Text
from kafkawire.capture.tables.arrow.record_columns import RecordColumns
from kafkawire.capture.tables.extraction.record_batches import (
    CorruptRecords,
    RecordsField,
    batches_in,
)
from kafkawire.errors import WireError
from kafkawire.records import (
    BatchBuilder,
    Compression,
    MessageSetBuilder,
    Record,
    RecordBatches,
    RecordLimits,
)
from kafkawire.records.batch import HEADER_BYTES
from kafkawire.records.checksum import crc32, crc32c
from kafkawire.records.compression.codecs import CODECS as ROWS
from kafkawire.records.compression.codecs import compress
from kafkawire.records.compression.decompression import decompress, readable_part
from tests.fuzzing import mutate, replayable, seeds

from .test_hostile import with_records
from .test_partial import read_both, wrapped

CODECS: Final = [codec for codec in Compression if codec != Compression.NONE]
FORMATS: Final = [
    (magic, row.compression) for magic in (0, 1, 2) for row in ROWS if row.from_magic <= magic
]
TIGHT: Final = RecordLimits(1 << 16, 300, 1 << 17, 500, 8)


def inner(magic: int, rng: random.Random) -> bytes:
    """Write the records of a batch, or a message set, uncompressed."""
    count = rng.choice([1, 2, 7, 40])
    sizes = [rng.choice([0, 1, 11, 12, 13, 100]) for _ in range(count)]
    keys = [rng.choice([None, b"", b"key", b"a key of many bytes"]) for _ in range(count)]
    if magic < 2:
        old = MessageSetBuilder(magic)
        for size, key in zip(sizes, keys, strict=True):
            old.append(key, rng.choice([None, rng.randbytes(size)]), 1000)
        return old.build()
    builder = BatchBuilder()
    for size, key in zip(sizes, keys, strict=True):
        headers = rng.choice([(), (), (("name", None),), (("größe", b"x" * size), ("", b""))])
        builder.append(key, rng.choice([None, rng.randbytes(size)]), rng.getrandbits(50), headers)
    return builder.build()[HEADER_BYTES:]


def batch(rng: random.Random) -> bytes:
    """Write a batch, perhaps with damaged records or a damaged stream."""
    magic, codec = rng.choice(FORMATS)
    body = inner(magic, rng)
    count = rng.choice([len(body) // 60, 1, 7, 40])
    if rng.random() < 0.4:
        body = mutate(body, rng)
    stream = b"".join(
        compress(codec, part, magic) for part in rng.choice([[body], [body[:99], b"", body[99:]]])
    )
    if codec is not Compression.NONE and rng.random() < 0.4:
        stream = mutate(stream, rng)
    if magic == 2:
        return with_records(stream, count, int(codec) | rng.choice([0, 0, 8, 32]))
    if codec is Compression.NONE:
        return stream
    return wrapped(stream, magic, codec, rng.choice([0, 0, 39, 100]))


def field(rng: random.Random) -> bytes:
    data = b"".join(batch(rng) for _ in range(rng.randint(1, 4)))
    return mutate(data, rng, 2) if rng.random() < 0.3 else data


def sealed(data: bytes) -> bytes:
    """Put right the checksums of batches, as far as lengths lead."""
    made = bytearray(data)
    for found in RecordBatches(data).batches([]):
        if found.magic == 2:
            pack_into(">I", made, found.start + 17, crc32c(data, found.start + 21, found.end))
        else:
            pack_into(">I", made, found.start + 12, crc32(data, found.start + 16, found.end))
    return bytes(made)


def strict(data: bytes) -> list[Record] | WireError:
    try:
        return list(RecordBatches(data).records())
    except WireError as error:
        return error


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(150))
def test_objects_and_columns_give_the_same(seed: int) -> None:
    with replayable(seed):
        data = field(random.Random(seed))
        read_both(data, check_crcs=False)
        data = sealed(data)
        records, faults = read_both(data)
        raised = strict(data)
        if isinstance(raised, list):
            assert (raised, faults) == (records, [])
        else:
            assert (type(raised), str(raised)) == (type(faults[0]), str(faults[0]))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(100))
def test_text_and_tables_give_the_same(seed: int) -> None:
    with replayable(seed):
        data = sealed(field(random.Random(seed)))
        records, faults = read_both(data)
        text = records_of("records", "t", 0, data)
        made: dict[str, Any] = json.loads(text)
        assert [each["offset"] for each in made["content"]] == [each.offset for each in records]
        assert ("error" in made) == bool(faults)
        out = Text(shown_value, records_of, batch_body, True)
        out.place("records", "t", 0, data)
        assert bytes(out.view()).decode() == text

        carried = RecordsField(Topic("t", None), 0, data)
        found = list(batches_in(carried))
        broken = [str(each.error) for each in found if isinstance(each, CorruptRecords)]
        assert broken == [str(each) for each in faults]
        columns = RecordColumns(lambda: None)
        columns.fields.add(carried, "a.pcap", 1, 0, 0, "c", "b", "fetch", None, 7)
        rows = [row for batch in columns.batches() for row in batch.to_pylist()]
        assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
            (each.offset, each.key, each.value) for each in records
        ]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(100))
def test_limits_hold_whatever_the_bytes(seed: int) -> None:
    with replayable(seed):
        rng = random.Random(seed)
        data = field(rng)
        if rng.random() < 0.5:
            codec = rng.choice(CODECS)
            bomb = compress(codec, bytes(1 << 20), 2) * rng.randint(1, 20)
            data += with_records(mutate(bomb, rng), 1, codec)
        faults: list[WireError] = []
        tracemalloc.start()
        try:
            records = list(RecordBatches(data, TIGHT, check_crcs=False).records(faults))
            columns = RecordBatches(data, TIGHT, check_crcs=False).columns([])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(records) == len(columns) <= TIGHT.max_records
        assert sum(map(len, columns.buffers[1:])) <= TIGHT.max_bytes
        assert peak < 4 << 20


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(200))
def test_what_comes_before_a_fault_is_a_part_of_what_was_compressed(seed: int) -> None:
    """Cut anywhere, with any number of members or frames; and no mutation raises but WireError."""
    with replayable(seed):
        rng = random.Random(seed)
        codec = rng.choice(CODECS)
        parts = [rng.randbytes(9) * rng.choice([0, 1, 9, 5000, 20_000]) for _ in range(3)]
        frames = [parts] if codec is Compression.SNAPPY else [[part] for part in parts]
        stream = b"".join(compress(codec, b"".join(each), 2) for each in frames)
        whole = b"".join(parts)
        assert decompress(codec, stream, 2, 1 << 20) == whole
        assert readable_part(codec, stream, 2, 1 << 20) == whole
        cut = stream[: rng.randrange(len(stream))]
        assert whole.startswith(readable_part(codec, cut, 2, 1 << 20))
        damaged = mutate(stream, rng)
        assert len(readable_part(codec, damaged, 2, 1 << 20)) <= 1 << 20
        try:
            read = decompress(codec, damaged, 2, 1 << 20)
        except WireError:
            return
        assert readable_part(codec, damaged, 2, 1 << 20) == read
