"""The columns of the `records` table: one row per record that was produced or fetched."""

from __future__ import annotations

from typing import Final

from ...messages.api_key import ApiKey
from ...protocol.secrets import METADATA_TOPICS, placeholder
from ...records.compression.codecs import CODEC_NAMES
from ..exchanges.topic_ids import Topic
from .columns import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    list_of,
    struct_of,
    topic_name,
)
from .context import WHERE
from .extraction.record_batches import (
    RecordsField,
)

_CODECS: Final = f"`{'`, `'.join(CODEC_NAMES[:-1])}` or `{CODEC_NAMES[-1]}`"
HEADERS: Final = list_of(struct_of(key=TEXT, value=BYTES, key_bytes=BYTES))

COLUMNS: Final[Columns] = (
    *WHERE,
    Column("direction", TEXT, "`produce`, `fetch` or `share_fetch`."),
    Column("client_id", TEXT, "Client id of the request."),
    Column("correlation_id", INT32, "Correlation id of the exchange."),
    Column("topic", TEXT, "Topic; null if its name is not in the capture.", topic_name),
    Column("topic_id", TEXT, "Topic id in Kafka's text form, if the message uses topic ids."),
    Column("partition", INT32, "Partition."),
    Column("offset", INT64, "Offset; in a Produce request, the position in the batch, from 0."),
    Column("timestamp", TIME, "Timestamp of the record; null for none, or after the year 9999."),
    Column("timestamp_ms", INT64, "The same in milliseconds since the epoch, -1 for none."),
    Column("timestamp_type", TEXT, "`create_time`, `log_append_time` or `no_timestamp_type`."),
    Column("key", BYTES, "Key; redacted in the metadata topic, whose records hold secrets."),
    Column("value", BYTES, "Value; null for a tombstone; redacted where keys are."),
    Column(
        "headers",
        HEADERS,
        "Headers in order; `key_bytes`: of a key that is not UTF-8, shown with U+FFFD, else null.",
    ),
    Column("magic", INT8, "Format version (magic) of the batch: 0, 1 or 2."),
    Column("codec", TEXT, f"Compression of the batch: {_CODECS}."),
    Column("producer_id", INT64, "Producer id, -1 for none."),
    Column("producer_epoch", INT16, "Producer epoch, -1 for none."),
    Column("sequence", INT32, "Sequence number of the record, -1 for none."),
    Column("transactional", BOOL, "Whether the batch is part of a transaction."),
    Column("control", BOOL, "Whether it is a control record, such as a transaction marker."),
    Column("partition_leader_epoch", INT32, "Partition leader epoch of the batch, -1 for none."),
    Column("base_offset", INT64, "Base offset of the batch."),
)
"""A fetch returns whole batches, so records before the requested offset are included."""

DIRECTION: Final[dict[int, str]] = {
    ApiKey.PRODUCE: "produce",
    ApiKey.FETCH: "fetch",
    ApiKey.SHARE_FETCH: "share_fetch",
}
"""API -> the column `direction` of its records."""


def is_metadata(field: RecordsField) -> bool:
    """Whether records belong to the metadata topic, which holds secrets."""
    return is_metadata_topic(field.topic)


def is_metadata_topic(topic: Topic) -> bool:
    """Whether a topic is the metadata topic."""
    return topic.name in METADATA_TOPICS or topic.id_text in METADATA_TOPICS


def hidden_value(data: bytes | None) -> str | None:
    """Return what is shown instead of some bytes: their number."""
    return None if data is None else placeholder(len(data), "byte")
