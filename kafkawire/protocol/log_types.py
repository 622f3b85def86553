"""Kafka's internal logs: their topics, and the messages of their record types.

A type is valid in one log only, so every log has a table of its own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ..messages import REGISTRY
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

FORMER: Final = {"ClientQuotaRecord": "QuotaRecord"}
"""Former meanings of a type and version: Kafka 2.7 wrote another record under the same."""

OTHER_LOGS: Final = {
    "TransactionLog": InternalLog.TRANSACTIONS,
    "ShareSnapshot": InternalLog.SHARE,
    "ShareUpdate": InternalLog.SHARE,
    "RemoteLogSegmentMetadataRecord": InternalLog.REMOTE,
    "RemoteLogSegmentMetadataUpdateRecord": InternalLog.REMOTE,
    "RemotePartitionDeleteMetadataRecord": InternalLog.REMOTE,
    "RemoteLogSegmentMetadataSnapshotRecord": InternalLog.REMOTE,
}
"""Record -> its log, where that is neither the log of the group coordinator nor of controllers."""

WITHOUT_SCHEMA: Final = {9: "ShareGroupPartitionMetadata"}
"""Types of the group coordinator that Kafka lists, whose schemas no release has."""


def _types(kind: str, log: InternalLog, suffix: str = "") -> dict[InternalLog, dict[int, str]]:
    """Return the records of a kind of schema by log and by `apiKey`. log: that of most."""
    types: dict[InternalLog, dict[int, str]] = {}
    for info in sorted(REGISTRY, key=lambda info: info.api_key or 0):
        if info.type == kind and info.name not in FORMER.values():
            name = info.name.removesuffix(suffix)
            types.setdefault(OTHER_LOGS.get(name, log), {})[info.api_key or 0] = name
    return types


COORDINATED: Final = _types("coordinator-key", InternalLog.OFFSETS, "Key")
"""Coordinator's log -> record type -> the messages' name without its `Key` or `Value`."""

COORDINATED[InternalLog.OFFSETS] |= WITHOUT_SCHEMA

FRAMED: Final = _types("metadata", InternalLog.METADATA)
"""Log of framed records -> record type -> message."""

CONTROL_KEY: Final = "ControlRecordTypeSchema"
END_TXN: Final = "EndTxnMarker"
CONTROL_VALUES: Final = {0: END_TXN, 1: END_TXN} | {
    int(number): name for number, name in KRAFT_CONTROL.items()
}
"""Control record type -> the message in its value."""


def _types_by_name(table: dict[InternalLog, dict[int, str]], suffix: str = "") -> dict[str, int]:
    return {f"{name}{suffix}": number for types in table.values() for number, name in types.items()}


KEY_TYPE: Final = _types_by_name(COORDINATED, "Key")
"""Message in a coordinator's key -> its type."""

FRAME_TYPE: Final = _types_by_name(FRAMED)
FRAME_TYPE.update({former: FRAME_TYPE[name] for name, former in FORMER.items()})
"""Message in a framed value -> its type."""

VERSIONED: Final = frozenset(_types_by_name(COORDINATED, "Value")) | {CONTROL_KEY, END_TXN}
"""Messages with a leading version."""

BARE: Final = frozenset(KRAFT_CONTROL.values())
"""Messages without a prefix."""
