"""The columns of the `partitions` table: one row per exchange and partition in either message."""

from __future__ import annotations

from typing import Final

from .columns import BOOL, INT16, INT32, INT64, TEXT, Column, Columns, topic_name
from .exchanges import EXCHANGE

COLUMNS: Final[Columns] = (
    *EXCHANGE,
    Column("group_id", TEXT, "Consumer group, where the exchange is about one."),
    Column("topic", TEXT, "Topic; null if its name is not in the capture.", topic_name),
    Column("topic_id", TEXT, "Topic id in Kafka's text form, if the messages use topic ids."),
    Column("partition", INT32, "Partition."),
    Column("requested", BOOL, "Whether the request lists the partition."),
    Column("responded", BOOL, "Whether the response lists the partition."),
    Column(
        "in_session",
        BOOL,
        "For a Fetch: part of the fetch session, but not listed in the request (KIP-227).",
    ),
    Column(
        "request_offset", INT64, "Offset in the request: to fetch from, to commit, to delete up to."
    ),
    Column(
        "request_timestamp_ms", INT64, "ListOffsets: requested timestamp, -1 latest, -2 earliest."
    ),
    Column("current_leader_epoch", INT32, "Leader epoch known to the client, -1 if unknown."),
    Column("max_bytes", INT32, "Maximum bytes to return for the partition."),
    Column("error_code", INT16, "Error code, 0 for none."),
    Column("error", TEXT, "Name of the error; null for none."),
    Column("error_message", TEXT, "Error message of the broker."),
    Column(
        "offset",
        INT64,
        "Offset in the response: base, committed, found, end offset or low watermark.",
    ),
    Column("timestamp_ms", INT64, "Timestamp in the response in milliseconds, -1 for none."),
    Column("high_watermark", INT64, "High watermark."),
    Column("last_stable_offset", INT64, "Last stable offset."),
    Column("log_start_offset", INT64, "Log start offset."),
    Column("preferred_read_replica", INT32, "Preferred read replica, -1 for none."),
    Column("leader_id", INT32, "Leader of the partition."),
    Column("leader_epoch", INT32, "Leader epoch in the response."),
    Column("metadata", TEXT, "Metadata of a committed offset."),
    Column("records_bytes", INT32, "Bytes of record batches that were produced or fetched."),
    Column("batches", INT32, "Number of record batches."),
    Column("records", INT32, "Number of records; null if a batch is corrupt."),
)
