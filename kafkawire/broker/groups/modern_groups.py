"""What the coordinators of consumer, share and Streams groups have in common.

Invariant: the changes of a group are in the log before any response that rests on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ...primitives import Structure
from ..context import Context
from ..events import GroupDue
from ..metadata_cache import MetadataCache
from .offsets import LogRecord
from .topics import ClusterTopics
from .usage import Usage


class ModernGroup(Protocol):
    """A group whose coordinator computes the assignment."""

    group_id: str
    config: Any

    @property
    def population(self) -> int: ...
    @property
    def size(self) -> int: ...
    def apply(self, change: Any, /) -> None: ...
    def delete(self) -> None: ...
    def next_deadline(self) -> float | None: ...
    def loaded(self, now: float, /) -> None: ...


G = TypeVar("G", bound=ModernGroup)


class ModernGroups(ABC, Generic[G]):
    """The groups of a type by id. write: appends records to the partition.

    of_broker: how the settings of the broker begin that hold for groups without their own.
    """

    of_broker: ClassVar[str]

    def __init__(
        self,
        context: Context,
        metadata: MetadataCache,
        usage: Usage,
        index: int,
        write: Callable[[Iterable[LogRecord], float], None],
    ) -> None:
        self._context = context
        self._metadata = metadata
        self.topics = ClusterTopics(metadata)
        self._usage = usage
        self._index = index
        self._write = write
        self._groups: dict[str, G] = {}

    def __iter__(self) -> Iterator[G]:
        return iter(self._groups.values())

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._groups

    def get(self, group_id: str) -> G | None:
        """Find a group."""
        return self._groups.get(group_id)

    # -- what differs by the type

    @abstractmethod
    def config(self, group_id: str) -> Any:
        """Return the settings of a group: its own, else those of the broker."""

    @abstractmethod
    def new(self, group_id: str) -> G:
        """Return a group without members, which is not among the groups yet."""

    @abstractmethod
    def records(self, group: G) -> list[LogRecord]:
        """Return the changes of a group that are not yet logged, as records."""

    @abstractmethod
    def decode(self, key: Structure, value: Structure | None) -> tuple[str, Any] | None:
        """Decode a record: the id of the group and the change; None for one of another type."""

    @abstractmethod
    def is_deleted(self, group: G) -> bool:
        """Whether the records of a group, all of which were applied, end with its deletion."""

    # -- settings

    def seconds(self, own: Mapping[str, str], key: str) -> float:
        """Return a value of a group in seconds, within the limits of the broker."""
        settings = self._context.settings
        value = own.get(f"{self.of_broker.removeprefix('group.')}{key}")
        if value is None:
            return settings.seconds(f"{self.of_broker}{key}")
        least, most = (
            settings.number(f"{self.of_broker}{bound}.{key}") for bound in ("min", "max")
        )
        return max(least, min(most, int(value))) / 1000

    def assignment_interval(self, own: Mapping[str, str]) -> float:
        """Return the least time between two target assignments; before Kafka 4.3, there is none."""
        key = "assignment.interval.ms"
        has_key = f"{self.of_broker}{key}" in self._context.settings.keys
        return self.seconds(own, key) if has_key else 0.0

    # -- the log

    def forget(self, group: G, now: float) -> None:
        """Delete a group without members."""
        group.delete()
        self.log(group, now)
        self.remove(group)

    def remove(self, group: G) -> None:
        """Remove a group, without a record of that."""
        del self._groups[group.group_id]
        self._usage.forget(group)
        self._context.deadlines.cancel(GroupDue(self._index, group.group_id))

    def log(self, group: G, now: float) -> None:
        """Append the changes of a group to the log."""
        records = self.records(group)
        if records:
            self._write(records, now)
        self.note(group)

    def note(self, group: G) -> None:
        """Take note of the size and the deadlines of a group."""
        self._usage.note(group)
        due = GroupDue(self._index, group.group_id)
        self._context.deadlines.set(due, group.next_deadline())

    # -- loading

    def replay(self, key: Structure, value: Structure | None) -> None:
        """Apply a record of the log, if it is one of groups of this type."""
        decoded = self.decode(key, value)
        if decoded is None:
            return
        group_id, change = decoded
        group = self._groups.get(group_id)
        if group is None and value is not None:
            group = self._groups[group_id] = self.new(group_id)
        if group is not None:
            group.apply(change)

    def loaded(self, now: float) -> None:
        """Forget the groups that were deleted; the sessions of members begin."""
        for group in list(self._groups.values()):
            if self.is_deleted(group):
                del self._groups[group.group_id]
                continue
            group.config = self.config(group.group_id)
            group.loaded(now)
            self.note(group)

    def unload(self) -> None:
        """Forget all groups: they have another coordinator."""
        for group in list(self._groups.values()):
            self.remove(group)
