"""Finds the partitions in messages, and the fields of each, by API.

Law: one entry here is all that an API needs to appear in the `partitions` table and in the
`partitions` column of `exchanges`.

    message --attributes--> topic struct (name, id) --partitions--> partition struct, or a number
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple, final

from mypy_extensions import mypyc_attr

from ....messages.api_key import ApiKey
from ....primitives import Message, Structure
from ....protocol.fields import fields_at
from ...exchanges.topic_ids import Topic, TopicNames
from ...rows import Row


class PartitionPath(NamedTuple):
    """A path to partitions.

    attributes: from the message to its topic structs. partitions: the list in a topic struct.
    number: the partition number in a partition struct; "" if the list holds numbers. name: the
    topic name; the topic id, if any, is always `topic_id`.
    """

    attributes: tuple[str, ...]
    partitions: str = "partitions"
    number: str = "partition_index"
    name: str = "name"


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


_TOPICS: Final = (PartitionPath(("topics",)),)
_NUMBERS: Final = (PartitionPath(("topics",), "partition_indexes", ""),)

REQUESTS: Final[dict[int, tuple[PartitionPath, ...]]] = {
    ApiKey.PRODUCE: (PartitionPath(("topic_data",), "partition_data", "index"),),
    ApiKey.FETCH: (PartitionPath(("topics",), number="partition", name="topic"),),
    ApiKey.LIST_OFFSETS: _TOPICS,
    ApiKey.OFFSET_COMMIT: _TOPICS,
    ApiKey.OFFSET_FETCH: (*_NUMBERS, PartitionPath(("groups", "topics"), "partition_indexes", "")),
    ApiKey.DELETE_RECORDS: _TOPICS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (PartitionPath(("topics",), number="partition", name="topic"),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        PartitionPath(("v3_and_below_topics",), number=""),
        PartitionPath(("transactions", "topics"), number=""),
    ),
    ApiKey.WRITE_TXN_MARKERS: (PartitionPath(("markers", "topics"), "partition_indexes", ""),),
    ApiKey.TXN_OFFSET_COMMIT: _TOPICS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _TOPICS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _NUMBERS,
    ApiKey.OFFSET_DELETE: _TOPICS,
    ApiKey.DESCRIBE_PRODUCERS: _NUMBERS,
    ApiKey.DESCRIBE_LOG_DIRS: (PartitionPath(("topics",), number="", name="topic"),),
    ApiKey.ELECT_LEADERS: (PartitionPath(("topic_partitions",), number="", name="topic"),),
    ApiKey.SHARE_FETCH: (PartitionPath(("topics",), name=""),),
    ApiKey.SHARE_ACKNOWLEDGE: (PartitionPath(("topics",), name=""),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        PartitionPath(("groups", "topics"), number="", name="topic_name"),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (PartitionPath(("topics",), name="topic_name"),),
}
"""API key -> paths to the partitions of its request."""

RESPONSES: Final[dict[int, tuple[PartitionPath, ...]]] = {
    ApiKey.PRODUCE: (PartitionPath(("responses",), "partition_responses", "index"),),
    ApiKey.FETCH: (PartitionPath(("responses",), name="topic"),),
    ApiKey.LIST_OFFSETS: _TOPICS,
    ApiKey.METADATA: _TOPICS,
    ApiKey.OFFSET_COMMIT: _TOPICS,
    ApiKey.OFFSET_FETCH: (*_TOPICS, PartitionPath(("groups", "topics"))),
    ApiKey.DELETE_RECORDS: _TOPICS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (PartitionPath(("topics",), number="partition", name="topic"),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        PartitionPath(("results_by_topic_v3_and_below",), "results_by_partition"),
        PartitionPath(("results_by_transaction", "topic_results"), "results_by_partition"),
    ),
    ApiKey.WRITE_TXN_MARKERS: (PartitionPath(("markers", "topics")),),
    ApiKey.TXN_OFFSET_COMMIT: _TOPICS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (PartitionPath(("responses",)),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _TOPICS,
    ApiKey.OFFSET_DELETE: _TOPICS,
    ApiKey.DESCRIBE_PRODUCERS: _TOPICS,
    ApiKey.DESCRIBE_LOG_DIRS: (PartitionPath(("results", "topics")),),
    ApiKey.ELECT_LEADERS: (
        PartitionPath(("replica_election_results",), "partition_result", "partition_id", "topic"),
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _TOPICS,
    ApiKey.SHARE_FETCH: (PartitionPath(("responses",), name=""),),
    ApiKey.SHARE_ACKNOWLEDGE: (PartitionPath(("responses",), name=""),),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (PartitionPath(("groups", "topics"), name="topic_name"),),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (PartitionPath(("responses",), name="topic_name"),),
}
"""API key -> paths to the partitions of its response."""


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
    made: list[PartitionReference] = []
    if row is None or row.message is None or row.api_key is None:
        return made
    paths = REQUESTS if row.direction == "request" else RESPONSES
    for path in paths.get(row.api_key, ()):
        if len(path.attributes) == 1:
            message = row.message
            group_id = GROUP_ID.of(message) or None
            for topic in getattr(message, path.attributes[0]) or ():
                _add_references(made, path, topic, group_id, names)
        else:
            for topic, group_id in _topics(row.message, path.attributes, None):
                _add_references(made, path, topic, group_id, names)
    return made


def _add_references(
    made: list[PartitionReference],
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
            made.append(PartitionReference(topic, one, None, group_id))
        else:
            made.append(PartitionReference(topic, getattr(one, number), one, group_id))


def _topics(
    struct: Structure | Message, attributes: tuple[str, ...], group_id: str | None
) -> Iterator[tuple[Structure, str | None]]:
    group_id = GROUP_ID.of(struct) or group_id
    for one in getattr(struct, attributes[0]) or ():
        if len(attributes) == 1:
            yield one, group_id
        else:
            yield from _topics(one, attributes[1:], group_id)


def requested_partitions(row: Row | None, names: TopicNames) -> list[tuple[Topic, int]]:
    """List the (topic, partition) pairs of a request."""
    return [(one.topic, one.partition) for one in partition_references(row, names)]


# -- attribute of a partition struct -> column of the `partitions` table

REQUEST_FIELDS: Final = {
    "fetch_offset": "request_offset",
    "committed_offset": "request_offset",
    "start_offset": "request_offset",
    "offset": "request_offset",
    "timestamp": "request_timestamp_ms",
    "partition_max_bytes": "max_bytes",
    "current_leader_epoch": "current_leader_epoch",
    "committed_metadata": "metadata",
}

RESPONSE_FIELDS: Final = {
    "error_code": "error_code",
    "partition_error_code": "error_code",
    "base_offset": "offset",
    "offset": "offset",
    "committed_offset": "offset",
    "start_offset": "offset",
    "end_offset": "offset",
    "low_watermark": "offset",
    "log_append_time_ms": "timestamp_ms",
    "timestamp": "timestamp_ms",
    "high_watermark": "high_watermark",
    "last_stable_offset": "last_stable_offset",
    "log_start_offset": "log_start_offset",
    "preferred_read_replica": "preferred_read_replica",
    "leader_id": "leader_id",
    "leader_epoch": "leader_epoch",
    "metadata": "metadata",
    "error_message": "error_message",
}


class PartitionColumns(NamedTuple):
    """How the fields of a partition struct fill columns: `get` returns the values of `columns`."""

    columns: tuple[str, ...]
    get: Callable[[Any], tuple[Any, ...]]


def partition_columns(cls: type[Structure], version: int, is_request: bool) -> PartitionColumns:
    """Find the fields of a partition struct that are columns; only those of the version."""
    table = REQUEST_FIELDS if is_request else RESPONSE_FIELDS
    here = [field.attribute for field in fields_at(cls, version) if field.attribute in table]
    columns = tuple([table[attribute] for attribute in here])
    if len(here) > 1:
        return PartitionColumns(columns, attrgetter(*here))
    return PartitionColumns(columns, lambda struct: tuple([getattr(struct, at) for at in here]))
