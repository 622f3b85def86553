"""Looking after a cluster from asyncio: topics, configurations, groups, offsets.

Law: one question, one answer; what a broker refuses is a BrokerError with its code and its words.
"""

from .admin import ADMIN_KEYS, Admin
from .values import (
    EARLIEST,
    LATEST,
    BrokerInfo,
    ClusterInfo,
    CommittedOffset,
    ConfigEntry,
    GroupInfo,
    GroupListing,
    MemberInfo,
    Offset,
    PartitionInfo,
    TopicInfo,
)

__all__ = [
    "ADMIN_KEYS",
    "EARLIEST",
    "LATEST",
    "Admin",
    "BrokerInfo",
    "ClusterInfo",
    "CommittedOffset",
    "ConfigEntry",
    "GroupInfo",
    "GroupListing",
    "MemberInfo",
    "Offset",
    "PartitionInfo",
    "TopicInfo",
]
