"""The `group_events` table: a row for each thing that happened to a group or one of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...messages.api_key import ApiKey
from ...protocol.error_code import ErrorCode
from ..engine import Located
from ..exchanges.exchanges import Ended, Exchange, Exchanges
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
from .extraction.group_event import GroupEvent, What
from .extraction.partition_fields import spoken
from .groups.classic import ClassicGroups
from .groups.heartbeat import HeartbeatGroups

OFFSETS: Final = list_of(
    struct_of(topic=TEXT, topic_id=TEXT, partition=INT32, offset=INT64, error_code=INT16)
)


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
        "Client id of the member; of `rebalance_started` of who sent the request that caused it.",
    ),
    Column("protocol", TEXT, "`classic`, `consumer` (KIP-848), `share` or `streams`."),
    Column("group_id", TEXT, "Group."),
    Column(
        "event",
        TEXT,
        "`joined`, `left`, `removed`, `rebalance_started`, `rebalance_ended`, `assigned`, "
        "`committed` or `failed`.",
    ),
    Column(
        "member_id",
        TEXT,
        "Member; null where the whole group is meant; of `rebalance_started` the one that caused "
        "it, null where that is not known.",
    ),
    Column("group_instance_id", TEXT, "Its instance id, if it is a static member."),
    Column("generation", INT32, "Generation of a classic group; of others the member epoch."),
    Column("assignor", TEXT, "Assignor: the protocol name of a classic group."),
    Column("members", INT32, "Members that the group is known to have."),
    Column(
        "reason",
        TEXT,
        "Why, as the member or the broker says it; of `rebalance_started` the cause.",
    ),
    Column("error_code", INT16, "Error code of the answer that shows it, null for none."),
    Column("error", TEXT, "The same by name."),
    Column(
        "duration_ns",
        INT64,
        "Of `rebalance_ended`: nanoseconds since it started, which is when the request that caused "
        "it was sent; where that is not in the capture, since a member noticed.",
    ),
    Column(
        "partitions", TOPIC_PARTITIONS, "Of `assigned`: the member's partitions.", topic_partitions
    ),
    Column("offsets", OFFSETS, "Of `committed`: what was committed.", _offsets),
)

COMMITS: Final = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT})


def rows(context: Context) -> Iterator[tuple[Any, ...]]:
    """Make the rows of the table."""
    yield from events(group_events_of(context), context)


def events(found: Iterable[GroupEvent], context: Context) -> Iterator[tuple[Any, ...]]:
    """Make a row of each thing that happened."""
    for one in found:
        exchange = one.exchange
        ends = exchange.connection, exchange.client, exchange.broker
        code = one.error_code or None
        yield (
            *context.where(one.row, *ends),
            one.client_id,
            one.protocol.value,
            one.group_id,
            one.what.value,
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
            one.offsets,
        )


class Groups:
    """The groups of a capture, or some of them: what is said of a group depends on no other."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._classic = ClassicGroups(context)
        self._others = HeartbeatGroups(context)

    def requested(self, item: Located) -> None:
        """Take a request when it is sent: a response may wait for what the request causes."""
        if item.row.direction == "request" and item.connection is not None:
            self._classic.requested(item)
            self._others.requested(item)

    def take(self, exchange: Exchange) -> Iterator[GroupEvent]:
        """Take an exchange; say what it shows."""
        yield from self._classic.take(exchange)
        yield from self._others.take(exchange)
        yield from _commit(exchange, self._context, self._classic, self._others)


def group_events_of(context: Context) -> Iterator[GroupEvent]:
    """Tell what happened to the groups of a capture, in the order in which it showed."""
    told = GroupEvents(context)
    for item in context.located():
        yield from told.take(item)


class GroupEvents:
    """What happens to the groups of a capture, as its rows come."""

    def __init__(self, context: Context) -> None:
        self._groups = Groups(context)
        self._pairs = Exchanges()

    def take(self, item: Located | Ended) -> Iterator[GroupEvent]:
        """Take the next row; say what it shows."""
        if not isinstance(item, Located):
            found = self._pairs.end(item.connection)
        else:
            self._groups.requested(item)
            found = self._pairs.take(item)
        for exchange in found:
            yield from self._groups.take(exchange)


def _commit(
    exchange: Exchange, context: Context, classic: ClassicGroups, others: HeartbeatGroups
) -> Iterator[GroupEvent]:
    """Tell what was committed; refused partitions are there with their errors."""
    request, response = exchange.request, exchange.response
    if exchange.main_row.api_key not in COMMITS or request is None or response is None:
        return
    message: Any = request.message
    if message is None or response.message is None:
        return
    errors = {
        (one.topic.key, one.partition): getattr(one.what, "error_code", 0)
        for one in spoken(response, context.names)
    }
    offsets = [
        (
            one.topic,
            one.partition,
            getattr(one.what, "committed_offset", -1),
            errors.get((one.topic.key, one.partition), 0),
        )
        for one in spoken(request, context.names)
    ]
    codes = {code for *_, code in offsets}
    about = GroupEvent(
        exchange,
        response,
        others.protocol_of(message.group_id),
        message.group_id,
        What.COMMITTED if 0 in codes or not codes else What.FAILED,
        member_id=message.member_id or None,
        group_instance_id=getattr(message, "group_instance_id", None) or None,
        generation=message.generation_id_or_member_epoch,
        error_code=next((code for code in sorted(codes) if code), None),
        offsets=offsets,
        client_id=exchange.main_row.client_id,
    )
    if codes == {ErrorCode.REBALANCE_IN_PROGRESS}:
        yield from classic.in_progress(about._replace(offsets=None))
    elif about.what is What.COMMITTED:
        classic.alive(about)
    yield about
