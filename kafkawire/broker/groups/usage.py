"""Enforces the limits of groups, members and offsets of a cluster.

A group is counted as it was after its last request, until it is forgotten.
"""

from __future__ import annotations

from typing import Protocol

from ...protocol import ErrorCode
from ..bounds import Bounds
from .classic_groups.group import Group
from .requests import GroupRequest, Join, Joined, Response, Sync, Synced

E = ErrorCode


class Counted(Protocol):
    """A group of any type. size: bytes of its members."""

    @property
    def population(self) -> int: ...
    @property
    def size(self) -> int: ...


class Usage:
    """The resource usage of all groups. offsets: number of committed offsets."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._counted: dict[Counted, tuple[int, int]] = {}
        self._members = 0
        self._bytes = 0
        self.offsets = 0

    def note(self, group: Counted) -> None:
        """Update the usage of a group."""
        members, size = self._counted.get(group, (0, 0))
        self._counted[group] = group.population, group.size
        self._members += group.population - members
        self._bytes += group.size - size

    def forget(self, group: Counted) -> None:
        """Remove the usage of a group."""
        members, size = self._counted.pop(group, (0, 0))
        self._members -= members
        self._bytes -= size

    def admits_group(self) -> bool:
        """Whether another group may be created."""
        return len(self._counted) < self._bounds.groups

    def refusal(self, group: Group, request: GroupRequest) -> Response | None:
        """Return the error response to a request that exceeds the limits, or None."""
        if isinstance(request, Join):
            error = self._join_error(group, request)
            return Joined(request.reply_to, error, request.member_id) if error else None
        if isinstance(request, Sync):
            error = self._sync_error(request)
            return Synced(request.reply_to, error) if error else None
        return None

    def _join_error(self, group: Group, request: Join) -> ErrorCode:
        member = group.members.get(request.member_id)
        new = member is None and request.member_id not in group.pending_members
        if new and self._members >= self._bounds.members:
            return E.GROUP_MAX_SIZE_REACHED
        size = sum(len(name) + len(data) for name, data in request.protocols)
        more = size - (0 if member is None else member.size)
        fits = more <= 0 or self._bytes + more <= self._bounds.group_bytes
        return E.NONE if fits else E.GROUP_MAX_SIZE_REACHED

    def admits_members(self, members: int, size: int) -> bool:
        """Whether there may be that many more members, and bytes of them."""
        fits = not members or self._members + members <= self._bounds.members
        return fits and (size <= 0 or self._bytes + size <= self._bounds.group_bytes)

    def _sync_error(self, request: Sync) -> ErrorCode:
        size = sum(len(each) for each in request.assignments.values())
        fits = not size or self._bytes + size <= self._bounds.group_bytes
        return E.NONE if fits else E.MESSAGE_TOO_LARGE

    def admits_offsets(self, more: int) -> bool:
        """Whether that many more offsets may be committed."""
        return not more or self.offsets + more <= self._bounds.committed_offsets
