"""The consumer: subscription, membership, commits, positions, fetching.

As for every machine of the client: events and time in, effects out.
"""

from .assignors import (
    ASSIGNORS,
    Assignments,
    Assignor,
    CooperativeStickyAssignor,
    Member,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
)
from .configuration import (
    CONSUMER_KEYS,
    ConsumerConfig,
    GroupProtocol,
    IsolationLevel,
    Reset,
    ResetPolicy,
    consumer_config,
    read_consumer_config,
)
from .consumer import Consumer
from .failures import (
    CommitFailed,
    ConsumerError,
    DeserializationFailed,
    FetchFailed,
    GroupFailed,
    LogTruncated,
    LookupFailed,
    NoOffset,
    OffsetOutOfRange,
    RequestTimedOut,
)
from .offsets.committing import CommitKind
from .partitions import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    SubscriptionPattern,
    TopicPartition,
)

__all__ = [
    "ASSIGNORS",
    "Assignments",
    "Assignor",
    "CONSUMER_KEYS",
    "CommitFailed",
    "CommitKind",
    "Consumer",
    "ConsumerConfig",
    "ConsumerError",
    "ConsumerRecord",
    "CooperativeStickyAssignor",
    "DeserializationFailed",
    "FetchFailed",
    "GroupFailed",
    "GroupProtocol",
    "IsolationLevel",
    "LogTruncated",
    "LookupFailed",
    "Member",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "RangeAssignor",
    "RebalanceProtocol",
    "RequestTimedOut",
    "Reset",
    "ResetPolicy",
    "RoundRobinAssignor",
    "StickyAssignor",
    "SubscriptionPattern",
    "TopicPartition",
    "consumer_config",
    "read_consumer_config",
]
