"""The metadata of a cluster: records of `__cluster_metadata` applied, and written again.

One home for what controllers decide on and brokers observe: brokers, topics, configs.

    records ─▶ MetadataLoader ─▶ MetadataImage, MetadataDelta        snapshot(image) ─▶ records
"""

from .configs import broker_value, topic_value, value_of_topic
from .delta import MetadataDelta, everything, slices
from .image import METADATA_VERSION, ConfigResource, MetadataImage, QuotaEntity, TopicImage
from .indexes import TopicIdPartition
from .loader import MetadataLoader
from .registrations import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    BrokerRegistration,
    Endpoint,
    PartitionRegistration,
)
from .replay import replay
from .snapshot import snapshot
from .versions import VersionedRecord

__all__ = [
    "BrokerRegistration",
    "ConfigResource",
    "Endpoint",
    "METADATA_VERSION",
    "MetadataDelta",
    "MetadataImage",
    "MetadataLoader",
    "NO_LEADER",
    "NO_LEADER_CHANGE",
    "PartitionRegistration",
    "QuotaEntity",
    "RECOVERED",
    "RECOVERING",
    "TopicIdPartition",
    "TopicImage",
    "VersionedRecord",
    "broker_value",
    "everything",
    "replay",
    "slices",
    "snapshot",
    "topic_value",
    "value_of_topic",
]
