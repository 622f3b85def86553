"""Handles what the parts of a node return: for another part, or for the caller.

`OUTPUTS` has all of them; a response with a negative token is one of this node to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .. import controller, raft, replication
from ..broker.handlers.forwarding import error_response
from ..protocol import ErrorCode
from .broker.controller_channel import Owner, Purpose, Response
from .effects import (
    BrokerRefused,
    BrokerStateChanged,
    DirectoryFailed,
    LogRecovered,
    LogSetAside,
    PartitionDamaged,
    Published,
    Respond,
    SegmentRolled,
)
from .parts import Parts

# -- the quorum


def on_quorum_send(parts: Parts, output: raft.Send, _now: float) -> None:
    """Send a request of the quorum, in its newest version."""
    _, newest = raft.VERSIONS[type(output.request).__name__]
    purpose = Purpose(Owner.QUORUM, output.correlation_id)
    parts.send(purpose, output.node, newest, output.request, to_controller=True)


def on_quorum_reply(parts: Parts, output: raft.Reply, now: float) -> None:
    """Respond to a request of the quorum."""
    _respond(parts, output.reply_to, output.response, now)


def on_leader_changed(parts: Parts, output: raft.LeaderChanged, now: float) -> None:
    """Go on with the requests that waited for a leader."""
    parts.channel.controller_changed(now)
    parts.effects.append(output)


def on_committed(parts: Parts, output: controller.Committed, now: float) -> None:
    """Give committed records to the controller and to the broker."""
    if parts.controller is not None:
        parts.queue.extend(parts.controller.handle(output, now))
    if parts.broker is not None:
        parts.queue.extend(parts.broker.committed(output, now))
    _maybe_snapshot(parts, now)


def on_snapshot_loaded(parts: Parts, output: controller.SnapshotLoaded, now: float) -> None:
    """Give a snapshot to the controller and to the broker."""
    if parts.controller is not None:
        parts.queue.extend(parts.controller.handle(output, now))
    if parts.broker is not None:
        parts.queue.extend(parts.broker.snapshot_loaded(output, now))


def _maybe_snapshot(parts: Parts, now: float) -> None:
    if parts.controller is not None:
        image = parts.controller.image
    elif parts.broker is not None:
        image = parts.broker.loader.image
    else:
        return
    parts.from_quorum(parts.raft.maybe_snapshot(image, now), now)


def on_leadership(parts: Parts, output: controller.BecameLeader, now: float) -> None:
    """Activate the controller, or deactivate it."""
    if parts.controller is not None:
        parts.queue.extend(parts.controller.handle(output, now))


def ignored(_parts: Parts, _output: object, _now: float) -> None:
    """Ignore what concerns nobody else in this node."""


# -- the controller


def on_append(parts: Parts, output: controller.Append, now: float) -> None:
    """Append what the controller decided."""
    parts.from_quorum(parts.raft.append(output.epoch, output.base_offset, output.records, now), now)


def on_controller_respond(parts: Parts, output: controller.Respond, now: float) -> None:
    """Respond to a request to the controller."""
    _respond(parts, output.request_id, output.response, now)


def on_controller_published(parts: Parts, output: controller.Published, _now: float) -> None:
    """Report the metadata, unless the broker of this node does."""
    if parts.broker is None and parts.controller is not None:
        parts.effects.append(Published(parts.controller.image, output.delta))


def on_renounce(parts: Parts, output: controller.Renounce, now: float) -> None:
    """Let another replica lead the quorum."""
    parts.from_quorum(parts.raft.resign(output.epoch, now), now)


def _respond(parts: Parts, token: int, body: Any, now: float) -> None:
    if token < 0:
        parts.queue.extend(parts.channel.handle(-token, body, now))
    else:
        parts.effects.append(Respond(token, body))


def on_channel_response(parts: Parts, output: Response, now: float) -> None:
    """Hand the response of the active controller to whom it is for."""
    owner, number = output.purpose
    if owner is Owner.CLIENT:
        # no active controller responded in time
        body = output.body or error_response(output.request, ErrorCode.REQUEST_TIMED_OUT)
        parts.effects.append(Respond(number, body))
    elif parts.broker is None:
        return
    elif owner is Owner.ASSIGNMENTS:
        parts.broker.assigned(output.body, now)
    elif owner is Owner.LIFECYCLE:
        parts.queue.extend(parts.broker.lifecycle_response(output.body, now))
    else:
        parts.queue.extend(parts.broker.response(number, output.body, now))


# -- the broker


def on_replica_send(parts: Parts, output: replication.SendRequest, now: float) -> None:
    """Send a request of the replica manager to a broker, or to the active controller."""
    purpose = Purpose(Owner.REPLICAS, output.token)
    if output.destination == replication.CONTROLLER:
        deadline = now + parts.config.request_timeout
        parts.channel.submit(purpose, output.body, output.version, deadline, now)
        return
    destination = parts.broker_at(output.destination)
    if destination is not None:
        parts.send(purpose, destination, output.version, output.body, to_controller=False)
    elif parts.broker is not None:
        parts.queue.extend(parts.broker.response(output.token, None, now))


def reported(parts: Parts, output: Any, _now: float) -> None:
    """Report to the caller."""
    parts.effects.append(output)


OUTPUTS: Final[Mapping[type, Callable[[Parts, Any, float], None]]] = {
    raft.Send: on_quorum_send,
    raft.Reply: on_quorum_reply,
    raft.LeaderChanged: on_leader_changed,
    raft.AppendFailed: ignored,
    raft.Fault: ignored,
    controller.Append: on_append,
    controller.BecameLeader: on_leadership,
    controller.Committed: on_committed,
    controller.Published: on_controller_published,
    controller.Renounce: on_renounce,
    controller.Resigned: on_leadership,
    controller.Respond: on_controller_respond,
    controller.SnapshotLoaded: on_snapshot_loaded,
    replication.AppendCompleted: reported,
    replication.CheckpointHighWatermarks: ignored,
    replication.HighWatermarkAdvanced: reported,
    replication.IsrChanged: reported,
    replication.ReplicaChanged: reported,
    replication.Respond: reported,
    replication.SendRequest: on_replica_send,
    BrokerRefused: reported,
    BrokerStateChanged: reported,
    DirectoryFailed: reported,
    LogRecovered: reported,
    LogSetAside: reported,
    PartitionDamaged: reported,
    Published: reported,
    Response: on_channel_response,
    SegmentRolled: reported,
}
"""What a part returns -> what becomes of it."""

LEAVES_DEADLINES: Final = frozenset({reported})
"""Those that change no deadline of the node."""
