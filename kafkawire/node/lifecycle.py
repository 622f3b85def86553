"""The lifecycle of a broker as its controller sees it: registration, heartbeats, shutdown.

The state changes through `TRANSITIONS` alone; docs/internals/cluster.md draws it. One request
is in flight. A broker requests to be unfenced only after it has published metadata with its
registration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from ..configs.features import NEWEST
from ..messages.broker_heartbeat_request import BrokerHeartbeatRequest
from ..messages.broker_heartbeat_response import BrokerHeartbeatResponse
from ..messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from ..messages.broker_registration_response import BrokerRegistrationResponse
from ..primitives import Message
from .config import NodeConfig

NO_EPOCH: Final = -1
REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 1


class BrokerState(Enum):
    """What a broker does, by Kafka's names."""

    STARTING = "Starting"
    RECOVERY = "Recovery"
    RUNNING = "Running"
    PENDING_CONTROLLED_SHUTDOWN = "PendingControlledShutdown"
    SHUTTING_DOWN = "ShuttingDown"


class Cause(Enum):
    """Why the state of a broker changes."""

    PUBLISHED = "metadata with its registration published"
    UNFENCED = "heartbeat response: unfenced"
    SHUTDOWN = "shutdown requested"
    MAY_STOP = "heartbeat response: leads nothing, or timeout"


S, C = BrokerState, Cause
TRANSITIONS: Final[Mapping[tuple[BrokerState, Cause], BrokerState]] = {
    (S.STARTING, C.PUBLISHED): S.RECOVERY,
    (S.STARTING, C.SHUTDOWN): S.SHUTTING_DOWN,
    (S.RECOVERY, C.UNFENCED): S.RUNNING,
    (S.RECOVERY, C.SHUTDOWN): S.SHUTTING_DOWN,
    (S.RUNNING, C.SHUTDOWN): S.PENDING_CONTROLLED_SHUTDOWN,
    (S.PENDING_CONTROLLED_SHUTDOWN, C.MAY_STOP): S.SHUTTING_DOWN,
}


def diagram() -> Iterator[str]:
    """Draw the states in Mermaid, a line per transition."""
    yield "stateDiagram-v2"
    yield f"    [*] --> {S.STARTING.value}"
    for (state, cause), after in TRANSITIONS.items():
        yield f"    {state.value} --> {after.value}: {cause.value}"


class BrokerLifecycleManager:
    """Registers a broker and sends its heartbeats.

    incarnation_id: of this process. previous_epoch: of the last clean shutdown, -1 for none.
    """

    def __init__(
        self,
        config: NodeConfig,
        incarnation_id: bytes,
        directories: list[bytes],
        previous_epoch: int,
        now: float,
    ) -> None:
        self.config = config
        self.state = S.STARTING
        self.epoch = NO_EPOCH
        self.is_fenced = True
        self.error = 0
        """Why the controller refused the last request, if it did."""
        self._incarnation_id = incarnation_id
        self._directories = directories
        self._offline: list[bytes] = []
        self._reported = 0
        """How many of the offline directories the last heartbeat had."""
        self._previous_epoch = previous_epoch
        self._due: float | None = now
        """When to send the next request; None while one is in flight."""
        self._urgent = False
        """Whether something has changed since the request in flight: the next one follows it."""
        self._stop_at: float | None = None
        self._session_end = 0.0
        """When controllers fence this broker, unless they respond to another heartbeat before."""

    # -- what happens

    def published(self, now: float) -> None:
        """Note that the metadata has the registration: the broker may be unfenced."""
        self._change(C.PUBLISHED)
        self._hurry(now)

    def begin_shutdown(self, now: float) -> None:
        """Request that the leaders of this broker are moved, if it leads any.

        It waits as long as its session lasts: without one, controllers move them by themselves.
        """
        if (self.state, C.SHUTDOWN) in TRANSITIONS:
            self._change(C.SHUTDOWN)
            self._stop_at = now + self.config.controlled_shutdown_timeout
            self._hurry(now)

    def directory_failed(self, directory: bytes, now: float) -> None:
        """Report at once that a log directory is offline."""
        self._offline.append(directory)
        self._hurry(now)

    def handle(self, body: Message | None, now: float) -> None:
        """Handle a response; None if there was none in time."""
        delay = self.config.retry_backoff
        if isinstance(body, BrokerRegistrationResponse | BrokerHeartbeatResponse):
            self.error = body.error_code
        if isinstance(body, BrokerRegistrationResponse) and not self.error:
            self.epoch = body.broker_epoch
            delay = 0.0
        elif isinstance(body, BrokerHeartbeatResponse) and not self.error:
            delay = self._heartbeat(body, now)
            if self._urgent:
                delay = 0.0
        self._due = now + delay

    def _heartbeat(self, body: BrokerHeartbeatResponse, now: float) -> float:
        """Take over what the controller says; return when to send the next heartbeat."""
        self._session_end = now + self.config.session_timeout
        self.is_fenced = body.is_fenced
        if self.state is S.RECOVERY and not body.is_fenced:
            self._change(C.UNFENCED)
        is_stopping = self.state is S.PENDING_CONTROLLED_SHUTDOWN
        if is_stopping and body.should_shut_down:
            self._change(C.MAY_STOP)
        if self._reported < len(self._offline):
            return 0.0
        return self.config.retry_backoff if is_stopping else self.config.heartbeat_interval

    def _change(self, cause: Cause) -> None:
        self.state = TRANSITIONS[self.state, cause]

    def _hurry(self, now: float) -> None:
        if self._due is not None:
            self._due = min(self._due, now)
        else:
            self._urgent = True

    # -- what is due

    def next_deadline(self) -> float | None:
        """Return when `request` has something to send, or the shutdown has waited enough."""
        times = [each for each in (self._due, self._last_moment()) if each is not None]
        return None if self.state is S.SHUTTING_DOWN else min(times, default=None)

    def _last_moment(self) -> float | None:
        """Return until when a shutdown waits for a controller; None if none was requested."""
        return None if self._stop_at is None else min(self._stop_at, self._session_end)

    def request(self, metadata_offset: int, now: float) -> tuple[Message, int] | None:
        """Return the request that is due, with its version.

        metadata_offset: of the last record of metadata that the broker has read.
        """
        if self.state is S.PENDING_CONTROLLED_SHUTDOWN and now >= (self._last_moment() or 0.0):
            self._change(C.MAY_STOP)
        if self.state is S.SHUTTING_DOWN or self._due is None or now < self._due:
            return None
        self._due = None
        self._urgent = False
        if self.epoch == NO_EPOCH:
            return self._registration(), REGISTRATION_VERSION
        return self._next_heartbeat(metadata_offset), HEARTBEAT_VERSION

    def _registration(self) -> Message:
        config = self.config
        return BrokerRegistrationRequest(
            broker_id=config.node_id,
            cluster_id=config.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=config.protocol(each.name),
                )
                for each in config.registered_listeners
            ],
            features=[
                Feature(
                    name=each.name,
                    min_supported_version=each.lowest,
                    max_supported_version=each.highest,
                )
                for each in NEWEST
            ],
            rack=config.rack,
            log_dirs=self._directories,
            previous_broker_epoch=self._previous_epoch,
        )

    def _next_heartbeat(self, metadata_offset: int) -> Message:
        self._reported = len(self._offline)
        stops = self.state is S.PENDING_CONTROLLED_SHUTDOWN
        return BrokerHeartbeatRequest(
            broker_id=self.config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=metadata_offset,
            want_fence=self.state is S.STARTING or (stops and self.config.zookeeper),
            want_shut_down=stops,
            offline_log_dirs=list(self._offline),
        )
