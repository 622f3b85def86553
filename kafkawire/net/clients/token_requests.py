"""Calls the token providers of SASL OAUTHBEARER for the connections of a client, or of a node.

Each request ends in TokenReceived or TokenFailed, unless its connection closes first; a
provider that is a plain function runs in a thread, so that the loop does not wait for it.

    RequestToken ─▶ provider() ─▶ OAuthBearerToken ─▶ TokenReceived
                               └▶ exception, no token, expired token ─▶ TokenFailed
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ...client.network.oauthbearer import OAuthBearerToken, TokenProvider
from ...client.network.transport import RequestToken, ShellEvent, TokenFailed, TokenReceived
from ...display import printable
from ..sockets.http import EndpointFailed

FAILED: Final = "the token provider (sasl.oauth.token.provider)"


class TokenRequests:
    """The calls of providers that have not returned, by connection.

    handle: called with events. wall_clock: returns seconds since the epoch.
    """

    def __init__(
        self,
        handle: Callable[[ShellEvent], None],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._handle = handle
        self._wall_clock = wall_clock
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def start(self, request: RequestToken, provider: TokenProvider) -> None:
        """Call a provider for a connection."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._request(request.connection, provider))
        self._tasks[request.connection] = task

    def cancel(self, connection: int) -> None:
        """Cancel the call for a connection that has closed; a plain function runs to its end."""
        task = self._tasks.pop(connection, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Cancel all calls; no event follows."""
        for connection in list(self._tasks):
            self.cancel(connection)

    async def _request(self, connection: int, provider: TokenProvider) -> None:
        event = await self._outcome(connection, provider)
        del self._tasks[connection]
        self._handle(event)

    async def _outcome(
        self, connection: int, provider: TokenProvider
    ) -> TokenReceived | TokenFailed:
        try:
            token = await _call(provider)
        except EndpointFailed as error:
            return TokenFailed(connection, printable(str(error)))
        except Exception as error:  # noqa: BLE001 - of the user's function: for the caller's error
            detail = f"{FAILED} failed: {type(error).__name__}: {error}"
            return TokenFailed(connection, printable(detail))
        if not isinstance(token, OAuthBearerToken):
            kind = type(token).__name__
            return TokenFailed(connection, f"{FAILED} returned {kind}, expected OAuthBearerToken")
        if token.expires_at is not None and token.expires_at <= self._wall_clock():
            return TokenFailed(connection, f"{FAILED} returned a token that has expired")
        return TokenReceived(connection, token)


async def _call(provider: TokenProvider) -> object:
    """Call a function in a thread, a coroutine function in the loop."""
    if inspect.iscoroutinefunction(provider) or inspect.iscoroutinefunction(
        type(provider).__call__
    ):
        result = provider()
    else:
        result = await asyncio.to_thread(provider)
    return await result if isinstance(result, Awaitable) else result
