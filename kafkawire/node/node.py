"""One node of a cluster, a broker, a controller or both, as one machine on message level.

No I/O but the disks that are passed in; files are written while an event is handled, so an
effect that leaves rests on what is on disk.

    RequestReceived ─▶ quorum │ controller │ replicas │ forwarded to the active controller
    quorum ─▶ committed records ─▶ controller, metadata of the broker ─▶ replicas, logs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ..errors import InvalidMetadataRecord, LocalProtocolError
from ..metadata import MetadataImage, TopicIdPartition
from ..replication import Partition, ReplicaManager
from ..storage import Disk, StorageError
from .broker.controller_channel import Purpose
from .config import NodeConfig
from .effects import Effect, Respond, Stopped
from .events import Event, RequestReceived, ResponseReceived, ShutdownRequested
from .lifecycle import BrokerState
from .outputs import LEAVES_DEADLINES, OUTPUTS
from .parts import Parts
from .quorum.controller_server import Randomness
from .requests import on_request, on_response, send_pending

T = TypeVar("T")
FAILURES: Final = (StorageError, InvalidMetadataRecord, OSError)
"""What a node cannot go on after: its metadata log's disk fails, a file or record is not valid."""


class Node:
    """A node. Its constructor loads the logs; `start` comes next.

    disks: name of a log directory -> its disk; the first has the metadata log, too.
    new_uuid: returns 16 random bytes. Raises StorageError, InvalidMetadataRecord or OSError if it
    cannot start from its disks.
    """

    def __init__(
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        rng: Randomness,
        new_uuid: Callable[[], bytes],
        now: float,
    ) -> None:
        self.parts = Parts(config, disks, rng, new_uuid, now)
        self.stopped = False
        self._deadline: float | None = None
        self._deadline_is_current = False
        """Whether it is that of all parts but the replicas."""

    # -- what it knows

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that this node has read; it is only read."""
        parts = self.parts
        if parts.broker is not None:
            return parts.broker.loader.image
        assert parts.controller is not None
        return parts.controller.image

    @property
    def partitions(self) -> Mapping[TopicIdPartition, Partition]:
        """The replicas of this broker: their state, their leader, their logs."""
        return {} if self.parts.broker is None else self.parts.broker.replicas.partitions

    # -- the machine

    def start(self, now: float) -> list[Effect]:
        """Begin where the node stopped."""
        return self._run(lambda: self.parts.from_quorum(self.parts.raft.start(now), now), now)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event; return the effects. Raises LocalProtocolError for a wrong request."""
        return self._run(lambda: EVENTS[type(event)](self, event, now), now)

    def call(
        self, operation: Callable[[ReplicaManager, int], T], token: int, now: float
    ) -> tuple[T | None, list[Effect]]:
        """Call the replica manager; return what it returns, and the effects.

        token: of the request, chosen as that of `RequestReceived`. The result is None if the node
        has stopped, or stops in this call: then nobody may rely on it.
        """
        parts = self.parts
        if parts.broker is None:
            raise LocalProtocolError("a node without a broker has no partitions")
        if self.stopped:
            return None, []
        replicas = parts.broker.replicas
        parts.wall_ms = parts.config.wall_ms(now)
        result: T | None = None
        try:
            result = operation(replicas, token)
            outputs = replicas.finish(now)
            for each in outputs:
                if isinstance(each, Respond) and not parts.queue:
                    parts.effects.append(each)  # nothing follows from it
                else:
                    parts.queue.append(each)
            if parts.queue or parts.broker.has_news:
                self._settle(now)
        except FAILURES as error:
            self._fail(error)
        effects = parts.effects
        if effects:
            parts.effects = []
        return None if self.stopped else result, effects

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        if self.stopped:
            return None
        if not self._deadline_is_current:
            self._deadline = self.parts.next_deadline()
            self._deadline_is_current = True
        if self.parts.broker is None:
            return self._deadline
        due = self.parts.broker.replicas.next_deadline()
        return due if self._deadline is None or due < self._deadline else self._deadline

    def advance(self, now: float) -> list[Effect]:
        """Do what is due: its heartbeat before its controller ends sessions."""
        return self._run(lambda: self._advance(now), now)

    def _advance(self, now: float) -> None:
        broker = self.parts.broker
        due = None if broker is None else broker.lifecycle.next_deadline()
        if due is not None and due <= now:
            self._settle(now)
        if not self.stopped:
            self.parts.advance(now)

    def _run(self, work: Callable[[], object], now: float) -> list[Effect]:
        """Do some work, and all that follows from it; a failure is the end of the node."""
        if self.stopped:
            return []
        self._deadline_is_current = False
        parts = self.parts
        parts.wall_ms = parts.config.wall_ms(now)
        try:
            work()
            self._settle(now)
        except FAILURES as error:
            self._fail(error)
        return self._take_effects()

    def _fail(self, error: Exception) -> None:
        self.parts.effects = []
        self._stop(str(error))

    def _take_effects(self) -> list[Effect]:
        effects, self.parts.effects = self.parts.effects, []
        return effects

    def _settle(self, now: float) -> None:
        """Do what follows from what was done."""
        self._drain(now)
        while not self.stopped and (self._fail_directories(now) or self._poll(now)):
            self._drain(now)

    def _drain(self, now: float) -> None:
        queue = self.parts.queue
        while queue and not self.stopped:
            output = queue.popleft()
            handle = OUTPUTS[type(output)]
            if handle not in LEAVES_DEADLINES:
                self._deadline_is_current = False
            handle(self.parts, output, now)

    def _fail_directories(self, now: float) -> bool:
        """Do what follows from log directories that fail; return whether any has."""
        parts = self.parts
        failures = [] if parts.broker is None else parts.broker.failures(now)
        if failures:
            self._deadline_is_current = False
            parts.queue.extend(failures)
        return bool(failures)

    def _poll(self, now: float) -> bool:
        """Do what follows from a new state; return whether there is more to do."""
        parts = self.parts
        if parts.broker is not None:
            parts.queue.extend(parts.broker.changes())
            for owner, body, version, timeout in parts.broker.due(now):
                self._deadline_is_current = False
                parts.channel.submit(Purpose(owner, 0), body, version, now + timeout, now)
            if parts.broker.lifecycle.state is BrokerState.SHUTTING_DOWN:
                self._deadline_is_current = False
                if parts.broker.close_logs(now):
                    self._finish(now)
                return False
        active = parts.active_controller if parts.channel else None
        due = [] if active is None else parts.channel.due(now)
        for number, pending in due:
            assert active is not None
            send_pending(parts, active, number, pending, now)
            self._drain(now)
        return bool(due) or bool(parts.queue)

    # -- events

    def _request(self, event: RequestReceived, now: float) -> None:
        on_request(self.parts, event, now)

    def _response(self, event: ResponseReceived, now: float) -> None:
        on_response(self.parts, event, now)

    def _shutdown(self, _event: ShutdownRequested, now: float) -> None:
        if self.parts.broker is not None:
            self.parts.broker.lifecycle.begin_shutdown(now)
        else:
            self._finish(now)

    # -- the end

    def _finish(self, now: float) -> None:
        """Close the logs, and let another replica lead the quorum."""
        parts = self.parts
        self._drain(now)
        if parts.broker is not None:
            parts.broker.shut_down()
            parts.broker.check_directories()
        parts.from_quorum(parts.raft.resign(parts.raft.client.epoch, now), now)
        self._drain(now)
        parts.raft.log.close()
        self._stop(None)

    def _stop(self, failure: str | None) -> None:
        self.stopped = True
        self.parts.queue.clear()
        self.parts.effects.append(Stopped(failure))


EVENTS: Final[Mapping[type, Callable[[Node, Any, float], None]]] = {
    RequestReceived: Node._request,
    ResponseReceived: Node._response,
    ShutdownRequested: Node._shutdown,
}
