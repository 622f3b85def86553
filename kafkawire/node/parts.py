"""The parts of a node, and what they have for each other and for the caller.

What a part returns goes to the end of the queue, and is handled from its beginning: so what
is committed reaches the controller and the broker in the order of the log. Where the log ends, the
controller knows at once: what it decides next is for that offset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..controller import LogEndMoved
from ..primitives import Message
from ..storage import Disk
from ..storage.directory_logs import DirectoryLogs
from ..storage.disks.log_directory import LogDirectory
from .broker.broker_server import BrokerServer
from .broker.controller_channel import ControllerChannel, Purpose
from .config import NodeConfig
from .effects import Destination, Effect, LogRecovered, SendRequest
from .quorum.controller_server import ControllerServer, Randomness
from .quorum.metadata_log import PARTITION
from .quorum.raft_manager import Output, RaftManager


class Parts:
    """The quorum's replica, the controller, the broker, and the channel to the active controller.

    disks: name of a log directory -> its disk; the first has the metadata log, too.
    queue: what the parts returned. effects: what the node returns.
    """

    def __init__(
        self,
        config: NodeConfig,
        disks: Mapping[str, Disk],
        rng: Randomness,
        new_uuid: Callable[[], bytes],
        now: float,
    ) -> None:
        self.config = config
        self.wall_ms = config.wall_ms(now)
        self.queue: deque[Any] = deque()
        self.effects: list[Effect] = []
        self._tokens = 0
        self._in_flight: dict[int, Purpose] = {}
        self.broker: BrokerServer | None = None
        if config.is_broker:
            self.broker = BrokerServer(config, disks, new_uuid, self.now_ms, now)
        name = next(iter(disks))
        disk = LogDirectory(name, disks[name])
        directory_id = self._directory_id(disk, new_uuid)
        self.raft = RaftManager(config, disk, directory_id, rng.random, self.now_ms)
        log = self.raft.log
        if log.truncated_bytes:
            self.effects.append(LogRecovered(PARTITION, log.end.offset, log.truncated_bytes))
        self.controller = ControllerServer(config, rng, new_uuid) if config.is_controller else None
        self.channel = ControllerChannel(config.retry_backoff)

    def _directory_id(self, disk: LogDirectory, new_uuid: Callable[[], bytes]) -> bytes:
        """Return the id of the first directory; the log manager of a broker has identified it."""
        if self.broker is not None:
            return self.broker.logs.directory_ids[0]
        directory = DirectoryLogs(disk)
        directory.identify(self.config.cluster_id, self.config.node_id, new_uuid)
        assert directory.directory_id is not None
        return directory.directory_id

    def now_ms(self) -> int:
        """Return the wall-clock time of the present event."""
        return self.wall_ms

    @property
    def active_controller(self) -> Destination | None:
        """Where the leader of the quorum listens, if it is known."""
        leader = self.raft.client.leader_id
        voter = None if leader is None else self.raft.client.voters.find(leader)
        if voter is None or not voter.endpoints:
            return None
        return Destination(voter.key.id, voter.endpoints[0].host, voter.endpoints[0].port)

    def broker_at(self, broker_id: int) -> Destination | None:
        """Return where another broker listens, if it is registered."""
        registration = (
            None if self.broker is None else self.broker.loader.image.brokers.get(broker_id)
        )
        if registration is None or not registration.endpoints:
            return None
        name = self.config.inter_broker_listener
        endpoint = next(
            (each for each in registration.endpoints if each.name == name),
            registration.endpoints[0],
        )
        return Destination(broker_id, endpoint.host, endpoint.port)

    def from_quorum(self, outputs: Iterable[Output], now: float) -> None:
        """Queue what the quorum's replica returns."""
        for output in outputs:
            if not isinstance(output, LogEndMoved):
                self.queue.append(output)
            elif self.controller is not None:
                self.controller.handle(output, now)

    # -- requests

    def send(
        self,
        purpose: Purpose,
        destination: Destination,
        version: int,
        body: Message,
        *,
        to_controller: bool,
    ) -> None:
        """Send a request to another node, as a broker or as a controller."""
        self._tokens += 1
        self._in_flight[self._tokens] = purpose
        self.effects.append(SendRequest(self._tokens, destination, version, body, to_controller))

    def complete(self, token: int) -> Purpose | None:
        """Return for whom the response to a request is; None if it is not expected."""
        return self._in_flight.pop(token, None)

    # -- time

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        times = [
            self.raft.next_deadline(),
            self.channel.next_deadline(self.active_controller is not None),
        ]
        if self.controller is not None:
            times.append(self.controller.next_deadline())
        if self.broker is not None:
            times.append(self.broker.next_deadline())
        return min((each for each in times if each is not None), default=None)

    def advance(self, now: float) -> None:
        """Let the parts do what is due."""
        self.from_quorum(self.raft.advance(now), now)
        if self.controller is not None:
            self.queue.extend(self.controller.advance(now))
        if self.broker is not None:
            self.queue.extend(self.broker.advance(now))
        self.queue.extend(self.channel.expire(now))
