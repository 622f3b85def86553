"""The controller of a cluster: its metadata, and the decisions about it.

No I/O, clock or randomness of its own. Decisions are records of `__cluster_metadata`; the
metadata is what these records say, and nothing else.

    from random import Random
    from kafkawire.controller import BecameLeader, ControllerConfig, QuorumController

    controller = QuorumController(ControllerConfig("cluster"), Random(1), new_uuid)
    effects = controller.handle(BecameLeader(epoch=1, next_offset=1), now=0.0)
"""

from ..errors import InvalidMetadataRecord
from ..metadata import (
    BrokerRegistration,
    ConfigResource,
    MetadataDelta,
    MetadataImage,
    MetadataLoader,
    PartitionRegistration,
    TopicImage,
    VersionedRecord,
    snapshot,
)
from .broker_states import NEXT, BrokerState, Trigger
from .events import (
    Append,
    BecameLeader,
    Committed,
    Effect,
    Event,
    LogEndMoved,
    Published,
    Renounce,
    RequestReceived,
    Resigned,
    Respond,
    SnapshotLoaded,
)
from .quorum_controller import QuorumController
from .state import ControllerConfig

__all__ = [
    "Append",
    "BecameLeader",
    "BrokerRegistration",
    "BrokerState",
    "Committed",
    "ConfigResource",
    "ControllerConfig",
    "Effect",
    "Event",
    "InvalidMetadataRecord",
    "LogEndMoved",
    "MetadataDelta",
    "MetadataImage",
    "MetadataLoader",
    "NEXT",
    "PartitionRegistration",
    "Published",
    "QuorumController",
    "Renounce",
    "RequestReceived",
    "Resigned",
    "Respond",
    "SnapshotLoaded",
    "TopicImage",
    "Trigger",
    "VersionedRecord",
    "snapshot",
]
