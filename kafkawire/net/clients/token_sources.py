"""Provides tokens of SASL OAUTHBEARER from a file, or from a server that issues them.

A file is read for each token, so a token that takes its place is used; that of a server until most
of its lifetime has passed. No token and no secret is in an error.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from ...client.network.oauthbearer import OAuthBearerToken, TokenProvider
from ...client.security import ENDPOINT, TokenEndpoint, TokenSource
from ...errors import LocalProtocolError
from ...sasl.endpoints import FileEndpoint
from ..sockets.http import FINAL, EndpointFailed, Timeouts, read

FRESH: Final = 0.8
"""The part of a token's lifetime for which it is used, as in Java's client."""
LONGEST_LIFETIME_S: Final = 10 * 365 * 86_400
FORM: Final = "application/x-www-form-urlencoded"


def provider_of(source: TokenSource | None) -> TokenProvider | None:
    """Return what provides the tokens of a source."""
    if not isinstance(source, TokenEndpoint):
        return source
    if isinstance(source.endpoint, FileEndpoint):
        return FileTokens(source.endpoint)
    return IssuedTokens(source)


class FileTokens:
    """Provides the token in a file."""

    def __init__(self, file: FileEndpoint) -> None:
        self._file = file

    async def __call__(self) -> OAuthBearerToken:
        try:
            content = await read(self._file)
            return OAuthBearerToken(content.decode("ascii", "replace").strip())
        except (EndpointFailed, LocalProtocolError) as error:
            raise EndpointFailed(f"{ENDPOINT}: {self._file.path}: {error}") from None


class IssuedTokens:
    """Provides the tokens that a server issues for client credentials.

    A request that fails is sent again, as Java's client does, unless its status is one of `FINAL`.
    wall_clock: returns seconds since the epoch; clock: seconds. sleep: waits so many.
    """

    def __init__(
        self,
        source: TokenEndpoint,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._wall_clock = wall_clock
        self._clock = clock
        self._sleep = sleep
        self._token: OAuthBearerToken | None = None
        self._fresh_until = 0.0
        self._request = asyncio.Lock()

    async def __call__(self) -> OAuthBearerToken:
        async with self._request:
            if self._token is None or self._wall_clock() >= self._fresh_until:
                self._token = await self._issued()
            return self._token

    async def _issued(self) -> OAuthBearerToken:
        """Request a token (RFC 6749, section 4.4)."""
        source = self._source
        form = {"grant_type": "client_credentials"}
        if source.scope:
            form["scope"] = source.scope
        basic = b64encode(f"{source.client_id}:{source.client_secret}".encode()).decode()
        fields = {"Content-Type": FORM, "Authorization": f"Basic {basic}"}
        try:
            content = await self._response(fields, urlencode(form).encode())
            value, lifetime_s = _token(content)
            now = self._wall_clock()
            token = OAuthBearerToken(value, None if lifetime_s is None else now + lifetime_s)
        except (EndpointFailed, LocalProtocolError) as error:
            raise EndpointFailed(f"{ENDPOINT}: {error}") from None
        self._fresh_until = now + FRESH * (lifetime_s or 0)
        return token

    async def _response(self, fields: Mapping[str, str], body: bytes) -> bytes:
        """Send a request, again and again where that may help; return the response."""
        times = self._source.times
        timeouts = Timeouts(times.connect_s, times.read_s)
        delay_s, end = times.backoff_s, self._clock() + times.longest_backoff_s
        while True:
            try:
                return await read(self._source.endpoint, fields, body, timeouts)
            except EndpointFailed as error:
                wait_s = min(delay_s, end - self._clock())
                if error.status in FINAL or wait_s <= 0:
                    raise
            await self._sleep(wait_s)
            delay_s *= 2


def _token(content: bytes) -> tuple[str, float | None]:
    """Return the token in a response and its lifetime (RFC 6749, section 5.1)."""
    try:
        response: Any = json.loads(content)
        value = response["access_token"]
        lifetime_s = response.get("expires_in")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise EndpointFailed("expected JSON with access_token") from None
    is_number = isinstance(lifetime_s, int | float) and 0 < lifetime_s <= LONGEST_LIFETIME_S
    if not isinstance(value, str):
        raise EndpointFailed("access_token is not a text")
    return value, float(lifetime_s) if is_number else None
