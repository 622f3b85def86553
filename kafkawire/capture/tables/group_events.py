"""Builds the `group_events` table: one row per event of a group or one of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from ...messages.api_key import ApiKey
from ...protocol.error_code import ErrorCode
from ..exchanges.exchanges import Ended, Exchange, Exchanges
from ..exchanges.topic_ids import Topic, TopicNames
from ..rows import Located
from ..snapshot import dump, load
from .columns import (
    INT16,
    INT32,
    INT64,
    TEXT,
    TOPIC_PARTITIONS,
    Column,
    Columns,
    list_of,
    struct_of,
    topic_partitions,
)
from .context import WHERE, Context
from .extraction.group_event import COMMITTED, FAILED, GroupEvent
from .extraction.partition_fields import partition_references
from .groups.classic import HANDLERS, ClassicGroups
from .groups.heartbeat import PROTOCOLS, HeartbeatGroups

OFFSETS: Final = list_of(
    struct_of(topic=TEXT, topic_id=TEXT, partition=INT32, offset=INT64, error_code=INT16)
)
TASKS: Final = list_of(struct_of(type=TEXT, subtopology_id=TEXT, partitions=list_of(INT32)))


def _offsets(values: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic.name,
            "topic_id": topic.id_text,
            "partition": partition,
            "offset": offset,
            "error_code": error_code,
        }
        for topic, partition, offset, error_code in values
    ]


COLUMNS: Final[Columns] = (
    *WHERE,
    Column(
        "client_id",
        TEXT,
        "Client id of the member; for `rebalance_started`, of the member that caused it.",
    ),
    Column("protocol", TEXT, "`classic`, `consumer` (KIP-848), `share` or `streams`."),
    Column("group_id", TEXT, "Group id."),
    Column(
        "event",
        TEXT,
        "`joined`, `left`, `removed`, `rebalance_started`, `rebalance_ended`, `assigned`, "
        "`revoked`, `released`, `committed` or `failed`.",
    ),
    Column(
        "member_id",
        TEXT,
        "Member; null for events of the whole group; for `rebalance_started`, the member that "
        "caused it, null if unknown.",
    ),
    Column("group_instance_id", TEXT, "Group instance id of a static member."),
    Column(
        "generation", INT32, "Generation of a classic group; for other protocols, the member epoch."
    ),
    Column("assignor", TEXT, "Assignor; for a classic group, the protocol name."),
    Column("members", INT32, "Known members of the group."),
    Column(
        "reason",
        TEXT,
        "Reason given by the member or the broker; for `rebalance_started`, the cause; for "
        "`assigned`, which members had to release partitions first.",
    ),
    Column("error_code", INT16, "Error code of the response, null for none."),
    Column("error", TEXT, "Name of the error."),
    Column(
        "duration_ns",
        INT64,
        "For `rebalance_ended`: nanoseconds since the request that caused the rebalance was sent, "
        "or since a member noticed the rebalance if that request is not in the capture; for "
        "`released`, since the member had to release them.",
    ),
    Column(
        "partitions",
        TOPIC_PARTITIONS,
        "For `assigned`, `revoked` and `released`: the partitions.",
        topic_partitions,
    ),
    Column(
        "tasks",
        TASKS,
        "For `assigned`, `revoked` and `released` in Streams groups: the tasks.",
        lambda tasks: [each._asdict() for each in tasks],
    ),
    Column("offsets", OFFSETS, "For `committed`: the committed offsets.", _offsets),
)

COMMITS: Final = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT})

APIS: Final = COMMITS | HANDLERS.keys() | PROTOCOLS.keys()
"""API keys of exchanges that change or show groups."""

CAUSES: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP, *PROTOCOLS})
"""API keys of requests that may start a rebalance, at the time when they are sent."""


def events(group_events: Iterable[GroupEvent], context: Context) -> Iterator[tuple[Any, ...]]:
    """Build one row per event."""
    for one in group_events:
        exchange = one.exchange
        ends = exchange.connection, exchange.client, exchange.broker
        code = one.error_code or None
        yield (
            *context.where(one.row, *ends),
            one.client_id,
            one.protocol.value,
            one.group_id,
            one.type.value,
            one.member_id,
            one.group_instance_id,
            one.generation,
            one.assignor,
            one.members,
            one.reason,
            code,
            None if code is None else ErrorCode.name_of(code),
            one.duration_ns,
            one.partitions,
            one.tasks,
            one.offsets,
        )


CommittedOffset: TypeAlias = tuple[Topic, int, int, int]
"""An offset that was committed: topic, partition, offset, error code."""


class Groups:
    """Tracks the groups of a capture, or some of them: groups are independent of each other."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._classic = ClassicGroups(context)
        self._others = HeartbeatGroups(context)

    def snapshot(self) -> bytes:
        """Return the state of the groups, for `restore` in another process."""
        context = self._context
        return dump((self._classic, self._others), context=context, names=context.names)

    @classmethod
    def restore(cls, context: Context, state: bytes) -> Groups:
        """Continue from a state. Raises StateVersionError."""
        groups = cls(context)
        loaded = load(state, context=context, names=context.names)
        groups._classic, groups._others = loaded
        return groups

    def requested(self, item: Located) -> None:
        """Handle a request when it is sent, before the response: it may cause a rebalance."""
        if item.row.direction == "request" and item.connection is not None:
            self._classic.requested(item)
            self._others.requested(item)

    def handle(self, exchange: Exchange) -> Iterator[GroupEvent]:
        """Handle an exchange; yield its events."""
        api_key = exchange.main_row.api_key
        if api_key in HANDLERS:
            return self._classic.handle(exchange)
        if api_key in PROTOCOLS:
            return self._others.handle(exchange)
        if api_key in COMMITS:
            return _commit(exchange, self._context, self._classic, self._others)
        return iter(())


class GroupEvents:
    """Derives group events from the rows of a capture, as they come."""

    def __init__(self, context: Context) -> None:
        self._groups = Groups(context)
        self._pairs = Exchanges()

    def handle(self, item: Located | Ended) -> Iterator[GroupEvent]:
        """Handle the next row; yield its events."""
        if not isinstance(item, Located):
            exchanges = self._pairs.end(item.connection)
        else:
            self._groups.requested(item)
            exchanges = self._pairs.take(item)
        for exchange in exchanges:
            yield from self._groups.handle(exchange)


def committed_offsets(exchange: Exchange, names: TopicNames) -> list[CommittedOffset] | None:
    """Return the offsets of an offset commit; None if one of its messages is not decoded."""
    request, response = exchange.request, exchange.response
    if request is None or response is None or None in (request.message, response.message):
        return None
    errors = {
        (one.topic.key, one.partition): getattr(one.struct, "error_code", 0)
        for one in partition_references(response, names)
    }
    return [
        (
            one.topic,
            one.partition,
            getattr(one.struct, "committed_offset", -1),
            errors.get((one.topic.key, one.partition), 0),
        )
        for one in partition_references(request, names)
    ]


def _commit(
    exchange: Exchange, context: Context, classic: ClassicGroups, others: HeartbeatGroups
) -> Iterator[GroupEvent]:
    """Yield the event of an offset commit; rejected partitions have their error codes."""
    offsets = committed_offsets(exchange, context.names)
    request, response = exchange.request, exchange.response
    if request is None or response is None or offsets is None:
        return
    message: Any = request.message
    codes = {code for *_, code in offsets}
    event = GroupEvent(
        exchange,
        response,
        others.protocol_of(message.group_id),
        message.group_id,
        COMMITTED if 0 in codes or not codes else FAILED,
        member_id=message.member_id or None,
        group_instance_id=getattr(message, "group_instance_id", None) or None,
        generation=message.generation_id_or_member_epoch,
        error_code=next((code for code in sorted(codes) if code), None),
        offsets=offsets,
        client_id=exchange.main_row.client_id,
    )
    if codes == {ErrorCode.REBALANCE_IN_PROGRESS}:
        yield from classic.in_progress(event._replace(offsets=None))
    elif event.type is COMMITTED:
        classic.alive(event)
    yield event
