"""Fetches the keys of signed tokens from servers, as Kafka does.

That is when the broker starts, at an interval, and for a token whose key is not in the set. While a
set cannot be fetched, the keys before are used. The event loop waits for nothing of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...broker.security.listener_tokens import EndpointSettings, key_endpoints
from ...broker.security.oauthbearer import JWKS_URL
from ...broker.security.signed_tokens import public_keys

if TYPE_CHECKING:
    from joserfc.jwk import Key

LOG: Final = logging.getLogger("kafkawire.node")
MISSED_S: Final = 60.0
"""Seconds until the same id of a key may lead to a fetch again."""
MOST_MISSED: Final = 16
"""Ids of keys for which that is so."""
LONGEST_KEY_ID: Final = 1000
"""Characters of an id that may lead to a fetch."""


class KeyEndpoint:
    """The keys that a server has. clock: returns seconds."""

    def __init__(
        self, settings: EndpointSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: Sequence[Key] = ()
        self._missed: dict[str, float] = {}
        """Id -> when it may lead to a fetch again."""
        self._wanted = asyncio.Event()

    def current(self) -> Sequence[Key]:
        """Return the keys that were fetched last. Raises ValueError before."""
        if not self._keys:
            raise ValueError("not fetched")
        return self._keys

    def missing(self, key_id: str) -> None:
        """Fetch the keys soon, but not for each token with the same id."""
        now = self._clock()
        if len(key_id) > LONGEST_KEY_ID or now < self._missed.get(key_id, now):
            return
        self._missed.pop(key_id, None)
        self._missed[key_id] = now + MISSED_S
        if len(self._missed) > MOST_MISSED:
            del self._missed[next(iter(self._missed))]
        self._wanted.set()

    async def fetch(self) -> None:
        """Fetch the keys. Raises ValueError."""
        from ..sockets.http import EndpointFailed, read  # imported only where needed

        try:
            content = await read(self._settings.endpoint)
        except EndpointFailed as error:
            raise ValueError(str(error)) from None
        self._keys = await asyncio.to_thread(public_keys, content)

    async def refresh(self) -> None:
        """Fetch the keys again and again, at most once in the time of a retry."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.refresh_s):
                    await self._wanted.wait()
            self._wanted.clear()
            await self._fetch_with_retries()
            await asyncio.sleep(self._settings.backoff_s)

    async def _fetch_with_retries(self) -> None:
        delay, waited = self._settings.backoff_s, 0.0
        while True:
            try:
                await self.fetch()
            except ValueError as error:
                if waited + delay > self._settings.longest_backoff_s:
                    LOG.warning("%s: %s; the keys before are used", JWKS_URL, error)
                    return
                await asyncio.sleep(delay)
                delay, waited = delay * 2, waited + delay
            else:
                return


class KeyEndpoints:
    """The servers with keys of the listeners of a broker. static: its keys that are set.

    sources: by listener.
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        self.sources = {
            listener: KeyEndpoint(settings) for listener, settings in key_endpoints(static).items()
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Fetch all sets. Raises OSError, which names the listener and the key, if one fails."""
        for listener, source in self.sources.items():
            try:
                await source.fetch()
            except ValueError as error:
                raise OSError(f"listener {listener}: {JWKS_URL}: {error}") from None
        self._tasks = [asyncio.create_task(each.refresh()) for each in self.sources.values()]

    async def close(self) -> None:
        """Fetch nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
