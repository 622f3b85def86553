"""Transactions: what readers see of them, and fencing."""

from __future__ import annotations

from typing import Final

from ...messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ...messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from ...messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ...messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ...messages.api_key import ApiKey
from ...messages.end_txn_request import EndTxnRequest
from ...messages.end_txn_response import EndTxnResponse
from ...messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ...messages.txn_offset_commit_response import TxnOffsetCommitResponse
from ...net.admin.calls import only
from ...protocol.error_code import ErrorCode
from ..behaviour import Behaviour, Feature, expect, expect_error, expect_success
from ..session import Session, Topic
from ..transactional_producer import (
    EXPLICIT,
    FOR_CLIENTS,
    VERSION_2,
    add,
    end,
    producer,
    wait_for_end,
    write,
)
from .committed_offsets import offset_of
from .fetching import BATCHES, NEWEST_FETCH, fetched, records_of
from .offsets import READ_COMMITTED


async def _gives_epochs(s: Session, version: int) -> None:
    first = await producer(s, version)
    second = await producer(s, version, first.transactional_id)
    expect((second.id, second.epoch), (first.id, first.epoch + 1), "producer id and epoch")


async def _fences(s: Session, version: int) -> None:
    topic = await s.topic()
    first = await producer(s)
    await producer(s, transactional_id=first.transactional_id)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=first.transactional_id,
        v3_and_below_producer_id=first.id,
        v3_and_below_producer_epoch=first.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic.name, partitions=[0])],
    )
    response = await first.coordinator.send(request, version, AddPartitionsToTxnResponse)
    result = only(response.results_by_topic_v3_and_below, topic.name)
    code = only(result.results_by_partition, topic.name).partition_error_code
    fenced = version >= 2  # before, the error had another name (KIP-588)
    expected = ErrorCode.PRODUCER_FENCED if fenced else ErrorCode.INVALID_PRODUCER_EPOCH
    expect_error(code, expected, "error code")


async def _transaction(s: Session, *, commit: bool, end_version: int | None = None) -> Topic:
    topic = await s.topic()
    one = await producer(s)
    await add(s, one, topic.name)
    await write(s, one, topic, 0, b"first")
    await write(s, one, topic, 1, b"second")
    await end(s, one, commit=commit, version=end_version)
    await wait_for_end(s, topic, 3)
    return topic


async def _commits(s: Session, version: int) -> None:
    topic = await _transaction(s, commit=True, end_version=version)
    partition = await fetched(
        s, topic, s.newest(ApiKey.FETCH, NEWEST_FETCH), isolation_level=READ_COMMITTED
    )
    expect([each.value for each in records_of(partition)], [b"first", b"second"], "values")
    expect(partition.aborted_transactions or [], [], "aborted transactions")


async def _aborts(s: Session, version: int) -> None:
    topic = await _transaction(s, commit=False, end_version=version)
    partition = await fetched(
        s, topic, s.newest(ApiKey.FETCH, NEWEST_FETCH), isolation_level=READ_COMMITTED
    )
    aborted = only(partition.aborted_transactions or [], topic.name)
    expect(aborted.first_offset, 0, "first offset of the aborted transaction")


async def _hides_open(s: Session, version: int) -> None:
    topic = await s.topic()
    one = await producer(s)
    await add(s, one, topic.name)
    await write(s, one, topic, 0, b"open")
    for isolation, values in ((0, [b"open"]), (READ_COMMITTED, [])):
        partition = await fetched(s, topic, version, isolation_level=isolation, max_wait_ms=50)
        expect_success(partition.error_code, "error code")
        expect([each.value for each in records_of(partition)], values, f"isolation {isolation}")
        expect((partition.high_watermark, partition.last_stable_offset), (1, 0), "offsets")
    await end(s, one, commit=False)


async def _adds_partitions(s: Session, version: int) -> None:
    topic = await s.topic()
    one = await producer(s)
    await add(s, one, topic.name, version)
    await write(s, one, topic, 0, b"value")
    await end(s, one, commit=True)
    await wait_for_end(s, topic, 2)


async def _bumps_epoch(s: Session, version: int) -> None:
    topic = await s.topic()
    one = await producer(s)
    await add(s, one, topic.name)
    await write(s, one, topic, 0, b"value")
    response = await end(s, one, commit=True, version=version)
    expect((response.producer_id, response.producer_epoch), (one.id, one.epoch + 1), "id and epoch")


async def _refuses_to_end_nothing(s: Session, version: int) -> None:
    one = await producer(s)
    request = EndTxnRequest(
        transactional_id=one.transactional_id,
        producer_id=one.id,
        producer_epoch=one.epoch,
        committed=True,
    )
    response = await one.coordinator.send(request, version, EndTxnResponse)
    expect_error(response.error_code, ErrorCode.INVALID_TXN_STATE, "error code")


async def _commits_offsets(s: Session, version: int) -> None:
    topic, group, one = await s.topic(), s.group(), await producer(s)
    adding = AddOffsetsToTxnRequest(
        transactional_id=one.transactional_id,
        producer_id=one.id,
        producer_epoch=one.epoch,
        group_id=group,
    )

    async def attempt() -> tuple[int, None]:
        added = await one.coordinator.send(
            adding, s.newest(ApiKey.ADD_OFFSETS_TO_TXN, EXPLICIT), AddOffsetsToTxnResponse
        )
        return added.error_code, None

    await s.settled(attempt, "AddOffsetsToTxn")
    to = await s.coordinator(group)
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    request = TxnOffsetCommitRequest(
        transactional_id=one.transactional_id,
        group_id=group,
        producer_id=one.id,
        producer_epoch=one.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic.name, partitions=[partition])],
    )

    async def commit() -> tuple[int, None]:
        response = await to.send(request, version, TxnOffsetCommitResponse)
        return only(only(response.topics, group).partitions, group).error_code, None

    await s.settled(commit, "error code")
    newest = s.newest(ApiKey.OFFSET_FETCH, 9)
    expect((await offset_of(to, group, topic, newest)).committed_offset, -1, "before the commit")
    await end(s, one, commit=True)

    async def visible() -> tuple[int, None]:
        offset = (await offset_of(to, group, topic, newest)).committed_offset
        return 0 if offset == 9 else ErrorCode.CONCURRENT_TRANSACTIONS, None

    await s.settled(visible, "offset after the commit")


T, A = Feature.TRANSACTIONS, ApiKey
ALL: Final = {
    A.INIT_PRODUCER_ID: 0,
    A.ADD_PARTITIONS_TO_TXN: 0,
    A.END_TXN: 0,
    A.PRODUCE: 3,
    A.FETCH: BATCHES,
    A.LIST_OFFSETS: 2,
}
BEHAVIOURS: Final = (
    Behaviour(
        T,
        A.INIT_PRODUCER_ID,
        "gives a transactional id a new epoch each time",
        _gives_epochs,
        highest=5,
    ),
    Behaviour(
        T,
        A.ADD_PARTITIONS_TO_TXN,
        "adds partitions to a transaction",
        _adds_partitions,
        highest=FOR_CLIENTS,
        needs=ALL,
    ),
    Behaviour(
        T,
        A.ADD_PARTITIONS_TO_TXN,
        "fences a producer that another replaced",
        _fences,
        highest=FOR_CLIENTS,
        needs=ALL,
    ),
    Behaviour(T, A.END_TXN, "makes committed records visible", _commits, needs=ALL),
    Behaviour(T, A.END_TXN, "lists aborted transactions for readers", _aborts, needs=ALL),
    Behaviour(T, A.END_TXN, "returns a new epoch", _bumps_epoch, VERSION_2, needs=ALL),
    Behaviour(
        T,
        A.END_TXN,
        "refuses to end a transaction that has not begun",
        _refuses_to_end_nothing,
        highest=EXPLICIT,
    ),
    Behaviour(
        T,
        A.FETCH,
        "hides records of open transactions from read_committed",
        _hides_open,
        BATCHES,
        NEWEST_FETCH,
        ALL,
    ),
    Behaviour(
        T,
        A.TXN_OFFSET_COMMIT,
        "makes offsets visible with the commit",
        _commits_offsets,
        highest=4,
        needs={**ALL, A.ADD_OFFSETS_TO_TXN: 0, A.OFFSET_FETCH: 1},
    ),
)
