"""A member of a consumer group, as a transaction names it."""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN_GENERATION: Final = -1


class ConsumerGroupMetadata(NamedTuple):
    """The group whose offsets a transaction commits, and the member that read them (KIP-447).

    With a member, the group's coordinator refuses the offsets of one that has left the group or
    missed a rebalance. Without one (`generation_id` -1, `member_id` empty) it checks nothing.
    """

    group_id: str
    generation_id: int = UNKNOWN_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None

    @property
    def names_a_member(self) -> bool:
        """Whether the coordinator checks the member."""
        return self != ConsumerGroupMetadata(self.group_id)
