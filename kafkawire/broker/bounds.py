"""How much of each thing a cluster holds, where Kafka has no configuration for it.

Law: whatever a client can make grow has a bound: a key of Kafka's (`configs`) or one of these; what
would exceed it fails with an error, or takes the place of what was used longest ago.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """The bounds of one cluster.

    partitions: of all topics. partitions_per_request: that one CreateTopics or CreatePartitions may
    create (Kafka's MAX_PARTITIONS_PER_BATCH). partitions_per_metadata: after which one Metadata
    creates no more topics; the others get LEADER_NOT_AVAILABLE, and clients retry. groups: of all
    coordinators. members: of all groups, with clients that were given an id. group_bytes: of their
    metadata and assignments. committed_offsets: of all groups. session_partitions: of one fetch
    session. producers: producer ids that one partition remembers. transactional_ids: that the
    cluster remembers. buffered_bytes: of requests that are incomplete or wait, all connections
    together, where `queued.max.request.bytes` is -1.
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
    buffered_bytes: int = 1 << 30


DEFAULT_BOUNDS: Final = Bounds()

UNSENT: Final = 1 << 20
"""Bytes of responses after which a client must read before its next request is taken."""
BACKLOG: Final = 1 << 16
"""Bytes of requests that may wait behind one that is in work."""
SLICE_REQUESTS: Final = 16
"""Requests of one connection that are taken before other connections have their turn."""
SLICE_BYTES: Final = 1 << 18
"""Bytes of requests and responses of such a turn; the request that exceeds it is the last."""
SLICE_ELEMENTS: Final = 500
"""Elements of one large request (topics, partitions, resources) that are served in one turn."""
SLICE_DEADLINES: Final = 64
"""Deadlines that are handled before connections have their turn."""
