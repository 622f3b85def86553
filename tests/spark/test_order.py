"""Decoding relies on the packet order of the plan and asserts it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.files.source import read_capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.packets.segments import Segments
from kafkawire.spark.decode import decoding
from kafkawire.spark.decode.decoding import in_order, sorted_rows
from kafkawire.spark.errors import OutOfOrder
from kafkawire.spark.options import parse
from kafkawire.spark.plan.planning import make_plan
from kafkawire.spark.reading import packet_rows
from kafkawire.spark.shuffle.packets import (
    SCHEMA,
    Partitioner,
    by_connection,
    concatenated,
    hashes,
    key_hashes,
    segment_rows,
    take,
)
from tests.conftest import FIXTURES

FILE = FIXTURES / "captures" / "ck-848.pcap"


def parsed() -> Segments:
    parser = PacketParser()
    return concatenated([parser.parse(block) for block in read_capture(FILE)])


def rows(size: int) -> pa.Table:
    """Packets of one bucket, so many to a row."""
    segments = parsed()
    batches = [
        row
        for at in range(0, len(segments), size)
        for row in segment_rows(take(segments, slice(at, at + size)), 0, Partitioner(1))
    ]
    return pa.Table.from_batches(batches, SCHEMA)


def back(table: pa.Table) -> Iterator[Segments]:
    return in_order(sorted_rows(table.to_batches()), lambda *_: None)


def same(one: Segments, other: Segments) -> bool:
    """Whether two say the same of each packet; their bytes may lie elsewhere."""
    payloads = [
        [each.data[at : at + size] for at, size in zip(each.at, each.captured, strict=True)]
        for each in (one, other)
    ]
    names = [each.name for each in fields(Segments) if each.name not in ("data", "at")]
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    return equal and payloads[0] == payloads[1]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_segments_round_trip(size: int) -> None:
    assert same(concatenated(list(back(rows(size)))), parsed())


def test_a_connection_is_in_one_bucket_and_every_packet_in_some() -> None:
    segments = parsed()
    one, other = np.unique(hashes(segments, 0))[[0, -1]].tolist()
    partitioner = Partitioner(5, (other, one))
    found: dict[bytes, set[int]] = {}
    count = 0
    for row in segment_rows(segments, 0, partitioner):
        (bucket,) = row.column("bucket").to_pylist()
        for mine in back(pa.Table.from_batches([row])):
            count += len(mine)
            for key, each in by_connection(mine):
                found.setdefault(key, set()).add(bucket)
                assert set(hashes(each, 0).tolist()) == set(key_hashes([key]).tolist())
                assert partitioner.of(key_hashes([key])).tolist() == [bucket]
    assert count == len(segments)
    assert len(found) > 5
    assert all(len(buckets) == 1 for buckets in found.values())
    alone = [key for key, buckets in found.items() if buckets <= {0, 1}]
    assert set(key_hashes(alone).tolist()) == {one, other}


@pytest.mark.parametrize("enough", [1, 50, 1 << 14])
def test_interleaved_rows_are_sorted(enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reassembled datagrams are interleaved with other segments."""
    monkeypatch.setattr(decoding, "MIN_SEGMENTS", enough)
    segments = parsed()
    interleaved = np.array(sorted(random.sample(range(len(segments)), 40)))
    rest = np.setdiff1d(np.arange(len(segments)), interleaved)
    pieces = [*np.array_split(rest, 9), *np.array_split(interleaved, 5)]
    batches = [row for at in pieces for row in segment_rows(take(segments, at), 0, Partitioner(1))]
    table = pa.Table.from_batches(batches, SCHEMA).sort_by("packet")
    assert same(concatenated(list(back(table))), segments)


@pytest.mark.parametrize("size", [1, 7])
def test_rows_out_of_order_are_refused(size: int) -> None:
    table = rows(size)
    order = list(range(len(table)))
    order[3], order[4] = order[4], order[3]
    for wrong in (order, [0, *range(len(table))]):
        with pytest.raises(OutOfOrder):
            list(back(table.take(wrong)))


def test_one_exchange_and_one_sort(spark: SparkSession) -> None:
    plan = make_plan(spark, [str(FILE)], parse({}))
    frame = packet_rows(spark, plan, Partitioner(3), joined=False)
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert text.count("Exchange ") == 1
    assert "bucket" in text[text.index("Exchange ") :].splitlines()[0]
    assert text.count("Sort [kind") == 1
