"""What a heartbeat would make of the topology of its group: nothing is changed yet."""

from __future__ import annotations

from typing import NamedTuple

from ....protocol import ErrorCode
from ..consumer_groups.checks import Refusal
from ..topics import Topics, metadata_hash
from .checks import tasks_refusal
from .configured import ConfiguredTopology, InvalidTopology, configured
from .members import StreamsHeartbeat
from .metadata import StreamsGroupMetadata
from .topology import Topology

E = ErrorCode


class Plan(NamedTuple):
    """The topology, and its topics as they are now. metadata_hash: of these topics."""

    topology: Topology
    configured: ConfiguredTopology
    metadata_hash: int


def plan_of(
    group: StreamsGroupMetadata, request: StreamsHeartbeat, topics: Topics
) -> Plan | Refusal:
    """Return the plan of a heartbeat, or why its topology or its tasks are refused."""
    topology = _topology(group.topology, request.topology)
    if isinstance(topology, Refusal):
        return topology
    hashed, current = group.metadata_hash, group.configured
    if current is None or topics.version != group.hashed:
        hashed = metadata_hash(topics, topology.required_topics)
    if current is None or hashed != group.metadata_hash:
        try:
            current = configured(topology, topics)
        except InvalidTopology as invalid:
            return Refusal(E.STREAMS_INVALID_TOPOLOGY, str(invalid))
    return tasks_refusal(current, request) or Plan(topology, current, hashed)


def _topology(mine: Topology | None, sent: Topology | None) -> Topology | Refusal:
    """Return the topology of a group after a heartbeat. mine: before. sent: in the heartbeat."""
    if mine is None:
        assert sent is not None, "the first member has a topology"
        ids = {each.subtopology_id for each in sent.subtopologies}
        if sent.epoch < 0 or len(ids) < len(sent.subtopologies):
            message = "The epoch of a topology is not negative, and its subtopologies differ."
            return Refusal(E.STREAMS_INVALID_TOPOLOGY, message)
        return sent
    if sent is None or sent.epoch < mine.epoch or sent.is_same_as(mine):
        return mine
    return Refusal(E.INVALID_REQUEST, "Topology updates are not supported yet.")
