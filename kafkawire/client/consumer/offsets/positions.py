"""Finds and validates the positions of the assigned partitions.

Records are fetched only from a position that is valid under the current leader epoch. A seek
overrides requests in flight.

    committed offset? ─▶ reset policy ─▶ ListOffsets ─▶ position ─▶ validated per leader epoch
"""

# over 300 lines: all transitions of a partition's state

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from ...cluster import ClusterView
from ..configuration import FROM_LATEST, Reset, ResetPolicy
from ..failures import ConsumerError, LogTruncated, NoOffset, OffsetOutOfRange
from ..partitions import NO_EPOCH, EpochEnd, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from .committed import CommittedFetched, FetchCommitted
from .epochs import EpochEnds
from .leader_requests import LeadersResponded, RequestFromLeaders
from .lookups import EARLIEST, LATEST, OffsetsByTime
from .partition_state import LEGAL, FetchState, PartitionState, Position, PositionFailed

PositionsEffect = FetchCommitted | RequestFromLeaders | PositionFailed
Effects: TypeAlias = list[PositionsEffect]

F = FetchState

REQUEST_KEY: Final = "positions"


class Positions:
    """The states of all assigned partitions.

    policy: auto.offset.reset. in_group: whether there may be committed offsets. offsets: the lookup
    by time. clock_ms: returns milliseconds since the epoch, for resets by duration.
    """

    def __init__(
        self,
        view: ClusterView,
        *,
        policy: ResetPolicy,
        in_group: bool,
        offsets: OffsetsByTime,
        clock_ms: Callable[[], int],
    ) -> None:
        self._view = view
        self._policy = policy
        self._in_group = in_group
        self._offsets = offsets
        self._clock_ms = clock_ms
        self._states: dict[TopicPartition, PartitionState] = {}
        self._serial = 0
        self._changed = False  # whether there may be requests to send

    # -- reading

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._states)

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        return self._states[partition]

    def position(self, partition: TopicPartition) -> Position | None:
        """Return the position of a partition; None if it is not known yet."""
        state = self._states.get(partition)
        return None if state is None or state.fetch_state is not F.FETCHING else state.position

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit for all consumed records."""
        return {
            each: OffsetAndMetadata(state.position.offset, state.position.leader_epoch)
            for each, state in self._states.items()
            if state.position is not None and state.fetch_state in (F.FETCHING, F.AWAIT_VALIDATION)
        }

    def settled(self) -> bool:
        """Whether every partition has a valid position."""
        return all(state.fetch_state is F.FETCHING for state in self._states.values())

    # -- changes by the assignment and the user

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add newly assigned partitions."""
        self._changed = True
        for each in partitions:
            self._states.setdefault(each, PartitionState())

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions that are no longer assigned."""
        for each in list(partitions):
            self._states.pop(each, None)

    def seek(self, partition: TopicPartition, position: Position) -> None:
        """Set the position, overriding any reset or validation."""
        state = self._states[partition]
        self._set_position(state, position)

    def reset(self, partitions: Iterable[TopicPartition], policy: ResetPolicy) -> None:
        """Reset positions by a policy."""
        for each in partitions:
            self._await_reset(self._states[each], policy)

    def set_consumed(self, partition: TopicPartition, position: Position) -> None:
        """Move the position behind the records that were returned."""
        self._states[partition].position = position

    def retry_failed(self) -> None:
        """Retry lookups that failed."""
        for state in self._states.values():
            self._changed |= state.failed
            state.failed = False

    # -- lookups

    def requests(self) -> Effects:
        """Return requests for unknown positions, unless they are in flight."""
        if not self._changed:
            return []
        self._changed = False
        self._check_leader_epochs()
        return self._request_committed() + self._request_resets() + self._request_epochs()

    def on_metadata_changed(self) -> None:
        """Check leader epochs again: the metadata has changed."""
        self._changed = True

    def _check_leader_epochs(self) -> None:
        """Start to validate positions whose leader epoch has changed (KIP-320)."""
        for each, state in self._states.items():
            metadata = self._view.partition(*each)
            if state.fetch_state is not F.FETCHING or metadata is None or state.position is None:
                continue
            if metadata.leader_epoch > state.checked_epoch:
                # a position without an epoch cannot be validated; one of the same epoch need not be
                if state.position.leader_epoch in (NO_EPOCH, metadata.leader_epoch):
                    state.checked_epoch = metadata.leader_epoch
                else:
                    self._transition(state, F.AWAIT_VALIDATION)
                    state.checking_epoch = metadata.leader_epoch

    def handle(self, event: CommittedFetched | LeadersResponded) -> Effects:
        """Handle the results of lookups."""
        if isinstance(event, CommittedFetched):
            return self._on_committed(event)
        waiting = self._take_waiting(_serial(event.key))
        failed: dict[ConsumerError, None] = {}
        for each, state in waiting.items():
            if each in event.failed:
                state.failed = True
                failed[event.failed[each]] = None
        of_request = {each: waiting[each] for each in waiting.keys() & event.results.keys()}
        effects = self._on_offsets(of_request, event) + self._on_epoch_ends(of_request, event)
        return effects + [PositionFailed(error) for error in failed]

    def out_of_range(self, partition: TopicPartition, offset: int) -> list[PositionFailed]:
        """Handle OFFSET_OUT_OF_RANGE for a fetch offset."""
        state = self._states.get(partition)
        if state is None or state.fetch_state is not F.FETCHING or state.position is None:
            return []
        if state.position.offset != offset:
            return []
        if self._policy.kind is Reset.NONE:
            reason = f"offset {offset} out of range, and auto.offset.reset is none"
            state.failed = True
            return [PositionFailed(OffsetOutOfRange(reason, partitions=[partition]))]
        self._await_reset(state, self._policy)
        return []

    def _request_committed(self) -> Effects:
        new = [
            each
            for each, state in self._states.items()
            if state.fetch_state is F.INITIALIZING and not state.request_serial and not state.failed
        ]
        if not new:
            return []
        if not self._in_group:
            return self._on_nothing_committed(new)
        serial = self._new_serial(self._states[each] for each in new)
        return [FetchCommitted((REQUEST_KEY, serial), tuple(sorted(new)))]

    def _request_resets(self) -> Effects:
        times = {
            each: self._timestamp(state.policy)
            for each, state in self._states.items()
            if state.fetch_state is F.AWAIT_RESET and not state.request_serial and not state.failed
        }
        if not times:
            return []
        for each in times:
            metadata = self._view.partition(*each)
            self._states[each].checking_epoch = (
                NO_EPOCH if metadata is None else metadata.leader_epoch
            )
        serial = self._new_serial(self._states[each] for each in times)
        return [RequestFromLeaders((REQUEST_KEY, serial), self._offsets, times)]

    def _request_epochs(self) -> Effects:
        epochs = {
            each: state.position.leader_epoch
            for each, state in self._states.items()
            if state.fetch_state is F.AWAIT_VALIDATION
            and state.position is not None
            and not state.request_serial
            and not state.failed
        }
        if not epochs:
            return []
        serial = self._new_serial(self._states[each] for each in epochs)
        return [RequestFromLeaders((REQUEST_KEY, serial), EpochEnds(), epochs)]

    def _timestamp(self, policy: ResetPolicy) -> int:
        if policy.kind is Reset.DURATION:
            return max(self._clock_ms() - policy.ms, 0)
        ends = {Reset.EARLIEST: EARLIEST, Reset.LATEST: LATEST}
        return ends.get(policy.kind, policy.ms)

    def _new_serial(self, states: Iterable[PartitionState]) -> int:
        self._serial += 1
        for state in states:
            state.request_serial = self._serial
        return self._serial

    def _take_waiting(self, serial: int) -> dict[TopicPartition, PartitionState]:
        """Return the partitions that wait for a request, and clear their serials."""
        waiting = {
            each: state for each, state in self._states.items() if state.request_serial == serial
        }
        for state in waiting.values():
            state.request_serial = 0
        return waiting

    def _on_committed(self, event: CommittedFetched) -> Effects:
        waiting = self._take_waiting(_serial(event.key))
        if event.error is not None:
            for state in waiting.values():
                state.failed = True
            return [PositionFailed(event.error)] if waiting else []
        missing: list[TopicPartition] = []
        for each, state in waiting.items():
            committed = event.offsets.get(each)
            if committed is None:
                missing.append(each)
            else:
                self._set_position(state, Position(committed.offset, committed.leader_epoch))
        return self._on_nothing_committed(missing)

    def _on_nothing_committed(self, partitions: list[TopicPartition]) -> Effects:
        if self._policy.kind is not Reset.NONE:
            self.reset(partitions, self._policy)
            return self._request_resets()
        for each in partitions:
            self._states[each].failed = True
        reason = "no committed offset, and auto.offset.reset is none; seek, or set a reset policy"
        return [PositionFailed(NoOffset(reason, partitions=partitions))] if partitions else []

    def _on_offsets(
        self, states: Mapping[TopicPartition, PartitionState], event: LeadersResponded
    ) -> Effects:
        """Set positions to the offsets found; to the end where no record is that late."""
        late: list[TopicPartition] = []
        for each, state in states.items():
            offset = event.results[each]
            if isinstance(offset, OffsetAndTimestamp):
                self._set_position(state, Position(offset.offset, offset.leader_epoch))
                state.checked_epoch = state.checking_epoch  # the leader returned it
            elif offset is None:
                late.append(each)
        self.reset(late, FROM_LATEST)
        return self._request_resets() if late else []

    def _on_epoch_ends(
        self, states: Mapping[TopicPartition, PartitionState], event: LeadersResponded
    ) -> Effects:
        effects: Effects = []
        for each, state in states.items():
            end = event.results[each]
            if not isinstance(end, EpochEnd) or state.position is None:
                continue
            if end.leader_epoch < 0 or end.end_offset < state.position.offset:
                effects += self._on_truncation(each, state, end)
            else:
                self._transition(state, F.FETCHING)
                state.checked_epoch = state.checking_epoch
        return effects

    def _on_truncation(
        self, partition: TopicPartition, state: PartitionState, end: EpochEnd
    ) -> Effects:
        assert state.position is not None
        if self._policy.kind is Reset.NONE:
            reason = f"log truncated before offset {state.position.offset}"
            state.failed = True
            return [PositionFailed(LogTruncated(reason, partitions=[partition]))]
        checked = state.checking_epoch
        if end.end_offset < 0:
            self._await_reset(state, self._policy)
        else:
            self._set_position(state, Position(end.end_offset, end.leader_epoch))
            state.checked_epoch = checked
        return []

    # -- state changes

    def _set_position(self, state: PartitionState, position: Position) -> None:
        self._changed = True
        state.position = position
        state.checked_epoch = NO_EPOCH
        state.fetch_state = F.FETCHING
        state.request_serial, state.failed = 0, False

    def _await_reset(self, state: PartitionState, policy: ResetPolicy) -> None:
        self._transition(state, F.AWAIT_RESET)
        state.policy, state.position = policy, None

    def _transition(self, state: PartitionState, fetch_state: FetchState) -> None:
        assert fetch_state in LEGAL[state.fetch_state], (
            f"from {state.fetch_state.value} to {fetch_state.value}"
        )
        self._changed = True
        state.fetch_state = fetch_state
        state.request_serial, state.failed = 0, False


def _serial(key: object) -> int:
    assert isinstance(key, tuple)
    serial = key[1]
    assert isinstance(serial, int)
    return serial
