"""Handles JoinGroup: admits members, starts and completes rebalances.

A rebalance completes when all members have joined and no pending member is left, or at its
timeout. The first rebalance of an empty group waits for more members (initial rebalance delay).

    join ─▶ prepare ─▶ delayed ─▶ complete: generation + 1, protocol and leader elected, all respond
"""

from __future__ import annotations

from typing import Final

from ....protocol import ErrorCode
from ..requests import Effect, Join, JoinDue, Joined, PendingExpired, SessionExpired, Store, SyncDue
from .member import DelayedRequest, Member
from .metadata import GroupMetadata
from .states import GroupState, Kind

E, S = ErrorCode, GroupState
NEW_MEMBER_JOIN_TIMEOUT: Final = 300.0
"""Seconds after which a new member expires while its first join is delayed, as in Kafka."""


def join(group: GroupMetadata, request: Join, now: float) -> list[Effect]:
    """Handle a JoinGroup."""
    error = group.admits(Kind.JOIN) or _protocol_error(group, request)
    if not error and request.member_id and request.member_id not in group.pending_members:
        error = group.members.identity_error(request.member_id, request.group_instance_id)
    if not error:
        error = _size_error(group, request)
    if error:
        return [Joined(request.reply_to, error, request.member_id)]
    if request.member_id in group.members:
        return _join_again(group, request, group.members[request.member_id], now)
    member = group.members.instance(request.group_instance_id)
    if member is not None:
        return _replace(group, request, member, now)
    return _join_new(group, request, now)


def _protocol_error(group: GroupMetadata, request: Join) -> ErrorCode:
    kind = request.protocol_type
    same = kind == group.protocol_type if len(group.members) else kind != ""
    fits = same and group.members.supports(request)
    return E.NONE if fits else E.INCONSISTENT_GROUP_PROTOCOL


def _size_error(group: GroupMetadata, request: Join) -> ErrorCode:
    if request.member_id in group.members or request.member_id in group.pending_members:
        return E.NONE
    if group.members.instance(request.group_instance_id) is not None:
        return E.NONE
    full = group.population >= group.max_size
    return E.GROUP_MAX_SIZE_REACHED if full else E.NONE


def _join_new(group: GroupMetadata, request: Join, now: float) -> list[Effect]:
    member_id = request.member_id or group.new_member_id(
        request.group_instance_id or request.client_id
    )
    if (
        not request.member_id
        and request.requires_known_member_id
        and request.group_instance_id is None
    ):
        group.pending_members.add(member_id)
        group.deadlines.set(PendingExpired(member_id), now + request.session_timeout)
        return [Joined(request.reply_to, E.MEMBER_ID_REQUIRED, member_id)]
    group.pending_members.discard(member_id)
    group.deadlines.cancel(PendingExpired(member_id))
    member = Member.joining(member_id, request)
    if not len(group.members):
        group.protocol_type = request.protocol_type
    group.members.add(member)
    group.new_member_added = True
    effects = _rejoin(group, request, member, now)
    if member.delayed is not None:
        group.deadlines.set(SessionExpired(member_id), now + NEW_MEMBER_JOIN_TIMEOUT)
    return effects


def _join_again(group: GroupMetadata, request: Join, member: Member, now: float) -> list[Effect]:
    """Handle the join of a known member, which may have missed the last response."""
    same = member.protocols == request.protocols
    leads = member.member_id == group.members.leader
    missed_response = same and (
        group.state is S.COMPLETING_REBALANCE or (group.state is S.STABLE and not leads)
    )
    group.members.update(member, request)
    if missed_response:
        effects = group.release(member, E.REBALANCE_IN_PROGRESS)
        group.renew_session(member, now)
        return [*effects, joined(group, member, request.reply_to)]
    return _rejoin(group, request, member, now)


def _replace(group: GroupMetadata, request: Join, member: Member, now: float) -> list[Effect]:
    """Replace a static member that restarted, under a new member id."""
    was, led = member.member_id, group.members.leader == member.member_id
    effects: list[Effect] = [*group.release(member, E.FENCED_INSTANCE_ID)]
    group.deadlines.cancel(SessionExpired(was))
    assert request.group_instance_id is not None
    group.members.rename(member, group.new_member_id(request.group_instance_id))
    if was in group.pending_sync_members:
        group.pending_sync_members.remove(was)
        group.pending_sync_members.add(member.member_id)
    group.members.update(member, request)
    if group.state is not S.STABLE or group.members.elected_protocol() != group.protocol_name:
        return effects + _rejoin(group, request, member, now)
    group.renew_session(member, now)
    response = joined(group, member, request.reply_to, skip_assignment=led)
    if not request.supports_skip_assignment:
        # it must not act as the leader, as it has no metadata of the members
        response = response._replace(leader=was if led else response.leader, members=())
        response = response._replace(skip_assignment=False)
    return [*effects, Store(), response]


def _rejoin(group: GroupMetadata, request: Join, member: Member, now: float) -> list[Effect]:
    effects = prepare(group, now)
    effects += group.delay(member, DelayedRequest(request.reply_to, is_join=True))
    return effects + complete_if_all_joined(group, now)


def prepare(group: GroupMetadata, now: float) -> list[Effect]:
    """Start a rebalance, unless one is being prepared.

    Members that waited for their assignments have their sessions anew; those of others go on.
    """
    if group.state is S.PREPARING_REBALANCE:
        return []
    was_empty, waited = group.state is S.EMPTY, group.state is S.COMPLETING_REBALANCE
    effects: list[Effect] = []
    for member in group.members:
        effects += group.release(member, E.REBALANCE_IN_PROGRESS)
        if waited:
            group.renew_session(member, now)
    group.pending_sync_members.clear()
    group.deadlines.cancel(SyncDue())
    group.move_to(S.PREPARING_REBALANCE, now)
    timeout = group.members.rebalance_timeout()
    group.initial = was_empty and group.initial_delay > 0
    if group.initial:
        group.new_member_added = False
        group.initial_remaining = max(0.0, timeout - group.initial_delay)
        timeout = group.initial_delay
    group.deadlines.set(JoinDue(), now + timeout)
    return effects


def join_due(group: GroupMetadata, now: float) -> list[Effect]:
    """Complete the rebalance with the members that have joined, or extend the initial delay."""
    if group.initial and group.new_member_added and group.initial_remaining > 0:
        more = min(group.initial_delay, group.initial_remaining)
        group.initial_remaining -= more
        group.new_member_added = False
        group.deadlines.set(JoinDue(), now + more)
        return []
    return _complete(group, now)


def complete_if_all_joined(group: GroupMetadata, now: float) -> list[Effect]:
    """Complete the rebalance if all members have joined."""
    if group.state is not S.PREPARING_REBALANCE or group.pending_members:
        return []
    if group.members.joined < len(group.members):
        return []
    if group.initial and len(group.members):
        return []
    return _complete(group, now)


def _complete(group: GroupMetadata, now: float) -> list[Effect]:
    for member in [each for each in group.members if not each.has_joined]:
        if member.group_instance_id is None:
            group.deadlines.cancel(SessionExpired(member.member_id))
            group.members.remove(member.member_id)
    if len(group.members) and not group.members.joined:
        group.deadlines.set(JoinDue(), now + group.members.rebalance_timeout())
        return []  # wait for static members
    group.initial = False
    group.deadlines.cancel(JoinDue())
    group.generation_id += 1
    if not len(group.members):
        group.protocol_name = None
        group.move_to(S.EMPTY, now)
        return [Store()]
    group.members.elect()
    group.protocol_name = group.members.elected_protocol()
    group.move_to(S.COMPLETING_REBALANCE, now)
    return _complete_joins(group, now)


def _complete_joins(group: GroupMetadata, now: float) -> list[Effect]:
    effects: list[Effect] = []
    for member in group.members:
        if member.delayed is not None:
            effects.append(joined(group, member, member.delayed.reply_to))
            group.members.delay(member, None)
            group.renew_session(member, now)
            group.pending_sync_members.add(member.member_id)
    group.deadlines.set(SyncDue(), now + group.members.rebalance_timeout())
    return effects


def joined(
    group: GroupMetadata, member: Member, reply_to: int, skip_assignment: bool = False
) -> Joined:
    """Respond to a JoinGroup with the current generation; the leader receives all members."""
    leads = member.member_id == group.members.leader
    protocol = group.protocol_name
    members = (
        (each.member_id, each.group_instance_id, each.metadata(protocol)) for each in group.members
    )
    return Joined(
        reply_to,
        E.NONE,
        member.member_id,
        group.generation_id,
        group.protocol_type,
        protocol,
        group.members.leader,
        skip_assignment,
        tuple(members) if leads else (),
    )
