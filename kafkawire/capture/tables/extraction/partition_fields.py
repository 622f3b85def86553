"""Finds the partitions in messages, and the fields of each: `partition_paths` says where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from ....primitives import Message, Structure
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row
from .partition_paths import REQUESTS, RESPONSES, PartitionPath


@final
@mypyc_attr(acyclic=True)
class PartitionReference:
    """A partition in a message; struct: its struct, None if the message has only its number."""

    __slots__ = ("group_id", "partition", "struct", "topic")

    def __init__(
        self, topic: Topic, partition: int, struct: Structure | None, group_id: str | None
    ) -> None:
        self.topic: Topic = topic
        self.partition: int = partition
        self.struct: Structure | None = struct
        self.group_id: str | None = group_id


@final
class OptionalField:
    """An attribute that only some structs have.

    Failing to read an attribute of a compiled class takes longer than finding a class here.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.known: dict[type, bool] = {}

    def of(self, struct: Structure | Message) -> Any:
        """Return the value; None for a struct without it."""
        cls: type = type(struct)
        has = self.known.get(cls)
        if has is None:
            has = self.known[cls] = hasattr(struct, self.name)
        return getattr(struct, self.name) if has else None


GROUP_ID: Final = OptionalField("group_id")
TOPIC_ID: Final = OptionalField("topic_id")


def partition_references(row: Row | None, names: TopicNames) -> list[PartitionReference]:
    """List the partitions in a message, in wire order."""
    references: list[PartitionReference] = []
    if row is None or row.message is None or row.api_key is None:
        return references
    paths = REQUESTS if row.direction == "request" else RESPONSES
    for path in paths.get(row.api_key, ()):
        if len(path.attributes) == 1:
            message = row.message
            group_id = GROUP_ID.of(message) or None
            for topic in getattr(message, path.attributes[0]) or ():
                _add_references(references, path, topic, group_id, names)
        else:
            for topic, group_id in _topics(row.message, path.attributes, None):
                _add_references(references, path, topic, group_id, names)
    return references


def _add_references(
    references: list[PartitionReference],
    path: PartitionPath,
    struct: Structure,
    group_id: str | None,
    names: TopicNames,
) -> None:
    """Add the partitions of a topic struct."""
    name = getattr(struct, path.name) if path.name else None
    topic = names.topic(name, TOPIC_ID.of(struct))
    number = path.number
    for one in getattr(struct, path.partitions) or ():
        if isinstance(one, int):
            references.append(PartitionReference(topic, one, None, group_id))
        else:
            references.append(PartitionReference(topic, getattr(one, number), one, group_id))


def _topics(
    struct: Structure | Message, attributes: tuple[str, ...], group_id: str | None
) -> Iterator[tuple[Structure, str | None]]:
    group_id = GROUP_ID.of(struct) or group_id
    for one in getattr(struct, attributes[0]) or ():
        if len(attributes) == 1:
            yield one, group_id
        else:
            yield from _topics(one, attributes[1:], group_id)
