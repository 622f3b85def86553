"""What was fetched and waits: against a plain reading of the same log."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.client.consumer import ConsumerRecord, FetchFailed, TopicPartition
from kafkawire.client.consumer.fetch.completed_fetch import CompletedFetch
from kafkawire.client.consumer.offsets.partition_state import Position
from kafkawire.messages.fetch_response import AbortedTransaction
from kafkawire.records import BatchBuilder, Compression, RecordBatches, end_txn_batch

WHERE = TopicPartition("orders", 3)
PLAIN = -1
# a log is written batch by batch: by nobody in particular, or in a producer's transaction; what
# ends a transaction is a marker. gaps are what compaction leaves.
WRITES = st.lists(
    st.tuples(
        st.sampled_from([PLAIN, 1, 2]), st.sampled_from(["write", "commit", "abort"]),
        st.integers(1, 4), st.integers(0, 2), st.sampled_from([Compression.NONE, Compression.GZIP]),
    ),
    max_size=12,
)  # fmt: skip


class Log:
    """A log with what a reader should see of it."""

    def __init__(self, writes: list[tuple[int, str, int, int, Compression]]) -> None:
        self.data = b""
        self.aborted: list[AbortedTransaction] = []
        self.end = 0
        self.kept: list[int] = []  # offsets of records that were not aborted
        self.all: list[int] = []
        open_: dict[int, list[int]] = {}
        for producer, what, count, gap, codec in writes:
            if producer != PLAIN and what != "write":
                if producer not in open_:
                    continue
                self._end(producer, what == "commit", open_.pop(producer))
                continue
            offsets = list(range(self.end, self.end + count))
            self._batch(producer, offsets, gap, codec)
            if producer == PLAIN:
                self.kept += offsets
            else:
                open_.setdefault(producer, []).extend(offsets)
        for producer in list(open_):
            self._end(producer, False, open_[producer])
        self.kept.sort()

    def _batch(self, producer: int, offsets: list[int], gap: int, codec: Compression) -> None:
        builder = BatchBuilder(
            base_offset=offsets[0],
            producer_id=producer,
            producer_epoch=0 if producer != PLAIN else -1,
            transactional=producer != PLAIN,
            partition_leader_epoch=offsets[0] % 3,
            compression=codec,
        )
        for offset in offsets:
            builder.append(None, b"%d" % offset, offset=offset)
        self.end = offsets[-1] + 1 + gap
        self.data += builder.build(last_offset=self.end - 1)
        self.all += offsets

    def _end(self, producer: int, committed: bool, offsets: list[int]) -> None:
        self.data += end_txn_batch(
            committed, producer_id=producer, producer_epoch=0, coordinator_epoch=0,
            timestamp=0, offset=self.end,
        )  # fmt: skip
        self.end += 1
        if committed:
            self.kept += offsets
        else:
            self.aborted.append(AbortedTransaction(producer_id=producer, first_offset=offsets[0]))


@given(
    writes=WRITES,
    start=st.integers(0, 12),
    most=st.integers(1, 5),
    committed=st.booleans(),
    data=st.data(),
)
def test_records_come_once_in_order_from_the_position(
    writes: list[tuple[int, str, int, int, Compression]],
    start: int,
    most: int,
    committed: bool,
    data: st.DataObject,
) -> None:
    log = Log(writes)
    # a broker's response begins with the batch that has the offset
    buffer = CompletedFetch(WHERE, Position(start), log.data, log.aborted if committed else None)
    expected = [each for each in (log.kept if committed else log.all) if each >= start]
    read: list[ConsumerRecord] = []
    while True:
        taken = buffer.take(most)
        assert len(taken) <= most
        read += taken
        assert not taken or buffer.position.offset > taken[-1].offset
        back = data.draw(st.integers(0, len(taken)))  # the user had not come to so many
        if back:
            buffer.return_records(read[-back:])
            assert buffer.position.offset == read[-back].offset
            del read[-back:]
        elif buffer.consumed:
            break
    assert [each.offset for each in read] == expected
    assert [each.value for each in read] == [b"%d" % each for each in expected]
    assert buffer.position.offset == max(log.end, start)


def test_an_abort_before_the_position_skips_no_later_records() -> None:
    steps = [(1, "write", 1), (1, "abort", 1), (PLAIN, "write", 1), (1, "write", 2)]
    log = Log([(*step, 0, Compression.NONE) for step in [*steps, (1, "commit", 1)]])
    buffer = CompletedFetch(WHERE, Position(2), log.data, log.aborted)
    assert [each.offset for each in buffer.take(9)] == [2]
    assert [each.offset for each in buffer.take(9)] == [3, 4]
    assert buffer.consumed


def test_a_corrupt_batch_is_raised_after_the_records_before_it() -> None:
    log = Log([(PLAIN, "write", 2, 0, Compression.NONE)] * 3)
    size = len(log.data) // 3
    data = bytearray(log.data)
    data[2 * size - 2] ^= 1  # in the second batch's last value
    buffer = CompletedFetch(WHERE, Position(0), bytes(data))
    assert [each.offset for each in buffer.take(10)] == [0, 1]
    assert buffer.position.offset == 2
    for _ in range(2):  # and it is never passed over
        with pytest.raises(FetchFailed, match=r"offset 2 on: .* checksum") as found:
            buffer.take(10)
        assert found.value.partitions == (WHERE,)
    unchecked = CompletedFetch(WHERE, Position(2), bytes(data), check_crcs=False)
    assert [each.offset for each in unchecked.take(10)] == [2, 3]


def test_consumer_records_cost_no_bytecode_each() -> None:
    """What there is beyond the decoding of a batch does not grow with its records."""

    def steps(call: Callable[[], object]) -> int:
        made = 0

        def count(*_: object) -> None:
            nonlocal made
            made += 1

        gc.disable()  # its callbacks are steps, too
        sys.setprofile(count)
        try:
            call()
        finally:
            sys.setprofile(None)
            gc.enable()
        return made

    def beyond_decoding(records: int) -> int:
        builder = BatchBuilder()
        for at in range(records):
            builder.append(None, b"value", at)
        data = builder.build()
        fetch = CompletedFetch(WHERE, Position(0), data)
        (batch,) = RecordBatches(data)
        return steps(lambda: fetch.take(1)) - steps(lambda: batch.rows("t", 0, 0, []))

    assert beyond_decoding(1000) == beyond_decoding(10)


def test_a_truncated_batch_at_the_end_is_ignored() -> None:
    log = Log([(PLAIN, "write", 2, 0, Compression.NONE)] * 2)
    buffer = CompletedFetch(WHERE, Position(1), log.data[:-1])
    assert [each.offset for each in buffer.take(10)] == [1]
    assert buffer.consumed
    assert buffer.position.offset == 2
