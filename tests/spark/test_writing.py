"""Rows are split by date and API, in time order, and copied only if they have to be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kafkawire.protocol.json_form import uuid_text
from kafkawire.spark.plan.facts import AllFacts
from kafkawire.spark.splitting.stores import Store
from kafkawire.spark.write.finishing import UUID_TEXT, Finish
from kafkawire.spark.write.writing import DAY, MANY_ROWS, TableDirectory, by_partition

SCHEMA = pa.schema(
    [("time", pa.timestamp("us", tz="UTC")), ("api_name", pa.string()), ("n", pa.int64())]
)


def batch(times: Sequence[int | None], api: str | None = "Fetch") -> pa.RecordBatch:
    apis, numbers = [api] * len(times), [*range(len(times))]
    return pa.RecordBatch.from_pydict({"time": times, "api_name": apis, "n": numbers}, SCHEMA)


@pytest.mark.parametrize("by_api", [False, True])
def test_ordered_rows_of_one_partition_are_not_copied(by_api: bool) -> None:
    given = [batch([1, 2, 2]), batch([2, 5])]
    ((partition, found),) = by_partition(given, by_api=by_api)
    assert partition == "date=1970-01-01" + "/api=Fetch" * by_api
    assert all(one is other for one, other in zip(found, given, strict=True))


def test_rows_are_sorted_by_time() -> None:
    ((_, found),) = by_partition([batch([3, 1]), batch([2])], by_api=False)
    assert [row["time"].microsecond for one in found for row in one.to_pylist()] == [1, 2, 3]


def test_rows_are_split_by_date_and_api() -> None:
    given = [batch([1, DAY, None]), batch([DAY + 1], None), batch([0], "Produce")]
    found = {
        partition: sum(map(len, batches)) for partition, batches in by_partition(given, by_api=True)
    }
    assert found == {
        "date=__HIVE_DEFAULT_PARTITION__/api=Fetch": 1,
        "date=1970-01-01/api=Fetch": 1,
        "date=1970-01-01/api=Produce": 1,
        "date=1970-01-02/api=Fetch": 1,
        "date=1970-01-02/api=unknown": 1,
    }


@pytest.mark.parametrize("by_api", [False, True])
def test_a_table_has_all_rows(
    tmp_path: Path, by_api: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large and small batches, one partition and several, in order and not."""
    monkeypatch.setattr("kafkawire.spark.write.writing.CUT_BYTES", 40_000)
    monkeypatch.setattr("kafkawire.spark.write.writing.BUFFER_BYTES", 60_000)
    batches = []
    for _ in range(60):
        count = random.choice([1, 50, MANY_ROWS + 1])
        first, days = random.randrange(3) * DAY, random.choice([1, 1, 2])
        times = [first + random.randrange(days * DAY) for _ in range(count)]
        api = random.choice(["Fetch", "Produce", None])
        batches.append(batch(sorted(times) if random.random() < 0.5 else times, api))
    folder = TableDirectory(Store(), str(tmp_path), by_api, lambda each: each, "tests")
    files, counts = zip(*folder.write(batches), strict=True)
    read = ds.dataset(str(tmp_path), schema=SCHEMA).to_table()
    order = [("time", "ascending"), ("n", "ascending"), ("api_name", "ascending")]
    assert read.sort_by(order) == pa.Table.from_batches(batches).sort_by(order)
    assert sum(counts) == len(read)
    assert len({*files}) == len(files)
    group = pq.read_metadata(tmp_path / files[0]).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    assert {each.path_in_schema for each in columns if each.is_stats_set} == {"time", "n"}


IDS = [bytes([at] * 16) for at in range(1, 4)]
PARTITION = pa.struct({"topic": pa.string(), "topic_id": pa.string()})
TOPICS = pa.schema(
    [
        pa.field("connection", pa.int64()),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topics", pa.list_(pa.string())),
        pa.field("partitions", pa.list_(PARTITION)),
    ]
)


def of_topics(topic_id: bytes | None, listed: list[str], inside: list[bytes]) -> pa.RecordBatch:
    partitions = [{"topic": None, "topic_id": uuid_text(id)} for id in inside]
    text = None if topic_id is None else uuid_text(topic_id)
    rows = [(7, None, text, listed, partitions), (9, "plain", None, None, [])]
    return pa.RecordBatch.from_pylist(
        [dict(zip(TOPICS.names, row, strict=True)) for row in rows], TOPICS
    )


def test_names_that_a_task_knows() -> None:
    """Rows are finished at once if the task knows one name of each id in them."""
    first, second, third = IDS
    stated = {
        (0, first): {"orders": 5},
        (0, second): {"payments": 6},
        (0, third): {"a": 1, "b": 2},
        (1, third): {"other set": 3},
    }
    names = {key: next(iter(each)) for key, each in stated.items()}
    firsts = np.array([7, 9])
    whole = Finish(AllFacts(firsts, names, Counter(), fragments=False), [0], None, TOPICS)
    early = Finish(AllFacts(firsts, {}, Counter(), fragments=False), [0], None, TOPICS)
    long = "name-of-22-characters."
    assert len(long) == UUID_TEXT
    for batch in (
        of_topics(first, ["x"], [second]),
        of_topics(None, ["x", uuid_text(second)], []),
        of_topics(None, [long], [first, second]),
        of_topics(None, [], []),
    ):
        known = early.with_stated(batch, stated)
        assert known is not None
        assert known.batch(batch).equals(whole.batch(batch))
    for batch in (
        of_topics(third, [], []),
        of_topics(None, [uuid_text(third)], []),
        of_topics(None, [], [first, third]),
    ):
        assert early.with_stated(batch, stated) is None
        assert early.with_stated(batch, {(1, third): {"of another set": 1}}) is None
