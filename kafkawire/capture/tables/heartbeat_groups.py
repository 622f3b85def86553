"""The life of groups whose members only heartbeat: consumer (KIP-848), share (KIP-932) and streams
(KIP-1071) groups.

Law: the member epoch tells all: 0 asks to join, a negative one leaves, and the broker raises it
when the group changes. A rebalance starts with the first raised epoch and ends when every member
seen has it; members go on consuming what they keep meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...messages.api_key import ApiKey
from ..exchanges import Exchange
from ..topic_ids import Topic
from .context import Context
from .happenings import Happening, Protocol, What, refused, text

PROTOCOLS: Final[dict[int, Protocol]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Protocol.CONSUMER,
    ApiKey.SHARE_GROUP_HEARTBEAT: Protocol.SHARE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Protocol.STREAMS,
}

STATIC_LEAVE: Final = -2
"""The epoch of a static member that leaves and may come back."""


class _Group:
    """What is known of a group: its highest epoch, and each member's."""

    def __init__(self) -> None:
        self.epoch = 0
        self.members: dict[str, int] = {}
        self.started: int | None = None


class HeartbeatGroups:
    """The groups of a capture; their members' number bounds the memory."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups: dict[tuple[Protocol, str], _Group] = {}

    def take(self, exchange: Exchange) -> Iterator[Happening]:
        """Take an exchange; say what it shows."""
        protocol = PROTOCOLS.get(exchange.told.api_key or 0)
        request, response = exchange.request, exchange.response
        if protocol is None or request is None or response is None:
            return
        message: Any = request.message
        answer: Any = response.message
        if message is None or answer is None:
            return
        about = Happening(
            exchange,
            response,
            protocol,
            message.group_id,
            What.FAILED,
            member_id=text(answer.member_id) or text(message.member_id),
            group_instance_id=text(
                getattr(message, "instance_id", None) or getattr(message, "group_instance_id", None)
            ),
            generation=answer.member_epoch,
            assignor=text(getattr(message, "server_assignor", None)),
        )
        group = self._groups.setdefault((protocol, message.group_id), _Group())
        if answer.error_code:
            yield refused(about._replace(generation=message.member_epoch), answer.error_code)
        elif message.member_epoch < 0:
            yield from self._leave(group, about, message.member_epoch)
        else:
            yield from self._beat(group, about, message, answer)

    def protocol_of(self, group_id: str) -> Protocol:
        """Say which protocol a group uses: classic, unless its members were seen to heartbeat."""
        seen = (p for p in PROTOCOLS.values() if (p, group_id) in self._groups)
        return next(seen, Protocol.CLASSIC)

    def _leave(self, group: _Group, about: Happening, epoch: int) -> Iterator[Happening]:
        group.members.pop(about.member_id or "", None)
        reason = "static member, may come back" if epoch == STATIC_LEAVE else None
        yield about._replace(what=What.LEFT, reason=reason)

    def _beat(
        self, group: _Group, about: Happening, request: Any, answer: Any
    ) -> Iterator[Happening]:
        member, epoch = about.member_id or "", answer.member_epoch
        if not group.epoch and request.member_epoch == epoch:
            group.epoch = epoch  # seen from the middle of its life: nothing has changed just now
        if epoch > group.epoch:
            group.epoch = epoch
            if group.started is None:
                row = about.exchange.told
                group.started = row.time_ns
                reason = f"the group's epoch is {epoch}"
                yield about._replace(
                    what=What.REBALANCE_STARTED, row=row, reason=reason, assignor=None
                )
        group.members[member] = epoch
        if request.member_epoch == 0:
            yield about._replace(what=What.JOINED, members=len(group.members))
        partitions = self._assignment(answer)
        if partitions is not None:
            yield about._replace(what=What.ASSIGNED, partitions=partitions)
        if group.started is not None and all(at == group.epoch for at in group.members.values()):
            duration = about.row.time_ns - group.started
            group.started = None
            yield about._replace(
                what=What.REBALANCE_ENDED,
                member_id=None,
                group_instance_id=None,
                members=len(group.members),
                duration_ns=duration,
            )

    def _assignment(self, answer: Any) -> list[tuple[Topic, list[int]]] | None:
        """Read the assignment in an answer; None for none, or one of tasks instead of topics."""
        assignment = getattr(answer, "assignment", None)
        if assignment is None:
            return None
        names = self._context.names
        return [
            (names.topic(None, one.topic_id), list(one.partitions))
            for one in assignment.topic_partitions
        ]
