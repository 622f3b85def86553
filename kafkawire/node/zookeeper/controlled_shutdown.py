"""The controlled shutdown of a broker: it has the controller move its leaders before it stops.

It ends for every broker: after the controller's response, or after
controlled.shutdown.max.retries attempts, each to the controller of that time.

    ShutDown ─▶ ControlledShutdown ─┬─▶ no partitions remain ─────────▶ the process is stopped
                     ▲              └─▶ error, no response ─┐          ▲
                     └── controlled.shutdown.retry.backoff.ms ── last ─┘
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...broker.apis import between_brokers
from ...messages.api_key import ApiKey
from ...messages.controlled_shutdown_request import ControlledShutdownRequest
from ...messages.controlled_shutdown_response import ControlledShutdownResponse
from ...primitives import Message
from ...protocol import ErrorCode
from .channel import TIMEOUT, BrokerChannel, Queued
from .channels import BrokerChannels
from .context import ControlledShutdownDue, ZooKeeperContext
from .registry import Registry

ENABLED: Final = "controlled.shutdown.enable"
ATTEMPTS: Final = "controlled.shutdown.max.retries"
BACKOFF: Final = "controlled.shutdown.retry.backoff.ms"


@dataclass(slots=True)
class _Stopping:
    """A broker that stops: its attempts left, and the channel of the current one."""

    attempts: int
    channel: BrokerChannel | None = None


class ControlledShutdowns:
    """The brokers of a cluster that stop. done: those that may, until their process is stopped."""

    def __init__(
        self, context: ZooKeeperContext, registry: Registry, channels: BrokerChannels
    ) -> None:
        self.done: list[int] = []
        self._context = context
        self._registry = registry
        self._channels = channels
        self._stopping: dict[int, _Stopping] = {}

    def requested(self, node_id: int, now: float) -> None:
        """Begin the controlled shutdown of a broker."""
        settings = self._context.settings
        attempts = settings.number(ATTEMPTS) if settings.flag(ENABLED) else 0
        self._stopping[node_id] = _Stopping(attempts)
        self._attempt(node_id, now)

    def due(self, due: ControlledShutdownDue, now: float) -> None:
        """Repeat the request: the backoff is over, or no response came in time."""
        if due.node_id in self._stopping:
            self._attempt(due.node_id, now)

    def broker_stopped(self, node_id: int) -> None:
        """Forget a broker that is down."""
        stopping = self._stopping.pop(node_id, None)
        if stopping is not None:
            self._close(node_id, stopping)

    def _attempt(self, node_id: int, now: float) -> None:
        stopping = self._stopping[node_id]
        self._close(node_id, stopping)
        controller_id = self._registry.controller_id
        epoch = self._registry.broker_epochs.get(node_id)
        if stopping.attempts <= 0 or controller_id is None or epoch is None:
            self._done(node_id)
            return
        stopping.attempts -= 1
        request = ControlledShutdownRequest(broker_id=node_id, broker_epoch=epoch)
        stopping.channel = self._channels.add(node_id, controller_id)

        def on_response(response: Message, at: float) -> None:
            self._responded(node_id, response, at)

        version = between_brokers(self._context.release)[ApiKey.CONTROLLED_SHUTDOWN].last
        stopping.channel.send(Queued(request, version, on_response), now)
        due = now + self._context.settings.seconds(TIMEOUT)
        self._context.deadlines.set(ControlledShutdownDue(node_id), due)

    def _responded(self, node_id: int, response: Message, now: float) -> None:
        assert isinstance(response, ControlledShutdownResponse)
        if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
            self._done(node_id)
            return
        due = now + self._context.settings.seconds(BACKOFF)
        self._context.deadlines.set(ControlledShutdownDue(node_id), due)

    def _done(self, node_id: int) -> None:
        self.broker_stopped(node_id)
        self.done.append(node_id)

    def _close(self, node_id: int, stopping: _Stopping) -> None:
        self._context.deadlines.cancel(ControlledShutdownDue(node_id))
        if stopping.channel is not None:
            self._channels.remove(stopping.channel)
            stopping.channel = None
