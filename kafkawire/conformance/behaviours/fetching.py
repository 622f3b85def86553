"""Fetch: records, limits, waiting, sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ...messages.api_key import ApiKey
from ...messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from ...messages.fetch_response import FetchResponse, PartitionData
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ...records import Record, RecordBatches
from ..behaviour import Behaviour, Feature, expect, expect_error, expect_success, expect_that
from ..connection import Connection
from ..session import Session, Topic
from .producing import NEWEST, batch, filled, produced

BATCHES: Final = 4
"""Fetch 4 has batches of magic 2 and isolation levels (KIP-98)."""
SESSIONS: Final = 7
"""Fetch 7 has sessions (KIP-227)."""
BY_ID: Final = 13
REPLICA_STATE: Final = 15
"""From Fetch 15 on, the id of a replica is in a tagged field (KIP-903)."""
NEWEST_FETCH: Final = 17
MAX_BYTES: Final = 1 << 20
WAIT_MS: Final = 10_000
"""Longer than it takes to produce a record."""
NO_SESSION: Final = (0, -1)
NEW_SESSION: Final = (0, 0)


def fetch(
    topics: Sequence[tuple[Topic, int]],
    version: int,
    session: tuple[int, int] = NO_SESSION,
    **fields: Any,
) -> FetchRequest:
    """Make a request for partition 0 of topics, from an offset each.

    session: id and epoch.
    """
    session_id, epoch = session
    max_bytes = fields.pop("partition_max_bytes", MAX_BYTES)
    named = version < BY_ID
    return FetchRequest(
        max_wait_ms=fields.pop("max_wait_ms", 500),
        min_bytes=fields.pop("min_bytes", 1),
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=topic.name if named else "",
                topic_id=bytes(16) if named else topic.id,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=max_bytes)
                ],
            )
            for topic, at in topics
        ],
        **fields,
    )


def partition_of(response: FetchResponse) -> PartitionData:
    """Return the only partition of a response."""
    return only(only(response.responses, "Fetch").partitions, "Fetch")


async def fetched(
    s: Session, topic: Topic, version: int, offset: int = 0, **fields: Any
) -> PartitionData:
    """Fetch from the leader of a partition."""
    to = await s.leader(topic.name)
    request = fetch([(topic, offset)], version, **fields)
    return partition_of(await to.send(request, version, FetchResponse))


def records_of(partition: PartitionData, offset: int = 0) -> list[Record]:
    """Return the records of a partition from an offset on."""
    batches = RecordBatches(partition.records or b"")
    return [
        each for batch in batches if not batch.control for each in batch if each.offset >= offset
    ]


async def _returns_records(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    partition = await fetched(s, topic, version)
    expect_success(partition.error_code, "error code")
    expect(partition.high_watermark, 3, "high watermark")
    expect(partition.last_stable_offset, 3, "last stable offset")
    records = records_of(partition)
    expect([each.offset for each in records], [0, 1, 2], "offsets")
    expect({(each.key, each.value) for each in records}, {(b"key", b"value")}, "keys and values")


async def _begins_at_offset(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    await produced(s, topic, s.newest(ApiKey.PRODUCE, NEWEST), batch(2, value=b"second"))
    partition = await fetched(s, topic, version, offset=4)
    expect([each.value for each in records_of(partition, 4)], [b"second"], "values from offset 4")


async def _refuses_offset(s: Session, version: int) -> None:
    topic = await filled(s, 3)
    for offset in (4, -1):
        partition = await fetched(s, topic, version, offset=offset)
        expect_error(partition.error_code, ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset}")


async def _returns_one_batch(s: Session, version: int) -> None:
    topic = await filled(s, 1, value=bytes(10_000))
    await produced(s, topic, s.newest(ApiKey.PRODUCE, NEWEST), batch(1, value=bytes(10_000)))
    partition = await fetched(s, topic, version, partition_max_bytes=100, max_bytes=100)
    expect([each.offset for each in records_of(partition)], [0], "offsets")


async def _waits(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    to = await s.leader(topic.name)
    waiting = await s.another(to)
    request = fetch([(topic, 1)], version, max_wait_ms=WAIT_MS)
    response = asyncio.create_task(waiting.send(request, version, FetchResponse))
    await asyncio.sleep(0.1)
    expect_that(not response.done(), "the response did not wait for a record")
    await produced(s, topic, s.newest(ApiKey.PRODUCE, NEWEST), batch(1, value=b"later"))
    partition = partition_of(await response)
    expect([each.value for each in records_of(partition, 1)], [b"later"], "values")


async def _returns_after_wait(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    partition = await fetched(s, topic, version, offset=1, max_wait_ms=50)
    expect_success(partition.error_code, "error code")
    expect(records_of(partition), [], "records")


async def _refuses_unknown_id(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    partition = await fetched(s, topic._replace(id=bytes(range(16))), version)
    expect_error(partition.error_code, ErrorCode.UNKNOWN_TOPIC_ID, "error code")


# Sessions.


async def _session(
    to: Connection, topics: Sequence[tuple[Topic, int]], version: int
) -> FetchResponse:
    request = fetch(topics, version, NEW_SESSION)
    response = await to.send(request, version, FetchResponse)
    expect_success(response.error_code, "error code")
    expect_that(response.session_id != 0, "no session id")
    return response


async def _returns_what_is_new(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    to = await s.leader(topic.name)
    opened = await _session(to, [(topic, 0)], version)
    idle = fetch([], version, (opened.session_id, 1), min_bytes=0, max_wait_ms=0)
    idle.topics = fetch([(topic, 1)], version).topics
    response = await to.send(idle, version, FetchResponse)
    expect(response.responses, [], "partitions without anything new")
    await produced(s, topic, s.newest(ApiKey.PRODUCE, NEWEST), batch(1, value=b"new"))
    response = await to.send(fetch([], version, (opened.session_id, 2)), version, FetchResponse)
    expect([each.value for each in records_of(partition_of(response), 1)], [b"new"], "values")


async def _refuses_session_epoch(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    to = await s.leader(topic.name)
    opened = await _session(to, [(topic, 0)], version)
    response = await to.send(fetch([], version, (opened.session_id, 7)), version, FetchResponse)
    expect_error(response.error_code, ErrorCode.INVALID_FETCH_SESSION_EPOCH, "error code")


async def _refuses_session_id(s: Session, version: int) -> None:
    topic = await filled(s, 1)
    to = await s.leader(topic.name)
    response = await to.send(fetch([], version, (0x7FFF_FFF0, 1)), version, FetchResponse)
    expect_error(response.error_code, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "error code")


R, A = Feature.RECORDS, ApiKey
PRODUCE: Final = {A.PRODUCE: 3}
BEHAVIOURS: Final = (
    Behaviour(
        R,
        A.FETCH,
        "returns the records that were produced",
        _returns_records,
        BATCHES,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "begins with the batch of the offset",
        _begins_at_offset,
        BATCHES,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "refuses offsets that the log does not have",
        _refuses_offset,
        BATCHES,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "returns a batch that is larger than the limit, alone",
        _returns_one_batch,
        BATCHES,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(R, A.FETCH, "waits for records", _waits, BATCHES, NEWEST_FETCH, PRODUCE),
    Behaviour(
        R,
        A.FETCH,
        "returns without records after the wait",
        _returns_after_wait,
        BATCHES,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "refuses a topic id that does not exist",
        _refuses_unknown_id,
        BY_ID,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "returns only what is new in a session",
        _returns_what_is_new,
        SESSIONS,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "refuses an epoch that is not the next of a session",
        _refuses_session_epoch,
        SESSIONS,
        NEWEST_FETCH,
        PRODUCE,
    ),
    Behaviour(
        R,
        A.FETCH,
        "refuses a session that does not exist",
        _refuses_session_id,
        SESSIONS,
        NEWEST_FETCH,
        PRODUCE,
    ),
)
