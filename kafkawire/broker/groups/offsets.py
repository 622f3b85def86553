"""Encodes and decodes committed offsets and groups as records of `__consumer_offsets`.

Replaying the records in order restores the group and its offsets. A null value is a tombstone.

    key    int16 type | OffsetCommitKey: group, topic, partition      or GroupMetadataKey: group
    value  int16 version | OffsetCommitValue: offset, leader epoch ...  GroupMetadataValue
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.group_metadata_key import GroupMetadataKey
from ...messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from ...messages.offset_commit_key import OffsetCommitKey
from ...messages.offset_commit_value import OffsetCommitValue
from ...protocol.log_records import encode_log_message
from .classic_groups.group import Group
from .classic_groups.member import Member
from .classic_groups.states import GroupState

KEY_VERSION: Final = 0
GROUP_VERSION: Final = 3
OFFSET_VERSION: Final = 3
EXPIRING_VERSION: Final = 1
"""The only version with an expiration timestamp."""
NEVER: Final = -1

TopicPartition = tuple[str, int]
LogRecord = tuple[bytes, bytes | None]


class Committed(NamedTuple):
    """A committed offset; times in milliseconds since 1970, NEVER for none of its own."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NEVER


def offset_record(group_id: str, of: TopicPartition, committed: Committed | None) -> LogRecord:
    """Encode a committed offset; None is a tombstone."""
    key = encode_log_message(
        OffsetCommitKey(group=group_id, topic=of[0], partition=of[1]), KEY_VERSION
    )
    if committed is None:
        return key, None
    expires = committed.expire_timestamp != NEVER
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=-1 if expires else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
    )
    return key, encode_log_message(value, EXPIRING_VERSION if expires else OFFSET_VERSION)


def group_record(group: Group, wall_ms: int) -> LogRecord:
    """Encode a group: generation, members and assignments."""
    key = encode_log_message(GroupMetadataKey(group=group.group_id), KEY_VERSION)
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.members.leader or None,
        current_state_timestamp=wall_ms,
        members=[_member(each, group.protocol_name) for each in group.members],
    )
    return key, encode_log_message(value, GROUP_VERSION)


def group_tombstone(group_id: str) -> LogRecord:
    """Encode the tombstone of a group."""
    return encode_log_message(GroupMetadataKey(group=group_id), KEY_VERSION), None


def _member(member: Member, protocol: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=int(member.rebalance_timeout * 1000),
        session_timeout=int(member.session_timeout * 1000),
        subscription=member.metadata(protocol),
        assignment=member.assignment,
    )


def committed_of(value: OffsetCommitValue) -> Committed:
    """Decode a committed offset."""
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
    )


def restore(group: Group, value: GroupMetadataValue, now: float) -> None:
    """Restore a group from its record; sessions start anew."""
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    for each in value.members:
        protocols = ((value.protocol or "", each.subscription),)
        member = Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout / 1000,
            each.rebalance_timeout / 1000,
            protocols,
            each.assignment,
        )
        group.members.add(member)
        group.renew_session(member, now)
    group.members.leader = value.leader or ""
    if value.members:
        group.state = GroupState.STABLE  # no transition: the group is loaded, it does not change
