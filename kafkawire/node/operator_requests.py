"""Requests of a cluster's operator in the same process: each has a connection of its own.

They are requests between brokers; so they are not reported, and no fault meets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..broker import Close, Disconnected, Received, Reply
from ..broker.request import NODE_CLIENT_ID
from ..errors import UnsupportedVersion
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..primitives import Message
from ..protocol import decode_frame, encode_frame
from .front.front import Accepted, NodeFront
from .links import HOST, OfConnection, Queue

CLIENT_ID: Final = f"{NODE_CLIENT_ID}operator"


class OperatorRequest(NamedTuple):
    """A request of the operator. number: chosen by the caller, never reused."""

    number: int
    body: Message


class OperatorResponse(NamedTuple):
    """The response to a request of the operator; None if the broker that had it has ended."""

    number: int
    body: Message | None


@dataclass(slots=True)
class _InFlight:
    """A request that has no response yet."""

    number: int
    node_id: int
    api: tuple[int, int]
    """Its API key and version."""


class OperatorRequests:
    """The requests that have no response yet. numbers: of connections. queue: what brokers get."""

    def __init__(self, numbers: Iterator[int], queue: Queue) -> None:
        self._numbers = numbers
        self._queue = queue
        self._in_flight: dict[int, _InFlight] = {}

    def __contains__(self, connection: object) -> bool:
        return connection in self._in_flight

    def send(self, request: OperatorRequest, front: NodeFront) -> None:
        """Send a request to a broker, in the newest version that it offers brokers.

        Raises UnsupportedVersion if it does not offer the API.
        """
        key = ApiKey(REGISTRY.get(type(request.body).__name__).api_key or 0)
        offered = front.broker.broker.apis.served.get(key)
        if offered is None:
            raise UnsupportedVersion(f"brokers do not offer {key.name}")
        config, connection = front.config, next(self._numbers)
        self._in_flight[connection] = _InFlight(request.number, config.node_id, (key, offered.last))
        frame = encode_frame(request.body, offered.last, 0, client_id=CLIENT_ID)
        for event in (
            Accepted(config.inter_broker_listener, connection, HOST),
            Received(connection, frame),
        ):
            self._queue.append((config.node_id, event))

    def handle(self, effect: OfConnection) -> list[OperatorResponse]:
        """Handle what a broker does with a connection; return the response."""
        if not isinstance(effect, Reply | Close):
            return []  # it sends nothing more
        request = self._in_flight.pop(effect.connection)
        self._queue.append((request.node_id, Disconnected(effect.connection)))
        body = None
        if isinstance(effect, Reply):
            body = decode_frame(effect.data, response_to=request.api).body
        return [OperatorResponse(request.number, body)]

    def end(self, node_id: int) -> list[OperatorResponse]:
        """Return responses for what a broker had when it ended."""
        ended = [each for each, request in self._in_flight.items() if request.node_id == node_id]
        return [OperatorResponse(self._in_flight.pop(each).number, None) for each in ended]
