"""Where the partitions are in messages, and which columns their fields fill, by API.

One entry here is all that an API needs to appear in the `partitions` table and in the
`partitions` column of `exchanges`.

    message --attributes--> topic struct (name, id) --partitions--> partition struct, or a number
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ....messages.api_key import ApiKey


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
