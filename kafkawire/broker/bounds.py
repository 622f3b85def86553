"""Limits of a cluster for which Kafka has no configuration key.

Whatever a client can make grow has a limit: a configuration key of Kafka's (`configs`) or one
of these. A request that would exceed it fails with an error, or evicts the least recently used.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """The limits of one cluster.

    partitions: of all topics. partitions_per_request: that one CreateTopics or CreatePartitions may
    create (Kafka's MAX_PARTITIONS_PER_BATCH). partitions_per_metadata: after which one Metadata
    creates no more topics; the others get LEADER_NOT_AVAILABLE, and clients retry. groups: of all
    coordinators. members: of all groups, pending members included. group_bytes: of their metadata
    and assignments. committed_offsets: of all groups. session_partitions: of one fetch session.
    producers: producer ids with state in one partition. transactional_ids: of a node, in one
    partition of `__transaction_state`. share_partitions: with state in one partition of
    `__share_group_state`. buffered_bytes: of incomplete or queued requests of all
    connections, where `queued.max.request.bytes` is -1.
    """

    partitions: int = 100_000
    partitions_per_request: int = 10_000
    partitions_per_metadata: int = 1_000
    groups: int = 10_000
    members: int = 100_000
    group_bytes: int = 1 << 28
    committed_offsets: int = 1_000_000
    session_partitions: int = 10_000
    producers: int = 10_000
    transactional_ids: int = 10_000
    share_partitions: int = 100_000
    buffered_bytes: int = 1 << 30


DEFAULT_BOUNDS: Final = Bounds()

UNSENT: Final = 1 << 20
"""Unsent response bytes above which no further request of the client is processed."""
BACKLOG: Final = 1 << 16
"""Bytes of requests that may be buffered behind the one being processed."""
SLICE_REQUESTS: Final = 16
"""Requests of one connection that are processed before other connections are scheduled."""
SLICE_BYTES: Final = 1 << 18
"""Bytes of requests and responses of such a time slice; the request that exceeds it is the last."""
SLICE_ELEMENTS: Final = 500
"""Elements of one large request (topics, partitions, resources) processed in one time slice."""
SLICE_DEADLINES: Final = 64
"""Deadlines that are handled before connections are scheduled."""
