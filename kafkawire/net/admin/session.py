"""The connection of an admin client: its configuration, start, end and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client.config import CLIENT_KEYS, MILLISECONDS, Key, Setting, read_config, seconds
from ...client.failures import ClientClosed
from ...client.metrics import MetricName
from ..scoped import Scoped
from . import cluster
from .calls import CallRunner

ADMIN_KEYS: Final[Mapping[str, Key]] = {
    **CLIENT_KEYS,
    "default.api.timeout.ms": Key(
        MILLISECONDS, 60_000, "how long a call may take, including retries"
    ),
}


class AdminSession(Scoped):
    """What the calls of an admin client share; the calls are in the classes derived from it."""

    def __init__(self, config: Mapping[str, Setting]) -> None:
        self._values = read_config(ADMIN_KEYS, config)
        self._timeout_ms = round(seconds(self._values, "request.timeout.ms") * 1000)
        self._runner: CallRunner | None = None

    async def start(self) -> None:
        """Start to connect; `async with` calls it."""
        self._runner = CallRunner(self._values)

    async def close(self) -> None:
        """Close; pending calls fail with ClientClosed."""
        calls, self._runner = self._runner, None
        if calls is not None:
            await calls.close()

    @property
    def _calls(self) -> CallRunner:
        if self._runner is None:
            raise ClientClosed("the admin client")
        return self._runner

    def metrics(self) -> dict[MetricName, float]:
        """Return what this client measures, by Kafka's names."""
        return self._calls.metrics()

    async def _brokers(self) -> list[int]:
        return [each.broker_id for each in (await cluster.describe(self._calls)).brokers]
