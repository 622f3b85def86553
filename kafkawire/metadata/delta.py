"""What a series of records changed, for those that observe the metadata.

Law: a delta names everything that may differ between two images, once; what became of it is in
the newer image.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .image import ConfigResource, QuotaEntity
from .indexes import TopicIdPartition


@dataclass(slots=True)
class MetadataDelta:
    """The names of what changed; a dict of names is a set in order of first change.

    deleted_topics: id -> name. offset: of the last record, -1 for none.
    """

    offset: int = -1
    topics: dict[bytes, None] = field(default_factory=dict)
    deleted_topics: dict[bytes, str] = field(default_factory=dict)
    partitions: dict[TopicIdPartition, None] = field(default_factory=dict)
    brokers: dict[int, None] = field(default_factory=dict)
    controllers: dict[int, None] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    quotas: dict[QuotaEntity, None] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], None] = field(default_factory=dict)
    acls: dict[bytes, None] = field(default_factory=dict)
    delegation_tokens: dict[str, None] = field(default_factory=dict)
    producer_ids: bool = False
