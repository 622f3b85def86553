"""A consumer makes progress, fails, or backs off as Kafka's: whatever a broker responds.

Requests are counted in virtual time, in which a broker responds at once.
"""

from __future__ import annotations

from typing import Final

import pytest

from kafkawire.client.consumer import events
from kafkawire.client.consumer.failures import FetchFailed
from kafkawire.client.consumer.fetch.errors import FETCH_ERRORS, FetchError
from kafkawire.client.requests import MetadataChanged, ResponseReceived
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.fetch_response import FetchResponse, PartitionData
from kafkawire.protocol.error_code import ErrorCode

from .test_fetcher import A, Reader, batch
from .test_membership import GroupMember

E = ErrorCode
SECONDS: Final = 60
MOST: Final = 100
"""Requests in 60 s, where the backoff grows from 100 ms to 1 s."""
RETRIED = [
    code
    for code, action in FETCH_ERRORS.items()
    if action in (FetchError.RETRY, FetchError.REFRESH_METADATA)
]


def fetches(reader: Reader, code: int, *, of_response: bool = False) -> int:
    """Count the fetches until the end of the time, to each of which a broker responds an error."""
    count = 0
    while reader.now < SECONDS:
        if 1 in reader.requests:
            count += 1
            assert count <= 10 * MOST, "no backoff"
            if of_response:
                response = FetchResponse(error_code=code)
                reader.send(ResponseReceived(reader.requests.pop(1), 17, response, 1))
            else:
                reader.respond(1, PartitionData(partition_index=0, error_code=code))
            reader.send(MetadataChanged(frozenset({"orders"})))
        else:
            due = reader.consumer.next_deadline()
            assert due is not None
            reader.pass_time(max(due - reader.now, 0))
    return count


@pytest.mark.parametrize("code", RETRIED, ids=lambda code: code.name)
def test_a_partition_that_keeps_failing_is_fetched_less_often(code: ErrorCode) -> None:
    reader = Reader(A)
    reader.send(events.Poll(None))
    assert fetches(reader, code) <= MOST
    warned = [each.error for each in reader.effects if isinstance(each, events.Warn)]
    assert [(each.code, each.partitions) for each in warned] == [(code, (A,))], "once"


def test_a_success_ends_the_backoff() -> None:
    reader = Reader(A)
    for _ in range(5):
        reader.respond(1, PartitionData(partition_index=0, error_code=E.UNKNOWN_SERVER_ERROR))
        reader.pass_time(2.0)
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 1)))
    assert reader.poll() == [(0, 0)]
    reader.respond(1, PartitionData(partition_index=0, error_code=E.UNKNOWN_SERVER_ERROR))
    reader.pass_time(0.2)
    assert 1 in reader.requests


@pytest.mark.parametrize("code", [E.FETCH_SESSION_ID_NOT_FOUND, E.INVALID_FETCH_SESSION_EPOCH])
def test_sessions_that_are_never_accepted(code: ErrorCode) -> None:
    assert fetches(Reader(A), code, of_response=True) <= MOST


@pytest.mark.parametrize(
    "records", [batch(5, 3)[:-1], batch(5, 3)[:20], b"\x00", batch(0, 5)], ids=len
)
def test_records_without_progress_are_an_error(records: bytes) -> None:
    """An incomplete batch, or batches before the fetch offset: it would be fetched for ever."""
    reader = Reader(A)
    reader.send(events.Seek(A, 5))
    reader.respond(1)
    reader.send(events.Poll(None))
    reader.respond(1, PartitionData(partition_index=0, high_watermark=8, records=records))
    [raised] = [each for each in reader.effects if isinstance(each, events.Raise)]
    assert isinstance(raised.error, FetchFailed)
    assert raised.error.partitions == (A,)
    assert 1 not in reader.requests or reader.requested(1) == {}


def test_a_broker_that_responds_nothing_without_waiting_is_paced() -> None:
    reader = Reader(A)
    reader.send(events.Poll(None))
    assert fetches(reader, E.NONE) <= MOST
    if 1 not in reader.requests:
        reader.pass_time(2.0)
    reader.respond(1, PartitionData(partition_index=0, records=batch(0, 1)))
    delivered = [each for each in reader.effects if isinstance(each, events.Deliver)]
    assert [record.offset for each in delivered for record in each.records] == [0]
    reader.respond(1)
    assert 1 in reader.requests, "at once"


LOOPS: Final[dict[str, dict[ApiKey, E]]] = {
    "a rebalance at each SyncGroup": {ApiKey.SYNC_GROUP: E.REBALANCE_IN_PROGRESS},
    "an unknown member at each SyncGroup": {ApiKey.SYNC_GROUP: E.UNKNOWN_MEMBER_ID},
    "an old generation at each SyncGroup": {ApiKey.SYNC_GROUP: E.ILLEGAL_GENERATION},
    "a rebalance at each JoinGroup": {ApiKey.JOIN_GROUP: E.REBALANCE_IN_PROGRESS},
    "an unknown member at each JoinGroup": {ApiKey.JOIN_GROUP: E.UNKNOWN_MEMBER_ID},
    "an id for each JoinGroup": {ApiKey.JOIN_GROUP: E.MEMBER_ID_REQUIRED},
    "another coordinator": {ApiKey.JOIN_GROUP: E.NOT_COORDINATOR},
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_member_that_is_never_let_in_backs_off(loop: str) -> None:
    errors = LOOPS[loop]
    member = GroupMember()
    member.prepare()
    count = 0
    while member.now < SECONDS:
        if not member.requests:
            due = member.membership.next_deadline()
            assert due is not None
            member.pass_time(max(due - member.now, 0))
        elif member.requests[0].api not in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            member.respond(member.requests[0].api)
        else:
            count += 1
            assert count <= 10 * MOST, "no backoff"
            api = member.requests[0].api
            if api in errors:
                more = {"member_id": f"id-{count}"} if api is ApiKey.JOIN_GROUP else {}
                member.respond(api, error_code=errors[api], **more)
            else:
                member.join(generation=count)
        member.rejoin()
    assert count <= 2 * MOST
