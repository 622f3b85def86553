"""Whether what an assignor gave is a division of the group's partitions at all.

Law: no partition is read twice, none by who did not ask for its topic, none that does not exist; a
leader that sent such a division around would have records read twice, or members fail elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..partitions import TopicPartition
from .assignor import Member


def unsound(
    divided: Mapping[str, Sequence[TopicPartition]],
    counts: Mapping[str, int],
    members: Sequence[Member],
) -> str | None:
    """Say what is wrong with a division, None if nothing is; arguments as of `Assignor.assign`."""
    subscribed = {member.member_id: frozenset(member.topics) for member in members}
    strangers = divided.keys() - subscribed.keys()
    if strangers:
        return f"it gives partitions to {min(strangers)!r}, who is no member"
    forgotten = subscribed.keys() - divided.keys()
    if forgotten:
        return f"it leaves out the member {min(forgotten)!r}"
    readers: dict[TopicPartition, str] = {}
    for member_id, partitions in divided.items():
        for topic, partition in partitions:
            where = TopicPartition(topic, partition)
            if type(partition) is not int:
                return f"it gives {where} to {member_id!r}; a partition number is an int"
            if topic not in subscribed[member_id]:
                return f"it gives {where} to {member_id!r}, who does not subscribe to that topic"
            if not 0 <= partition < counts.get(topic, 0):
                return f"it gives {where} to {member_id!r}; there is no such partition"
            if where in readers:
                return f"it gives {where} to {readers[where]!r} and to {member_id!r}"
            readers[where] = member_id
    return None
