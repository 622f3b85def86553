"""The life of classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Law: a rebalance starts with the first message that shows it (a join that ends in a new generation,
an answer REBALANCE_IN_PROGRESS) and ends when every member seen to join has its assignment.

    stable --27 or a join--> preparing --JoinGroup answers--> syncing --all have SyncGroup--> stable
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ...messages.api_key import ApiKey
from ...protocol.embedded import ASSIGNMENT, embedded_payloads
from ...protocol.error_code import ErrorCode
from ...protocol.kinds import read_payload
from ..exchanges import Exchange
from ..rows import Row
from ..topic_ids import Topic
from .context import Context
from .happenings import Happening, Protocol, What, refused, text


class _Group:
    """What is known of a group."""

    def __init__(self) -> None:
        self.generation = -1
        self.protocol_type: str | None = None
        self.members: set[str] = set()
        self.joined: set[str] = set()
        self.synced: set[str] = set()
        self.started: int | None = None
        self.first_join: Row | None = None


class ClassicGroups:
    """The classic groups of a capture; their number bounds the memory."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups: dict[str, _Group] = {}

    def requested(self, row: Row) -> None:
        """Note a JoinGroup request when it is sent: its answer waits for the rebalance to go on."""
        message: Any = row.message
        if row.api_key == ApiKey.JOIN_GROUP and message is not None:
            group = self._group(message.group_id)
            if group.first_join is None:
                group.first_join = row

    def take(self, exchange: Exchange) -> Iterator[Happening]:
        """Take an exchange; say what it shows."""
        request, response = exchange.request, exchange.response
        told = HANDLERS.get(exchange.told.api_key or 0)
        if told is None or request is None or request.message is None or response is None:
            return
        message: Any = request.message
        about = Happening(
            exchange,
            response,
            Protocol.CLASSIC,
            message.group_id,
            What.FAILED,
            member_id=text(message.member_id),
            group_instance_id=text(getattr(message, "group_instance_id", None)),
            generation=getattr(message, "generation_id", None),
        )
        yield from told(self, self._group(message.group_id), about, message, response.message)

    def in_progress(self, about: Happening) -> Iterator[Happening]:
        """Take an answer REBALANCE_IN_PROGRESS, to whatever request of a member."""
        group = self._group(about.group_id)
        if group.started is None:
            group.started = about.row.time_ns
            reason = f"{about.exchange.told.api_name} answered REBALANCE_IN_PROGRESS"
            yield about._replace(what=What.REBALANCE_STARTED, reason=reason, error_code=None)

    def _group(self, group_id: str) -> _Group:
        return self._groups.setdefault(group_id, _Group())

    # -- API by API

    def _join(
        self, group: _Group, about: Happening, request: Any, answer: Any
    ) -> Iterator[Happening]:
        first = group.first_join or about.exchange.request
        group.first_join = None
        if answer is None or answer.error_code:
            if answer is not None and answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                yield from self._refuse(about, answer.error_code)
            return
        group.protocol_type = request.protocol_type
        about = about._replace(
            member_id=answer.member_id,
            generation=answer.generation_id,
            assignor=text(answer.protocol_name),
            members=len(answer.members) or None,
            reason=text(request.reason),
        )
        if answer.generation_id != group.generation:
            yield from self._new_generation(group, about, first)
        group.joined.add(answer.member_id)
        group.members.add(answer.member_id)
        yield about._replace(what=What.JOINED)
        yield from self._missing(group, about, answer)

    def _new_generation(
        self, group: _Group, about: Happening, first: Row | None
    ) -> Iterator[Happening]:
        group.generation = about.generation or 0
        group.joined, group.synced = set(), set()
        if group.started is None:
            row = first or about.row
            group.started = row.time_ns
            joining = about.reason or "a member joins"
            yield about._replace(
                what=What.REBALANCE_STARTED, row=row, reason=joining, assignor=None, members=None
            )

    def _missing(self, group: _Group, about: Happening, answer: Any) -> Iterator[Happening]:
        """Say who is gone: the leader is told all members of the generation."""
        if not answer.members:
            return
        here = {member.member_id for member in answer.members}
        reason = f"not in generation {answer.generation_id}"
        for gone in sorted(group.members - here):
            yield about._replace(
                what=What.REMOVED, member_id=gone, group_instance_id=None, reason=reason
            )
        group.members = here

    def _sync(
        self, group: _Group, about: Happening, request: Any, answer: Any
    ) -> Iterator[Happening]:
        if answer is None or answer.error_code:
            if answer is not None:
                yield from self._refuse(about, answer.error_code)
            return
        partitions = self._assignment(group, about.row)
        about = about._replace(assignor=text(request.protocol_name))
        yield about._replace(what=What.ASSIGNED, partitions=partitions)
        group.synced.add(request.member_id)
        if group.started is not None and group.joined and group.synced >= group.joined:
            duration = about.row.time_ns - group.started
            group.started = None
            yield about._replace(
                what=What.REBALANCE_ENDED,
                member_id=None,
                group_instance_id=None,
                members=len(group.members),
                duration_ns=duration,
            )

    def _heartbeat(
        self, _group: _Group, about: Happening, _request: Any, answer: Any
    ) -> Iterator[Happening]:
        if answer is not None and answer.error_code:
            yield from self._refuse(about, answer.error_code)

    def _leave(
        self, group: _Group, about: Happening, request: Any, answer: Any
    ) -> Iterator[Happening]:
        if answer is not None and answer.error_code:
            yield from self._refuse(about, answer.error_code)
            return
        for member in request.members or [request]:
            group.members.discard(member.member_id)
            group.joined.discard(member.member_id)
            yield about._replace(
                what=What.LEFT,
                member_id=text(member.member_id),
                group_instance_id=text(getattr(member, "group_instance_id", None)),
                generation=group.generation if group.generation >= 0 else None,
                reason=text(getattr(member, "reason", None)),
            )

    def _refuse(self, about: Happening, code: int) -> Iterator[Happening]:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            yield from self.in_progress(about)
        else:
            yield refused(about, code)

    def _assignment(self, group: _Group, row: Row) -> list[tuple[Topic, list[int]]] | None:
        """Read a member's assignment; None where it is of no kind that names topics."""
        message: Any = row.message
        limits = self._context.limits
        found = embedded_payloads(message, row.body_version or 0, limits=limits)
        kind = ASSIGNMENT.get(group.protocol_type or "")
        if not found and kind is not None and message.assignment:
            found = [read_payload("assignment", kind, message.assignment, limits)]
        topics = getattr(found[0].value, "assigned_partitions", None) if found else None
        if topics is None:
            return [] if not message.assignment else None
        names = self._context.names
        return [(names.topic(one.topic), list(one.partitions)) for one in topics]


_Handler = Callable[[ClassicGroups, _Group, Happening, Any, Any], Iterator[Happening]]

HANDLERS: Final[dict[int, _Handler]] = {
    ApiKey.JOIN_GROUP: ClassicGroups._join,
    ApiKey.SYNC_GROUP: ClassicGroups._sync,
    ApiKey.HEARTBEAT: ClassicGroups._heartbeat,
    ApiKey.LEAVE_GROUP: ClassicGroups._leave,
}
"""API key -> what an exchange of it shows."""
