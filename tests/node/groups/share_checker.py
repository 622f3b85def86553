"""The invariants of share groups, checked while a simulation runs.

the member that has a record accepts it, once; what was accepted is not delivered again, and is
in the stored state
no record is passed over: before it leaves the state, a broker has sent it to a member
delivery counts never exceed the limit; stored acknowledgements are those of members

What is acknowledged is what a broker stored before it responded without an error. Where a response
has an error, or none is sent, a record may be acknowledged or not. A record before the start offset
has left the state: as in Kafka, its acknowledgement has no effect, and no error. So a record that
was delivered twice, after a lock has ended or by two leaders, may seem to be accepted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafkawire.broker.share.states import TERMINAL, AcknowledgeType, RecordState
from kafkawire.broker.share_coordinator.state import ShareState
from kafkawire.metadata import TopicIdPartition
from kafkawire.node.invariants import Violation

Offset = tuple[TopicIdPartition, int]
ACKNOWLEDGED: Final = frozenset({RecordState.ACKNOWLEDGED})


class Delivery(NamedTuple):
    """A response with records. request: a number; no other member has the same."""

    member_id: str
    request: int


class Acknowledgement(NamedTuple):
    """What becomes of a record, in the eyes of the member that it was delivered to."""

    key: TopicIdPartition
    offset: int
    kind: AcknowledgeType
    delivery: Delivery


class Accepted(NamedTuple):
    """A record that was accepted. when: a broker has said so. delivery: that was accepted.

    is_passed: the start offset was after it by then, so it may have been archived before.
    """

    when: float
    delivery: Delivery
    is_passed: bool


class ShareChecker:
    """What the members of one share group saw and did so far. limit: of deliveries."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._accepted: dict[Offset, Accepted] = {}
        self._tried: set[Offset] = set()
        """The records that a member wanted to accept, with or without success."""
        self._sent: set[Offset] = set()
        self._holders: dict[tuple[int, Offset], str] = {}
        """(node, record) -> the member that it delivered the record to last."""

    @property
    def accepted(self) -> int:
        """The number of records that are accepted."""
        return len(self._accepted)

    def sent(self, record: Offset, count: int, node: int, delivery: Delivery) -> None:
        """Take note that a broker sends a record. count: how often it was delivered, with this."""
        if not 1 <= count <= self._limit:
            raise Violation(f"delivery {count} of records of {record[0].partition}")
        self._sent.add(record)
        self._holders[node, record] = delivery.member_id

    def received(self, key: TopicIdPartition, offsets: Iterable[int], since: float) -> None:
        """Take note that a member received records. since: when it sent its request."""
        for offset in offsets:
            accepted = self._accepted.get((key, offset))
            if accepted is not None and accepted.when < since:
                raise Violation(f"{offset} of {key.partition} is delivered after it was accepted")

    def acknowledges(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Take note that a member wants to acknowledge records."""
        self._tried.update(
            (each.key, each.offset)
            for each in acknowledgements
            if each.kind is AcknowledgeType.ACCEPT
        )

    def acknowledged(self, each: Acknowledgement, node: int, start: int | None, now: float) -> None:
        """Take note that a broker responds to an acknowledgement, without an error.

        start: of its share partition; None if it has forgotten that meanwhile.
        """
        if each.kind is not AcknowledgeType.ACCEPT:
            return
        record, what = (each.key, each.offset), f"{each.offset} of {each.key.partition}"
        before = self._accepted.get(record)
        if before is not None and before.delivery == each.delivery:
            raise Violation(f"a delivery of {what} is accepted twice")
        is_passed = start is None or each.offset < start
        if before is not None and not is_passed:
            raise Violation(f"{what} is accepted twice")
        if self._holders.get((node, record)) != each.delivery.member_id and not is_passed:
            raise Violation(f"{what} is accepted by a member that does not have it")
        self._accepted.setdefault(record, Accepted(now, each.delivery, is_passed))

    def stored(
        self,
        key: TopicIdPartition,
        state: ShareState,
        written: Mapping[int, bytes],
        log_start: int,
    ) -> None:
        """Check the stored state of a share partition. written: what producers wrote for good."""
        states = {
            offset: RecordState(batch.delivery_state)
            for batch in state.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        if any(batch.delivery_count > self._limit for batch in state.batches):
            raise Violation(f"deliveries of {key.partition} above the limit: {state.batches}")
        for (of, offset), accepted in self._accepted.items():
            legal = TERMINAL if accepted.is_passed else ACKNOWLEDGED
            if of == key and offset >= state.start_offset and states.get(offset) not in legal:
                raise Violation(f"{offset} of {key.partition} was accepted: {state}")
        for offset, record_state in states.items():
            if record_state is RecordState.ACKNOWLEDGED and (key, offset) not in self._tried:
                raise Violation(f"nobody accepted {offset} of {key.partition}: {state}")
        for offset in written:
            if log_start <= offset < state.start_offset and (key, offset) not in self._sent:
                raise Violation(f"{offset} of {key.partition} was passed over: {state}")
