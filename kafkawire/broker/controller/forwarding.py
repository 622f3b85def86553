"""The way from the brokers of a cluster in memory to its controller: a call.

Law: the controller decides at once, in the time slices of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

from ...messages.api_key import ApiKey
from ..request import HandlerResult, Request
from .controller import Controller

Operation = Callable[[Controller, Request, Any, float], HandlerResult]


class LocalForwarding:
    """`ForwardingManager` of a cluster in memory."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def forward(self, request: Request, now: float) -> HandlerResult:
        """Let the controller decide on a request."""
        return _operation(request.api_key)(self._controller, request, request.body, now)


@cache
def _operation(key: ApiKey) -> Operation:
    """Return the function of an API, from the module of its name, imported at first use."""
    name = key.name.lower()
    return cast(Operation, getattr(import_module(f"{__package__}.operations.{name}"), name))
