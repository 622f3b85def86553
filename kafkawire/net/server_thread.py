"""Runs a server in a thread of its own, for code without an event loop, such as tests.

Law: the cluster is accessed only in its own loop; every call here is submitted to it and awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..broker import Action, Close, Fault, Persisted, Report, Request
from ..messages.api_key import ApiKey
from ..protocol import ErrorCode
from .loop_thread import LoopThread
from .server import Server
from .server_config import DEFAULT, ServerConfig
from .shell import Observers

if TYPE_CHECKING:
    from .server_recording import Recording


class ServerThread:
    """A cluster that clients of this process, or of others, can connect to.

    requests: the requests with their responses, in the order of the responses. persisted: the
    effects to persist; pass them to another server as `persisted` to restore the cluster.
    closed: connections that the broker closed, and the reasons.
    """

    def __init__(
        self,
        config: ServerConfig = DEFAULT,
        *,
        recording: Recording | None = None,
        persisted: Iterable[Persisted] = (),
    ) -> None:
        self.requests: list[Report] = []
        self.persisted: list[Persisted] = [*persisted]
        self.closed: list[Close] = []
        self.server = Server(
            config,
            Observers(self.requests.append, self.closed.append, recording),
            on_persist=self.persisted.append,
            persisted=tuple(self.persisted),
        )
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start listening; returns when clients can connect."""
        self._thread.start()
        try:
            self._thread.run(self.server.start())
        except BaseException:
            self._thread.end()
            raise

    def close(self) -> None:
        """Stop listening and end the thread."""
        self._thread.run(self.server.stop())
        self._thread.end()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`."""
        return self.server.bootstrap

    # -- actions of a test

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, str] = {},
    ) -> None:
        """Create a topic. factor: at most the number of brokers; None: as configured."""
        self._thread.call(lambda: self.server.create_topic(name, partitions, factor, configs))

    def fault(  # noqa: PLR0913 - the fields of `Fault`, all but one by keyword
        self,
        match: ApiKey | str | Callable[[Request], bool] | None = None,
        *,
        nth: int | None = None,
        probability: float = 1.0,
        action: Action | str = Action.ERROR,
        error: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR,
        delay: float = 1.0,
        keep: int | None = None,
        at: int | None = None,
        carried_out: bool = False,
    ) -> Fault:
        """Add a fault; its `hit` counts how many requests it affected."""
        fault = Fault(match, nth, probability, action, error, delay, keep, at, carried_out)
        self._thread.call(lambda: self.server.cluster.faults.append(fault))
        return fault

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._thread.call(self.server.cluster.faults.clear)

    def advance(self, seconds: float) -> None:
        """Advance the cluster's clock without waiting."""
        self._thread.call(lambda: self.server.advance(seconds))

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker."""
        self._thread.run(self.server.stop_broker(node_id))

    def start_broker(self, node_id: int) -> None:
        """Start a stopped broker."""
        self._thread.run(self.server.start_broker(node_id))

    def move_leader(
        self, topic: str, partition: int, leader_id: int, truncate_to: int | None = None
    ) -> None:
        """Move a partition's leader."""
        self._thread.call(lambda: self.server.move_leader(topic, partition, leader_id, truncate_to))
