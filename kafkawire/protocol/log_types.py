"""Kafka's internal logs: their topics, and the messages of their record types.

A type is valid in one log only, so every log has a table of its own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ..records.control import MESSAGES as KRAFT_CONTROL


class InternalLog(StrEnum):
    """The logs that Kafka itself writes and reads."""

    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    SHARE = "share"
    METADATA = "metadata"
    REMOTE = "remote"


TOPICS: Final = {
    "__consumer_offsets": InternalLog.OFFSETS,
    "__transaction_state": InternalLog.TRANSACTIONS,
    "__share_group_state": InternalLog.SHARE,
    "__cluster_metadata": InternalLog.METADATA,
    "__remote_log_metadata": InternalLog.REMOTE,
}
"""Topic -> the log type of its records."""

COORDINATED: Final[dict[InternalLog, dict[int, str]]] = {
    InternalLog.OFFSETS: {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        9: "ShareGroupPartitionMetadata",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
    InternalLog.TRANSACTIONS: {0: "TransactionLog"},
    InternalLog.SHARE: {0: "ShareSnapshot", 1: "ShareUpdate"},
}
"""Coordinator's log -> record type -> the messages' name without its `Key` or `Value`."""

FRAMED: Final[dict[InternalLog, dict[int, str]]] = {
    InternalLog.METADATA: {
        0: "RegisterBrokerRecord",
        1: "UnregisterBrokerRecord",
        2: "TopicRecord",
        3: "PartitionRecord",
        4: "ConfigRecord",
        5: "PartitionChangeRecord",
        6: "AccessControlRecord",
        7: "FenceBrokerRecord",
        8: "UnfenceBrokerRecord",
        9: "RemoveTopicRecord",
        10: "DelegationTokenRecord",
        11: "UserScramCredentialRecord",
        12: "FeatureLevelRecord",
        14: "ClientQuotaRecord",
        15: "ProducerIdsRecord",
        16: "RemoveFeatureLevelRecord",
        17: "BrokerRegistrationChangeRecord",
        18: "AccessControlEntryRecord",
        19: "RemoveAccessControlEntryRecord",
        20: "NoOpRecord",
        21: "ZkMigrationStateRecord",
        22: "RemoveUserScramCredentialRecord",
        23: "BeginTransactionRecord",
        24: "EndTransactionRecord",
        25: "AbortTransactionRecord",
        26: "RemoveDelegationTokenRecord",
        27: "RegisterControllerRecord",
        28: "ClearElrRecord",
        29: "UnregisterControllerRecord",
    },
    InternalLog.REMOTE: {
        0: "RemoteLogSegmentMetadataRecord",
        1: "RemoteLogSegmentMetadataUpdateRecord",
        2: "RemotePartitionDeleteMetadataRecord",
        3: "RemoteLogSegmentMetadataSnapshotRecord",
    },
}
"""Log of framed records -> record type -> message."""

CONTROL_KEY: Final = "ControlRecordTypeSchema"
END_TXN: Final = "EndTxnMarker"
CONTROL_VALUES: Final = {0: END_TXN, 1: END_TXN} | {
    int(number): name for number, name in KRAFT_CONTROL.items()
}
"""Control record type -> the message in its value."""

FORMER: Final = {"ClientQuotaRecord": "QuotaRecord"}
"""Former meanings of a type and version: Kafka 2.7 wrote another record under the same."""


def _types_by_name(table: dict[InternalLog, dict[int, str]], suffix: str = "") -> dict[str, int]:
    return {f"{name}{suffix}": number for types in table.values() for number, name in types.items()}


KEY_TYPE: Final = _types_by_name(COORDINATED, "Key")
"""Message in a coordinator's key -> its type."""

FRAME_TYPE: Final = _types_by_name(FRAMED) | {"QuotaRecord": 14}
"""Message in a framed value -> its type."""

VERSIONED: Final = frozenset(_types_by_name(COORDINATED, "Value")) | {CONTROL_KEY, END_TXN}
"""Messages with a leading version."""

BARE: Final = frozenset(KRAFT_CONTROL.values())
"""Messages without a prefix."""
