"""The APIs of a node that a cluster in memory does not serve: its machines respond to them.

Law: what is not in these tables is handled as in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...broker.broker import Broker
from ...broker.handlers import HANDLERS, Handler
from ...broker.network.connection import Connection
from ...broker.releases import Offer, Versions, listed, offered
from ...broker.request import HandlerResult, Request
from ...controller.operations.refusals import refusal
from ...errors import RemoteProtocolError
from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...messages.envelope_request import EnvelopeRequest
from ...messages.envelope_response import EnvelopeResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ...raft import VERSIONS as QUORUM_VERSIONS
from .descriptions import DESCRIBED
from .envelope import FORWARDED, OF_CLIENTS
from .transactions.responses import ERRORS

RELEASE: Final = "4.4"
CONTROLLERS: Final = OF_CLIENTS | {
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.ENVELOPE,
    *(ApiKey(REGISTRY.get(name).api_key or 0) for name in QUORUM_VERSIONS),
} - {ApiKey.API_VERSIONS}
"""What the machines of a controller respond to."""


TRANSACTIONS: Final[Mapping[ApiKey, Versions]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: Versions(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: Versions(0, 4),
    ApiKey.END_TXN: Versions(0, 5),
    ApiKey.WRITE_TXN_MARKERS: Versions(1, 2),
    ApiKey.TXN_OFFSET_COMMIT: Versions(0, 5),
    ApiKey.DESCRIBE_PRODUCERS: Versions(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Versions(0, 0),
    ApiKey.LIST_TRANSACTIONS: Versions(0, 1),
}
"""The APIs of transactions, in the versions of that release.

Not ListTransactions 2: its pattern is a regular expression, which clients could make take forever.
"""
OF_MACHINES: Final = FORWARDED | {ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_LOG_DIRS}
"""What the machines of a broker respond to, by themselves or through the controller."""


class Forwarded:
    """The handler of an API that the machines respond to."""

    def handle(
        self, broker: Broker, request: Request, _body: Message, _connection: Connection, now: float
    ) -> HandlerResult:
        """Hand a request to the machines."""
        return broker.controller.forward(request, now)

    def error_response(self, body: Message, error: ErrorCode) -> Message:
        """Build a response with the error; close the connection where an API has none."""
        if isinstance(body, EnvelopeRequest):
            return EnvelopeResponse(error_code=error)
        try:
            return refusal(body, error)
        except KeyError:
            raise RemoteProtocolError(f"{type(body).__name__}: {error.name}") from None


class Transactional:
    """The handler of an API of transactions."""

    def __init__(self, key: ApiKey) -> None:
        self._key = key

    def handle(
        self, broker: Broker, request: Request, _body: Message, _connection: Connection, now: float
    ) -> HandlerResult:
        """Hand a request to the transactions of the node."""
        assert broker.transactions is not None
        return broker.transactions.handle(request, now)

    def error_response(self, body: Message, error: ErrorCode) -> Message:
        """Build a response with the error."""
        return ERRORS[self._key](body, error)


FORWARD: Final = Forwarded()


class MachineHandlers(dict[ApiKey, Handler]):
    """The handlers of APIs that machines respond to; those of the others as in memory."""

    def __missing__(self, key: ApiKey) -> Handler:
        return HANDLERS[key]


BROKER_HANDLERS: Final = MachineHandlers(
    dict.fromkeys(OF_MACHINES, FORWARD)
    | dict(DESCRIBED)
    | {key: Transactional(key) for key in TRANSACTIONS}
)
CONTROLLER_HANDLERS: Final = MachineHandlers(dict.fromkeys(CONTROLLERS, FORWARD))


def versions(key: ApiKey) -> Versions:
    """Return the versions of an API that machines respond to."""
    info = REGISTRY.request(key)
    assert info is not None
    first, last = QUORUM_VERSIONS.get(info.name, (info.first, info.last))
    return Versions(first, last)


def broker_offer() -> tuple[Offer, Offer]:
    """Return what is served on the listener of clients, and what ApiVersions lists there."""
    more = {key: versions(key) for key in (*OF_MACHINES, *DESCRIBED)} | dict(TRANSACTIONS)
    return {**offered(RELEASE), **more}, {**listed(RELEASE), **more}


def controller_offer() -> Offer:
    """Return what is served on the listener of controllers."""
    own = {key: versions(key) for key in CONTROLLERS}
    return {**own, ApiKey.API_VERSIONS: offered(RELEASE)[ApiKey.API_VERSIONS]}
