"""Hands requests and responses to the part of the node that they are for.

The listener decides: the quorum and the controller are behind the listener of controllers,
replicas behind those of brokers, which forward requests of clients to the active controller.
"""

from __future__ import annotations

from typing import Final

from .. import raft
from ..broker.apis import FORWARDED
from ..errors import LocalProtocolError
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..messages.delete_records_request import DeleteRecordsRequest
from ..messages.fetch_request import FetchRequest
from ..messages.list_offsets_request import ListOffsetsRequest
from ..messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ..messages.produce_request import ProduceRequest
from ..primitives import Message
from ..raft.client import REQUESTS as QUORUM_REQUESTS
from .broker import log_dirs
from .broker.controller_channel import Owner, Pending, Purpose
from .effects import Destination
from .events import RequestReceived, ResponseReceived
from .parts import Parts
from .quorum.controller_server import SERVED

TO_CONTROLLER: Final = frozenset(
    REGISTRY.load(info.name)
    for info in map(
        REGISTRY.request,
        {*FORWARDED, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.BROKER_HEARTBEAT, ApiKey.ENVELOPE},
    )
    if info is not None
)
"""Requests that a broker sends to the controller or the quorum, for its clients or for itself."""
REPLICATED: Final = frozenset(
    {
        DeleteRecordsRequest,
        FetchRequest,
        ListOffsetsRequest,
        OffsetForLeaderEpochRequest,
        ProduceRequest,
    }
)


def on_request(parts: Parts, event: RequestReceived, now: float) -> None:
    """Handle a request. Raises LocalProtocolError for one that the listener does not serve."""
    if event.listener == parts.config.controller_listener:
        served = _to_controllers(parts, event.token, event.version, event.body, now)
    else:
        served = _to_broker(parts, event, now)
    if not served:
        name = type(event.body).__name__
        raise LocalProtocolError(f"{name} is not a request to listener {event.listener!r}")


def _to_controllers(parts: Parts, token: int, version: int, body: Message, now: float) -> bool:
    """Let the quorum or the controller of this node handle a request."""
    if type(body) in QUORUM_REQUESTS:
        received = raft.RequestReceived(token, body, version)
        parts.from_quorum(parts.raft.handle(received, now), now)
        return True
    if parts.controller is None or type(body) not in SERVED:
        return False
    parts.queue.extend(parts.controller.request(token, version, body, now))
    return True


def _to_broker(parts: Parts, event: RequestReceived, now: float) -> bool:
    if parts.broker is None:
        return False
    if type(event.body) in TO_CONTROLLER:
        purpose = Purpose(Owner.CLIENT, event.token)
        deadline = now + parts.config.request_timeout
        parts.channel.submit(purpose, event.body, event.version, deadline, now)
        return True
    if type(event.body) not in REPLICATED and type(event.body) not in log_dirs.OPERATIONS:
        return False
    parts.queue.extend(parts.broker.request(event.token, event.version, event.body, now))
    return True


def on_response(parts: Parts, event: ResponseReceived, now: float) -> None:
    """Handle a response, or that there is none."""
    purpose = parts.complete(event.token)
    if purpose is None:
        return
    owner, number = purpose
    body = event.body
    if owner is Owner.QUORUM:
        failed = raft.RequestFailed(number)
        done = failed if body is None else raft.ResponseReceived(number, body)
        parts.from_quorum(parts.raft.handle(done, now), now)
    elif owner is Owner.REPLICAS and parts.broker is not None:
        parts.queue.extend(parts.broker.response(number, body, now))
    elif owner is Owner.CHANNEL:
        parts.queue.extend(parts.channel.handle(number, body, now))


def send_pending(
    parts: Parts, active: Destination, number: int, pending: Pending, now: float
) -> None:
    """Send a request of the channel, or hand it to the controller of this node."""
    if active.id != parts.config.node_id:
        purpose = Purpose(Owner.CHANNEL, number)
        parts.send(purpose, active, pending.version, pending.body, to_controller=True)
        return
    _to_controllers(parts, -number, pending.version, pending.body, now)
