"""The handlers of the APIs that are served: a module per API key, headed by its versions.

`handle` returns a response, delays it, or closes the connection; `error_response` builds a response
that has one error in every error field. `apis.py` says which module handles which API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, Protocol, cast

from ...messages.api_key import ApiKey
from ...primitives import Message
from ...protocol import ErrorCode
from ..apis import APIS, FORWARDING, Handled, Listener, handler_of, served_on
from ..broker import Broker
from ..network.connection import Connection
from ..request import HandlerResult, Request


class Handler(Protocol):
    """The interface of each module of this package."""

    def handle(
        self, broker: Broker, request: Request, body: Any, connection: Connection, now: float, /
    ) -> HandlerResult:
        """Process a request. body: an instance of the request class of the API."""

    def error_response(self, body: Any, error: ErrorCode, /) -> Message:
        """Build a response with the error."""


class Handlers(Mapping[ApiKey, Handler]):
    """API key -> its handler. Modules are imported at first use, so that a cluster starts faster.

    listener: the Fetch of a controller is that of its quorum, not of replicas of topics.
    """

    def __init__(self, listener: Listener) -> None:
        self._keys = served_on(listener)
        self._forwards = listener is Listener.CONTROLLER
        self._modules: dict[ApiKey, Handler] = {}

    def __getitem__(self, key: ApiKey) -> Handler:
        handler = self._modules.get(key)
        if handler is None:
            if key not in self._keys:
                raise KeyError(key)
            forwards = self._forwards and APIS[key].handled is Handled.REPLICAS
            module = import_module(f"{__name__}.{FORWARDING if forwards else handler_of(key)}")
            handler = self._modules[key] = cast(Handler, module)
        return handler

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


HANDLERS: Final = Handlers(Listener.BROKER | Listener.ZK_BROKER)
CONTROLLER_HANDLERS: Final = Handlers(Listener.CONTROLLER)
VERSIONED: Final = frozenset({ApiKey.FIND_COORDINATOR})
"""APIs whose body does not say where the error belongs: `error_response` gets the version, too."""


def guarded(
    handler: Handler, broker: Broker, request: Request, connection: Connection, now: float
) -> HandlerResult:
    """Let a handler process what the sender of a request is authorized for."""
    from .. import guards  # imported only with an authorizer

    def process(allowed: Request) -> HandlerResult:
        return handler.handle(broker, allowed, allowed.body, connection, now)

    return guards.handle(process, broker, request, connection)


def error_response(
    handlers: Mapping[ApiKey, Handler], request: Request, error: ErrorCode
) -> Message:
    """Build the response with an error to a request of an API that is served."""
    build: Any = handlers[request.api_key].error_response
    if request.api_key in VERSIONED:
        return cast(Message, build(request.body, error, request.version))
    return cast(Message, build(request.body, error))
