"""Fetch: reads records.

v0   the first
v1   response +throttle_time_ms
v2   no new fields │ magic 1
v3   request +max_bytes │ limits are soft: the first batch is returned whole
v4   request +isolation_level; response +last_stable_offset +aborted_transactions │ magic 2
v5   request +log_start_offset; response +log_start_offset
v6   no new fields │ KAFKA_STORAGE_ERROR may be returned
v7   request +session_id +session_epoch +forgotten_topics_data; response +error_code
      +session_id
v8   no new fields │ throttled after the response
v9   request +current_leader_epoch
v10  no new fields │ zstd
v11  request +rack_id; response +preferred_read_replica
v12  request +cluster_id +last_fetched_epoch; response +diverging_epoch +current_leader
      +snapshot_id; flexible
v13  request +topic_id -topic; response +topic_id -topic
v14  no new fields │ OFFSET_MOVED_TO_TIERED_STORAGE may be returned
v15  request +replica_state -replica_id
v16  response +node_endpoints
v17  request +replica_directory_id
v18  request +high_watermark
"""

from __future__ import annotations

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from ...protocol import ErrorCode
from ..broker import Broker
from ..fetched import Fetched
from ..network.connection import Connection
from ..request import Outcome, Request


def handle(
    broker: Broker, request: Request, body: FetchRequest, _connection: Connection, now: float
) -> FetchResponse | Fetched | Outcome:
    """Read records, or delay the response until there are enough."""
    return broker.replicas.fetch(request, body, now)


def error_response(body: FetchRequest, error: ErrorCode) -> FetchResponse:
    """Return a response with the error for each partition."""
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=each.partition,
                        error_code=error,
                        high_watermark=-1,
                        records=b"",
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
