"""Requests that the machines of a node handle, for its clients or for itself, by their tokens.

Each gets one response, which goes to the client as its plan says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ...controller.operations.delegation_tokens import Principal
from ...errors import EncodeError
from ...messages.api_key import ApiKey
from ...primitives import Message
from ..request import DELAYED, HandlerResult, Request
from .envelope import (
    MUTATIONS,
    WITH_PRINCIPAL,
    EnclosedPlan,
    EnvelopePlan,
    enclosed,
    names_principal,
    opened,
)
from .repairs import drop_unknown_tags

B = TypeVar("B", bound=Message)
M = TypeVar("M", bound=Message, contravariant=True)
R = TypeVar("R", bound=Message, covariant=True)


class Plan(Protocol[M, R]):
    """What becomes of a response."""

    def response(self, body: M, now: float, /) -> R:
        """Return what the client gets."""


class AsItIs(Generic[B]):
    """The client gets the response as it is."""

    def response(self, body: B, _now: float) -> B:
        """Return the response."""
        return body


AnyPlan = Plan[Any, Message]
Submit = Callable[[Request | None, Message, AnyPlan | None, float], None]
"""(client's request, what the machines get, plan, now). None: a request of the node itself."""


class Submitted(NamedTuple):
    """A request that the machines handle."""

    request: Request | None
    body: Message
    plan: AnyPlan | None


class ForwardingManager:
    """The way to the active controller. submit: hands requests to the node."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit

    def forward(
        self,
        request: Request,
        now: float,
        instead: Message | None = None,
        plan: AnyPlan | None = None,
    ) -> HandlerResult:
        """Let the controller decide on a request, or on the one in an Envelope.

        instead: what the controller gets. plan: makes the response of that of the controller.
        """
        if request.api_key is ApiKey.ENVELOPE:
            inner = opened(request)
            if isinstance(inner, Message):
                return inner
            names_client = inner.api_key in MUTATIONS and names_principal(request.body)
            if inner.api_key in WITH_PRINCIPAL or names_client:
                self._submit(request, request.body, AsItIs[Message](), now)
                return DELAYED
            request, plan = inner, EnvelopePlan(inner)
        body = instead or request.body
        if type(body) is type(request.body):
            make_encodable(body, request.version)
        self._submit(request, body, plan or AsItIs[Message](), now)
        return DELAYED

    def forward_for(self, principal: Principal, request: Request, now: float) -> HandlerResult:
        """Let the controller decide on a request that it has to know the principal of."""
        make_encodable(request.body, request.version)
        self._submit(request, enclosed(request, principal), EnclosedPlan(request), now)
        return DELAYED


def make_encodable(body: Message, version: int) -> None:
    """Drop unknown tagged fields of a request if they are such that nobody can write them.

    They are of no use to a controller; a request that cannot be sent would wait for its deadline.
    """
    try:
        body.encode(version)
    except EncodeError:
        drop_unknown_tags(body, version)
