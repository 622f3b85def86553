"""The handlers of the APIs that are served: one module per API key, with a table of its versions.

Law: `handle` returns a response, delays it, or closes the connection; `error_response` builds a
response that has one error in every error field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, Protocol, cast

from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import HandlerResult, Request
from ..zookeeper.versions import KEYS


class Handler(Protocol):
    """The interface of each module of this package."""

    def handle(
        self, broker: Broker, request: Request, body: Any, connection: Connection, now: float, /
    ) -> HandlerResult:
        """Process a request. body: an instance of the request class of the API."""

    def error_response(self, body: Any, error: ErrorCode, /) -> Message:
        """Build a response with the error."""


SERVED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)
"""The API keys that are served, each by the module of its name."""
BETWEEN_BROKERS: Final = KEYS
"""Those that only brokers of a cluster with ZooKeeper serve, by modules of `zookeeper`."""


class Handlers(Mapping[ApiKey, Handler]):
    """API key -> its module, imported at first use, so that a cluster starts faster.

    Those of `BETWEEN_BROKERS` are found, but not listed.
    """

    def __init__(self) -> None:
        self._modules: dict[ApiKey, Handler] = {}

    def __getitem__(self, key: ApiKey) -> Handler:
        found = self._modules.get(key)
        if found is None:
            if key not in SERVED and key not in BETWEEN_BROKERS:
                raise KeyError(key)
            package = f"{__name__}.zookeeper" if key in BETWEEN_BROKERS else __name__
            module = import_module(f"{package}.{key.name.lower()}")
            found = self._modules[key] = cast(Handler, module)
        return found

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(SERVED)

    def __len__(self) -> int:
        return len(SERVED)


HANDLERS: Final = Handlers()


def error_response(request: Request, error: ErrorCode) -> Message:
    """Build the response with an error to a request of an API that is served."""
    return HANDLERS[request.api_key].error_response(request.body, error)
