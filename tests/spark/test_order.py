"""The order that decoding relies on is that of the plan, and is asserted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kafkawire.capture.packets import PacketParser
from kafkawire.capture.source import read_capture
from kafkawire.spark.decoding import in_order_of_keys
from kafkawire.spark.errors import OutOfOrder
from kafkawire.spark.options import parse
from kafkawire.spark.packets import SCHEMA, segment_rows
from kafkawire.spark.planning import make_plan
from kafkawire.spark.reading import gathered
from tests.conftest import FIXTURES

FILE = FIXTURES / "captures" / "kcat-kf.pcap"


def rows() -> pa.Table:
    parser = PacketParser()
    batches = [segment_rows(parser.parse(block), 0) for block in read_capture(FILE)]
    order = [("key", "ascending"), ("packet", "ascending")]
    return pa.Table.from_batches(batches, SCHEMA).sort_by(order)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_sorted_packets_pass(size: int) -> None:
    table = rows()
    found = list(in_order_of_keys(table.to_batches(max_chunksize=size)))
    assert sum(len(batch) for batch, _ in found) == len(table)
    begins = [cut for _, cut in found if cut is not None]
    assert begins[0] == 0


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_anything_else_is_refused(size: int) -> None:
    table = rows()
    for one, other in ((3, 4), (0, len(table) - 1)):
        order = list(range(len(table)))
        order[one], order[other] = order[other], order[one]
        with pytest.raises(OutOfOrder):
            list(in_order_of_keys(table.take(order).combine_chunks().to_batches(size)))


def test_one_exchange_and_one_sort(spark: SparkSession) -> None:
    options = parse({})
    plan = make_plan(spark, [str(FILE)], options)
    frame = gathered(spark, plan, options, ["api_name"], joined=False)
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert text.count("Exchange hashpartitioning(key") == 1
    assert text.count("Sort [key") == 1
