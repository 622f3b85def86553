"""The admin client for asyncio: topics, configurations, groups, offsets.

One call, one response; a broker's error is a BrokerError with its code and message.
"""

from .admin import ADMIN_KEYS, Admin
from .values import (
    EARLIEST,
    LATEST,
    ApiRange,
    BrokerInfo,
    BrokerVersions,
    ClusterInfo,
    CommittedOffset,
    ConfigEntry,
    Feature,
    GroupInfo,
    GroupListing,
    HangingTransaction,
    LogDirInfo,
    MemberInfo,
    Offset,
    PartitionInfo,
    ProducerInfo,
    QuorumInfo,
    QuorumReplica,
    TopicInfo,
    TransactionInfo,
    TransactionListing,
)

__all__ = [
    "ADMIN_KEYS",
    "EARLIEST",
    "LATEST",
    "Admin",
    "ApiRange",
    "BrokerInfo",
    "BrokerVersions",
    "ClusterInfo",
    "CommittedOffset",
    "ConfigEntry",
    "Feature",
    "GroupInfo",
    "GroupListing",
    "HangingTransaction",
    "LogDirInfo",
    "MemberInfo",
    "Offset",
    "PartitionInfo",
    "ProducerInfo",
    "QuorumInfo",
    "QuorumReplica",
    "TopicInfo",
    "TransactionInfo",
    "TransactionListing",
]
