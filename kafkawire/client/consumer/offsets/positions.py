"""Where each assigned partition is read next, and whether that is known to be right.

Law: records are fetched only from a position that is valid under the leader as it is known now. A
seek wins over whatever was being found out.

    committed? ─▶ policy ─▶ leader's answer ─▶ position ─▶ checked under each new leader epoch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from ...network.cluster import ClusterView
from ..configuration import FROM_LATEST, Reset, ResetPolicy
from ..failures import ConsumerError, LogTruncated, NoOffset, OffsetOutOfRange
from ..partitions import NO_EPOCH, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from .committed import CommittedFetched, FetchCommitted
from .epochs import EpochEnd, EpochEnds
from .leader_requests import LeadersResponded, RequestFromLeaders
from .lookups import EARLIEST, LATEST, OffsetsByTime
from .partition_state import LEGAL, FetchState, PartitionState, Position, PositionFailed

Effects: TypeAlias = list[object]

F = FetchState

PART: Final = "positions"


class Positions:
    """The places of all assigned partitions.

    policy: what to do where there is no valid offset. in_group: whether there may be committed
    ones. offsets: how they are looked up. clock_ms: tells milliseconds since the epoch, for resets
    by duration.
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
        self._places: dict[TopicPartition, PartitionState] = {}
        self._serial = 0
        self._changed = False  # whether there may be something to find out

    # -- what others read

    def __contains__(self, partition: object) -> bool:
        return partition in self._places

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._places)

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        return self._places[partition]

    def position(self, partition: TopicPartition) -> Position | None:
        """Say where a partition is read next; None if that is not known yet."""
        place = self._places.get(partition)
        return None if place is None or place.state is not F.FETCHING else place.position

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Say what a commit of everything read would commit."""
        return {
            each: OffsetAndMetadata(place.position.offset, place.position.leader_epoch)
            for each, place in self._places.items()
            if place.position is not None and place.state in (F.FETCHING, F.AWAIT_VALIDATION)
        }

    def settled(self) -> bool:
        """Whether every partition has a valid position."""
        return all(place.state is F.FETCHING for place in self._places.values())

    # -- what the assignment and the user do

    def take(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin with partitions that are newly ours."""
        self._changed = True
        for each in partitions:
            self._places.setdefault(each, PartitionState())

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that are no longer ours."""
        for each in list(partitions):
            self._places.pop(each, None)

    def seek(self, partition: TopicPartition, position: Position) -> None:
        """Read from there next, whatever else is known."""
        place = self._places[partition]
        self._arrive(place, position)

    def reset(self, partitions: Iterable[TopicPartition], policy: ResetPolicy) -> None:
        """Read from where a policy says."""
        for each in partitions:
            self._await_reset(self._places[each], policy)

    def read(self, partition: TopicPartition, position: Position) -> None:
        """Note that the user has what comes before that position."""
        self._places[partition].position = position

    def try_again(self) -> None:
        """Look again for what could not be found."""
        for place in self._places.values():
            self._changed |= place.failed
            place.failed = False

    # -- finding out

    def wanted(self) -> Effects:
        """Ask for everything that is not known and not being asked."""
        if not self._changed:
            return []
        self._changed = False
        self._check_leaders()
        return self._want_committed() + self._want_resets() + self._want_checks()

    def look_around(self) -> None:
        """Take in that the picture of the cluster is newer."""
        self._changed = True

    def _check_leaders(self) -> None:
        """Doubt positions that were read under another leader than the present one (KIP-320)."""
        for each, place in self._places.items():
            known = self._view.partition(*each)
            if place.state is not F.FETCHING or known is None or place.position is None:
                continue
            if known.leader_epoch > place.checked_epoch:
                # without an epoch there is nothing to compare with; under the same one the log
                # only grew
                if place.position.leader_epoch in (NO_EPOCH, known.leader_epoch):
                    place.checked_epoch = known.leader_epoch
                else:
                    self._become(place, F.AWAIT_VALIDATION)
                    place.checking_epoch = known.leader_epoch

    def handle(self, event: CommittedFetched | LeadersResponded) -> Effects:
        """Take what was found out."""
        if isinstance(event, CommittedFetched):
            return self._committed(event)
        waiting = self._waiting(_serial(event.key))
        failed: dict[ConsumerError, None] = {}
        for each, place in waiting.items():
            if each in event.failed:
                place.failed = True
                failed[event.failed[each]] = None
        found = {each: waiting[each] for each in waiting.keys() & event.found.keys()}
        effects = self._reached(found, event) + self._checked(found, event)
        return effects + [PositionFailed(error) for error in failed]

    def out_of_range(self, partition: TopicPartition, offset: int) -> Effects:
        """Take in that a leader does not have the offset that was asked for."""
        place = self._places.get(partition)
        if place is None or place.state is not F.FETCHING or place.position is None:
            return []
        if place.position.offset != offset:
            return []
        if self._policy.kind is Reset.NONE:
            why = f"the log does not have offset {offset}, and auto.offset.reset is none"
            place.failed = True
            return [PositionFailed(OffsetOutOfRange(why, partitions=[partition]))]
        self._await_reset(place, self._policy)
        return []

    def _want_committed(self) -> Effects:
        new = [
            each
            for each, place in self._places.items()
            if place.state is F.INITIALIZING and not place.asked and not place.failed
        ]
        if not new:
            return []
        if not self._in_group:
            return self._nothing_committed(new)
        serial = self._ask(self._places[each] for each in new)
        return [FetchCommitted((PART, serial), tuple(sorted(new)))]

    def _want_resets(self) -> Effects:
        times = {
            each: self._time(place.policy)
            for each, place in self._places.items()
            if place.state is F.AWAIT_RESET and not place.asked and not place.failed
        }
        if not times:
            return []
        for each in times:
            known = self._view.partition(*each)
            self._places[each].checking_epoch = NO_EPOCH if known is None else known.leader_epoch
        serial = self._ask(self._places[each] for each in times)
        return [RequestFromLeaders((PART, serial), self._offsets, times)]

    def _want_checks(self) -> Effects:
        epochs = {
            each: place.position.leader_epoch
            for each, place in self._places.items()
            if place.state is F.AWAIT_VALIDATION
            and place.position is not None
            and not place.asked
            and not place.failed
        }
        if not epochs:
            return []
        serial = self._ask(self._places[each] for each in epochs)
        return [RequestFromLeaders((PART, serial), EpochEnds(), epochs)]

    def _time(self, policy: ResetPolicy) -> int:
        if policy.kind is Reset.DURATION:
            return max(self._clock_ms() - policy.ms, 0)
        ends = {Reset.EARLIEST: EARLIEST, Reset.LATEST: LATEST}
        return ends.get(policy.kind, policy.ms)

    def _ask(self, places: Iterable[PartitionState]) -> int:
        self._serial += 1
        for place in places:
            place.asked = self._serial
        return self._serial

    def _waiting(self, serial: int) -> dict[TopicPartition, PartitionState]:
        """Find who still waits for that question, and let it be asked again."""
        found = {each: place for each, place in self._places.items() if place.asked == serial}
        for place in found.values():
            place.asked = 0
        return found

    def _committed(self, event: CommittedFetched) -> Effects:
        waiting = self._waiting(_serial(event.key))
        if event.error is not None:
            for place in waiting.values():
                place.failed = True
            return [PositionFailed(event.error)] if waiting else []
        missing: list[TopicPartition] = []
        for each, place in waiting.items():
            known = event.found.get(each)
            if known is None:
                missing.append(each)
            else:
                self._arrive(place, Position(known.offset, known.leader_epoch))
        return self._nothing_committed(missing)

    def _nothing_committed(self, partitions: list[TopicPartition]) -> Effects:
        if self._policy.kind is not Reset.NONE:
            self.reset(partitions, self._policy)
            return self._want_resets()
        for each in partitions:
            self._places[each].failed = True
        why = "nothing is committed, and auto.offset.reset is none; seek, or set a policy"
        return [PositionFailed(NoOffset(why, partitions=partitions))] if partitions else []

    def _reached(
        self, places: Mapping[TopicPartition, PartitionState], event: LeadersResponded
    ) -> Effects:
        """Begin where the policy led; at the end, where no record is as young as was asked for."""
        late: list[TopicPartition] = []
        for each, place in places.items():
            found = event.found[each]
            if isinstance(found, OffsetAndTimestamp):
                self._arrive(place, Position(found.offset, found.leader_epoch))
                place.checked_epoch = place.checking_epoch  # that leader itself said so
            elif found is None:
                late.append(each)
        self.reset(late, FROM_LATEST)
        return self._want_resets() if late else []

    def _checked(
        self, places: Mapping[TopicPartition, PartitionState], event: LeadersResponded
    ) -> Effects:
        effects: Effects = []
        for each, place in places.items():
            end = event.found[each]
            if not isinstance(end, EpochEnd) or place.position is None:
                continue
            if end.leader_epoch < 0 or end.end_offset < place.position.offset:
                effects += self._truncated(each, place, end)
            else:
                self._become(place, F.FETCHING)
                place.checked_epoch = place.checking_epoch
        return effects

    def _truncated(
        self, partition: TopicPartition, place: PartitionState, end: EpochEnd
    ) -> Effects:
        assert place.position is not None
        if self._policy.kind is Reset.NONE:
            why = f"offset {place.position.offset} was the next to read; the log lost it"
            place.failed = True
            return [PositionFailed(LogTruncated(why, partitions=[partition]))]
        checked = place.checking_epoch
        if end.end_offset < 0:
            self._await_reset(place, self._policy)
        else:
            self._arrive(place, Position(end.end_offset, end.leader_epoch))
            place.checked_epoch = checked
        return []

    # -- the one place where states change

    def _arrive(self, place: PartitionState, position: Position) -> None:
        self._changed = True
        place.position = position
        place.checked_epoch = NO_EPOCH
        place.state = F.FETCHING
        place.asked, place.failed = 0, False

    def _await_reset(self, place: PartitionState, policy: ResetPolicy) -> None:
        self._become(place, F.AWAIT_RESET)
        place.policy, place.position = policy, None

    def _become(self, place: PartitionState, state: FetchState) -> None:
        assert state in LEGAL[place.state], f"from {place.state.value} to {state.value}"
        self._changed = True
        place.state = state
        place.asked, place.failed = 0, False


def _serial(key: object) -> int:
    assert isinstance(key, tuple)
    serial = key[1]
    assert isinstance(serial, int)
    return serial
