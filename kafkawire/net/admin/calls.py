"""Awaits the calls of an admin client.

A broker may still process a cancelled call; nothing else is left of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Final, Protocol, TypeVar, assert_never

from ...client.admin.calls import AdminCalls, Call, CallCompleted, CallFailed, LeaderOf
from ...client.cluster import ClusterView
from ...client.config import Values, backoff, client_metrics, seconds
from ...client.failures import BrokerError, ClientClosed, ClientError, ClientFailed, RequestFailed
from ...client.metrics import MetricName
from ...client.metrics.tables import ADMIN
from ...client.requests import (
    Coordinator,
    CoordinatorKind,
    Destination,
    Reason,
    Varying,
    error_of,
)
from ...messages.api_key import ApiKey
from ...primitives import Message
from ..clients.driver import Driver, DriverFailed
from ..clients.open_client import open_client
from ..measured import measured

M = TypeVar("M", bound=Message)
R = TypeVar("R")


class GroupRow(Protocol):
    """The part of a response that is about one group."""

    error_code: int
    error_message: str | None


G = TypeVar("G", bound=GroupRow)

ANY_VERSION: Final = 0x7FFF
"""No limit: the newest version that both sides support."""


class CallRunner:
    """Runs calls on the running loop."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._metrics = metrics = client_metrics(values, "admin-client", ADMIN)
        self._tokens = count()
        self._waiting: dict[Hashable, asyncio.Future[Message]] = {}
        self._failure: ClientFailed | None = None
        self._driver: Driver[Call, CallCompleted | CallFailed] = open_client(
            values, self._owners, self._on_effect, metrics=metrics
        )
        self._timeout_s = seconds(values, "default.api.timeout.ms")

    async def call(
        self,
        to: Destination | LeaderOf,
        api: ApiKey,
        response_type: type[M],
        make: Callable[[int], Message],
        codes: Callable[[M], Iterable[int]],
        *,
        lowest: int = 0,
        highest: int = ANY_VERSION,
    ) -> M:
        """Send the request that `make(version)` makes; return the response, errors included.

        Raises RequestFailed, and BrokerError if the coordinator lookup failed.
        """

        def error_codes(message: Message) -> Iterable[int]:
            assert isinstance(message, response_type)
            return codes(message)

        if self._failure is not None:
            raise self._failure
        token = next(self._tokens)
        future: asyncio.Future[Message] = self._driver.loop.create_future()
        self._waiting[token] = future
        body = Varying(make, lowest, highest)
        try:
            self._driver.handle(Call(token, to, api, body, error_codes, self._timeout_s))
            message = await future
        finally:
            self._waiting.pop(token, None)
        assert isinstance(message, response_type)
        return message

    def metrics(self) -> dict[MetricName, float]:
        """Return what the client measures."""
        return measured(self._metrics, self._driver)

    async def close(self) -> None:
        """Close; pending calls fail."""
        await self._driver.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClientClosed("the admin client"))

    def _owners(self, view: ClusterView) -> Mapping[str, AdminCalls]:
        machine = AdminCalls(
            view,
            owner="admin",
            attempt_s=seconds(self._values, "request.timeout.ms"),
            backoff=backoff(self._values, "retry"),
            rng=random.random,
        )
        return {"admin": machine}

    def _on_effect(self, effect: CallCompleted | CallFailed | DriverFailed) -> None:
        match effect:
            case CallCompleted(token=token, message=message):
                future = self._waiting.get(token)
                if future is not None and not future.done():
                    future.set_result(message)
            case CallFailed(token=token):
                future = self._waiting.get(token)
                if future is not None and not future.done():
                    future.set_exception(raised(effect))
            case DriverFailed(error=error):
                self._failure = error
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)
            case _:
                assert_never(effect)


def raised(effect: CallFailed) -> ClientError:
    """Make the exception for a call without a response."""
    if effect.reason is Reason.CLOSED:
        return ClientClosed("the admin client")
    if effect.code:
        return BrokerError(effect.code, effect.detail)
    return RequestFailed(effect.reason, effect.detail)


async def group_row(
    calls: CallRunner,
    group_id: str,
    api: ApiKey,
    response_type: type[M],
    make: Callable[[int], Message],
    rows: Callable[[M], Sequence[G]],
) -> G:
    """Send a request about one group to its coordinator; return its row, errors included."""
    response = await calls.call(
        coordinator(group_id),
        api,
        response_type,
        make,
        lambda response: [row.error_code for row in rows(response)],
    )
    return only(rows(response), f"group {group_id}")


def coordinator(group_id: str) -> Coordinator:
    """Return the destination of a group's requests."""
    return Coordinator(CoordinatorKind.GROUP, group_id)


def check_group(row: GroupRow, group_id: str) -> None:
    """Raise BrokerError if the row of a group has an error."""
    check(row.error_code, f"group {group_id}", row.error_message)


def only(rows: Iterable[R], what: str) -> R:
    """Return the only row of a response. Raises RequestFailed if there is none, or another."""
    matching = list(rows)
    if len(matching) != 1:
        raise RequestFailed(Reason.INVALID_RESPONSE, f"{len(matching)} results for {what}")
    return matching[0]


def check(code: int, what: str, detail: str | None = None) -> None:
    """Raise BrokerError unless the code is NONE."""
    if code:
        raise BrokerError(error_of(code), f"{what}: {detail}" if detail else what)
