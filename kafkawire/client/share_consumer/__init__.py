"""The share consumer: membership in a share group, share sessions, acknowledgements (KIP-932).

As for every machine of the client: events and time in, effects out.
"""

from .acknowledgements import (
    AcknowledgeFailed,
    AcknowledgementRange,
    AcknowledgeType,
    SharePartition,
)
from .configuration import (
    SHARE_CONSUMER_KEYS,
    AcknowledgementMode,
    AcquireMode,
    ShareConsumerConfig,
    share_consumer_config,
)
from .records import ShareRecord
from .share_consumer import ShareConsumer

__all__ = [
    "AcknowledgeFailed",
    "AcknowledgeType",
    "AcknowledgementMode",
    "AcknowledgementRange",
    "AcquireMode",
    "SHARE_CONSUMER_KEYS",
    "ShareConsumer",
    "ShareConsumerConfig",
    "SharePartition",
    "ShareRecord",
    "share_consumer_config",
]
