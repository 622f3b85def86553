"""Summarises a message in few characters: its groups, partitions, offsets and records.

group averages  measurements-0 offset 117
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafkawire.display import ELISION, clipped, plural

if TYPE_CHECKING:
    from kafkawire.capture.exchanges.topic_ids import Topic
    from kafkawire.capture.rows import Row
    from kafkawire.capture.tables.extraction.partition_fields import PartitionReference

NAMES: Final = {"group_id": "group", "transactional_id": "transactional id"}
"""Entity -> what precedes its name; of others it is nothing."""

OFFSETS: Final = ("committed_offset", "fetch_offset", "base_offset", "end_offset", "offset")
"""Attributes of partitions that are offsets, the first of which is shown."""

MAX_PARTITIONS: Final = 2
"""Partitions of a message that are shown."""

ID_LENGTH: Final = 5
"""Characters of a topic id that stand for a topic without a name."""

UNKNOWN_GENERATION: Final = -1


def short_summary(
    row: Row, names: tuple[tuple[str, str], ...], topics: tuple[str, ...], records: int | None
) -> str:
    """Summarise a row. names, topics: its entities; records: their number, None for no batch."""
    from kafkawire.capture.exchanges.topic_ids import TopicNames
    from kafkawire.capture.tables.extraction.partition_fields import partition_references

    parts = [f"{NAMES.get(name, '')} {value}".strip() for name, value in names]
    parts += _generation(row)
    partitions = partition_references(row, TopicNames())
    entities = [_partition(each) for each in partitions[:MAX_PARTITIONS]]
    if not entities:
        entities = list(topics[:MAX_PARTITIONS])
    left = max(len(partitions), len(topics)) - len(entities)
    if entities:
        parts.append(", ".join(entities) + (f", +{left}" if left > 0 else ""))
    if records is not None:
        parts.append(plural(records, "record"))
    return "  ".join(parts)


def _generation(row: Row) -> Iterator[str]:
    generation = getattr(row.message, "generation_id", UNKNOWN_GENERATION)
    if generation != UNKNOWN_GENERATION:
        yield f"generation {generation}"


def _partition(reference: PartitionReference) -> str:
    name = f"{_topic(reference.topic)}-{reference.partition}"
    offsets = (getattr(reference.struct, each, None) for each in OFFSETS)
    offset = next((each for each in offsets if each is not None), -1)
    return name if offset < 0 else f"{name} offset {offset}"


def _topic(topic: Topic) -> str:
    return topic.name or clipped(topic.id_text or "", ID_LENGTH) + ELISION
