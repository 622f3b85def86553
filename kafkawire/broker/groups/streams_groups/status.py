"""The conditions of a group in the response to a heartbeat; the texts are Kafka's."""

from __future__ import annotations

from typing import Final

from .configured import ConfiguredTopology, Status, StatusCode
from .members import Member, StreamsHeartbeat
from .metadata import StreamsGroupMetadata

TAGS_FROM: Final = 1
"""The version of StreamsGroupHeartbeat from which on members know MISSING_CLIENT_TAGS."""


def stale_status(group: StreamsGroupMetadata, member: Member) -> list[Status]:
    """Return whether the topology of a member is older than that of its group."""
    topology = group.topology
    if topology is None or member.topology_epoch >= topology.epoch:
        return []
    detail = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology "
        f"epoch {topology.epoch}."
    )
    return [Status(StatusCode.STALE_TOPOLOGY, detail)]


def delayed(reason: str) -> Status:
    """Return that tasks are assigned later. reason: the setting."""
    detail = f"Assignment delayed due to the configured {reason}."
    return Status(StatusCode.ASSIGNMENT_DELAYED, detail)


def lasting_status(
    group: StreamsGroupMetadata,
    request: StreamsHeartbeat,
    topology: ConfiguredTopology,
    member: Member,
) -> list[Status]:
    """Return what holds until topics, the member, or the group change."""
    status = [] if topology.problem is None else [topology.problem]
    if group.shut_down_by is not None:
        detail = (
            f"Streams group member {group.shut_down_by} encountered a fatal error and requested "
            "a shutdown for the entire application."
        )
        status.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
    tags = {key for key, _ in member.client_tags}
    missing = [tag for tag in group.config.rack_tags if tag not in tags]
    if missing and request.version >= TAGS_FROM:
        detail = (
            "Missing required client tags for rack-aware standby assignment: "
            f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams "
            "config."
        )
        status.append(Status(StatusCode.MISSING_CLIENT_TAGS, detail))
    return status
