"""Where the leaders of partitions are that a member requested from the wrong broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from ...metadata import TopicIdPartition
from ...primitives import Structure
from ...protocol import ErrorCode
from ..metadata_cache import MetadataCache

E = ErrorCode
MOVED: Final = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH})
N = TypeVar("N", bound=Structure)


def name_leaders(
    metadata: MetadataCache,
    partitions: Iterable[tuple[TopicIdPartition, Any]],
    endpoint: Callable[..., N],
) -> list[N]:
    """Set the current leaders of partitions that have moved; return where these listen.

    partitions: those of a response. endpoint: the class of its node endpoints.
    """
    nodes: dict[int, N] = {}
    for key, data in partitions:
        topic = metadata.topics.by_id(key.topic_id)
        partition = None if topic is None else topic.partition(key.partition)
        if data.error_code not in MOVED or partition is None:
            continue
        data.current_leader.leader_id = partition.leader_id
        data.current_leader.leader_epoch = partition.leader_epoch
        listening = metadata.endpoint(partition.leader_id)
        if listening is not None:
            node_id, host, port, rack = listening
            nodes[node_id] = endpoint(node_id=node_id, host=host, port=port, rack=rack)
    return list(nodes.values())
