"""Checks the assignments that an assignor returned.

Every member has an assignment; each partition exists, goes to one member, and that member
subscribes to its topic. Otherwise records would be read twice, or other members would fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..partitions import TopicPartition
from .assignor import Member


def invalid_assignment(
    assignments: Mapping[str, Sequence[TopicPartition]],
    counts: Mapping[str, int],
    members: Sequence[Member],
) -> str | None:
    """Return what is wrong with assignments, or None; counts, members: as for `Assignor.assign`."""
    subscribed = {member.member_id: frozenset(member.topics) for member in members}
    unknown = assignments.keys() - subscribed.keys()
    if unknown:
        return f"unknown member {min(unknown)!r}"
    missing = subscribed.keys() - assignments.keys()
    if missing:
        return f"no assignment for member {min(missing)!r}"
    owners: dict[TopicPartition, str] = {}
    for member_id, partitions in assignments.items():
        for topic, partition in partitions:
            each = TopicPartition(topic, partition)
            if type(partition) is not int:
                return f"invalid partition number {partition!r} of topic {topic!r}: expected an int"
            if topic not in subscribed[member_id]:
                return f"{each} assigned to {member_id!r}, which does not subscribe to {topic!r}"
            if not 0 <= partition < counts.get(topic, 0):
                return f"no such partition: {each}, assigned to {member_id!r}"
            if each in owners:
                return f"{each} assigned to both {owners[each]!r} and {member_id!r}"
            owners[each] = member_id
    return None
