"""A cluster in a thread of its own, for tests: what they can do with it, whichever kind it is.

The cluster is accessed only in its own loop; each call here is submitted to it and returns when
what it does is done, or raises TimeoutError after a minute, which says what was not done.
"""

# over 300 lines: one class, all that tests can do with a cluster

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from math import inf
from numbers import Real
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ..broker import Action, Close, Fault, Report, Request
from ..broker.apis import client_apis
from ..broker.faults import UNSET, api_key, error_code
from ..broker.topics import OFFSETS_TOPIC
from ..configs import TOPIC_CONFIGS, config_texts, topic_config_hint
from ..display import did_you_mean, plural
from ..messages.api_key import ApiKey
from ..protocol import ErrorCode
from .brokers.shell import Observers
from .loop_thread import LoopThread
from .partitions import NewTopic, PartitionState, StoredBatches

if TYPE_CHECKING:
    from ..client.consumer import ConsumerRecord, TopicPartition
    from .brokers.recording import Recording
    from .server_config import ServerConfig

TIMEOUT: Final = 60.0
"""Seconds that the cluster may take for anything, on a machine that is busy."""
POLL: Final = 0.01
T = TypeVar("T")


def check_seconds(seconds: float) -> None:
    """Raise ValueError for seconds that do not pass, TypeError for what is not a number."""
    if not isinstance(seconds, Real):
        raise TypeError(f"seconds={seconds!r}: expected a number from 0")
    if not 0 <= seconds < inf:
        raise ValueError(f"seconds={seconds!r}: expected a number from 0")


class ClusterFixture(ABC):
    """A cluster that clients of this process, or of others, can connect to. Use it with `with`.

    requests: the requests of clients to all brokers, with their responses, in the order of the
    responses.
    closed: connections that brokers closed, and the reasons.
    """

    def __init__(self, config: ServerConfig, recording: Recording | None = None) -> None:
        self.config = config
        self.requests: list[Report] = []
        self.closed: list[Close] = []
        self._observers = Observers(self.requests.append, self.closed.append, recording)
        self._faults: list[Fault] = []
        self._thread = LoopThread()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {plural(self.config.brokers, 'broker')}>"

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._run(self._open(), "the brokers have not started")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        if error is None:
            for fault in self._faults:
                fault.check()

    def _end(self) -> None:
        try:
            self._run(self._close(), "the brokers have not stopped")
        finally:
            self._thread.end()

    def _run(self, work: Coroutine[Any, Any, None], unmet: str) -> None:
        """Run a coroutine in the loop. unmet: what TimeoutError says."""
        self._thread.run(work, TIMEOUT, unmet)

    @abstractmethod
    async def _open(self) -> None:
        """Start all brokers; returns when clients can connect."""

    @abstractmethod
    async def _close(self) -> None:
        """Stop all brokers that have started, at once."""

    # -- brokers

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """The bootstrap servers: `host:port,...`, of all brokers."""

    @property
    @abstractmethod
    def nodes(self) -> list[int]:
        """The ids of the brokers that run."""

    @abstractmethod
    def stop(self, node_id: int) -> None:
        """Stop a broker in order."""

    @abstractmethod
    def kill(self, node_id: int) -> None:
        """End a broker at once, as `kill -9` does."""

    @abstractmethod
    def start(self, node_id: int) -> None:
        """Start a broker that was stopped or killed; returns when it serves clients."""

    def _check_runs(self, node_id: int, runs: bool) -> None:
        """Raise ValueError if a broker does not exist, or is not as it should be."""
        self._check_exists(node_id)
        if (node_id in self.nodes) is not runs:
            raise ValueError(f"broker {node_id} {'does not run' if runs else 'runs already'}")

    def _check_exists(self, node_id: int) -> None:
        """Raise ValueError if there is no such broker."""
        if node_id not in range(1, self.config.brokers + 1):
            raise ValueError(f"no broker {node_id!r}: they are 1 to {self.config.brokers}")

    def _check_any_runs(self) -> None:
        """Raise ValueError if no broker runs."""
        self._thread.check_runs()
        if not self.nodes:
            raise ValueError("no broker runs: all were stopped or killed, or have failed")

    def advance(self, seconds: float) -> None:
        """Advance the clock of all brokers, without waiting.

        Raises ValueError if it would go back, TypeError for what is not a number.
        """
        check_seconds(seconds)
        self._advance(seconds)

    @abstractmethod
    def _advance(self, seconds: float) -> None: ...

    # -- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        factor: int | None = None,
        configs: Mapping[str, object] = {},
    ) -> None:
        """Create a topic. factor: how many replicas; None: `default.replication.factor`.

        configs: Kafka's keys; values as text, or the Python values that they stand for. Raises
        BrokerError, as for a topic that exists, and ValueError for an unknown key or if no broker
        runs.
        """
        texts = config_texts(configs)
        for key in texts.keys() - TOPIC_CONFIGS.keys():
            raise ValueError(f"configs: unknown key {key!r}{topic_config_hint(key)}")
        self._check_any_runs()
        topic = NewTopic(name, partitions, factor, texts)
        self._run(self._create_topic(topic), f"topic {name} has not been created")

    @abstractmethod
    async def _create_topic(self, topic: NewTopic) -> None:
        """Create a topic; called in the loop."""

    @abstractmethod
    def move_leader(self, topic: str, partition: int, leader_id: int) -> None:
        """Let another broker lead a partition; it gets a replica if it has none.

        Raises ValueError if there is no such partition, or the broker does not run.
        """

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition, when it has one that runs.

        Raises ValueError if there is no such partition, or none of its replicas is on a broker that
        runs.
        """

        def leader() -> int | None:
            state = self._state(topic, partition)
            return state.leader if state.leader in self.nodes else None

        return self._await_leader(topic, partition, leader)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """Return the in-sync replicas of a partition. Raises ValueError if it does not exist."""
        self._partitions(topic, partition)
        return sorted(self._state(topic, partition).isr)

    @abstractmethod
    def _find(self, topic: str, partition: int) -> PartitionState | None:
        """Find a partition; called in the loop."""

    def _state(self, topic: str, partition: int) -> PartitionState:
        """Return the state of a partition. Raises ValueError if it does not exist."""
        state = self._thread.call(lambda: self._find(topic, partition))
        if state is None:
            raise ValueError(f"no such partition: {topic}-{partition}")
        return state

    def _await_leader(self, topic: str, partition: int, read: Callable[[], T | None]) -> T:
        """Return what is read of a partition once it has a leader.

        Raises ValueError if it does not exist or cannot have one, TimeoutError with the reason.
        """
        self._partitions(topic, partition)
        values: list[T] = []

        def reason() -> str:
            return self._state(topic, partition).unavailable(f"{topic}-{partition}", self.nodes)

        def has_come() -> bool:
            value = read()
            if value is not None:
                values.append(value)
            elif not self._state(topic, partition).can_be_led(self.nodes):
                raise ValueError(reason())
            return bool(values)

        self._wait(has_come, reason)
        return values[0]

    def _partitions(self, topic: str, partition: int | None = None) -> range:
        """Return the partitions of a topic, or one of them. ValueError if it does not exist."""
        self._check_any_runs()
        count = self._thread.call(lambda: self._count_partitions(topic))
        if not count:
            hint = did_you_mean(topic, self._thread.call(self._topic_names))
            raise ValueError(f"no such topic: {topic}{hint}")
        if partition is None:
            return range(count)
        if partition not in range(count):
            has = plural(count, "partition")
            raise ValueError(f"no such partition: {topic}-{partition}; {topic} has {has}")
        return range(partition, partition + 1)

    # -- what it has

    def requests_of(self, api: ApiKey | int | str) -> list[Report]:
        """Return those of `requests` with an API, as in `Produce`. ValueError if it is unknown."""
        key = api_key(api)
        return [each for each in list(self.requests) if each.request.api_key is key]

    def records(self, topic: str, partition: int | None = None) -> list[ConsumerRecord]:
        """Return the records of a topic, or of one partition, from the logs of the leaders.

        By partition and offset; without those of transactions that are open or aborted. It is no
        request, and no fault meets it. Raises ValueError if there is no such topic or partition, or
        no broker runs that has it.
        """
        from ..client.consumer import TopicPartition  # imported only by tests that use it
        from .stored_records import consumer_records

        records: list[ConsumerRecord] = []
        for each in self._partitions(topic, partition):
            stored = self._stored(topic, each)
            records += consumer_records(TopicPartition(topic, each), *stored)
        return records

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the offsets that a group has committed; none if there is no such group."""
        from .stored_records import committed_offsets

        self._check_any_runs()
        if not self._thread.call(lambda: self._count_partitions(OFFSETS_TOPIC)):
            return {}
        return committed_offsets(group_id, self.records(OFFSETS_TOPIC))

    def _stored(self, topic: str, partition: int) -> StoredBatches:
        """Return the log of a partition when it has a leader that runs."""
        return self._await_leader(
            topic, partition, lambda: self._thread.call(lambda: self._leader_log(topic, partition))
        )

    def _count_partitions(self, topic: str) -> int:
        """Count the partitions of a topic, 0 if it does not exist; called in the loop."""
        return next(each for each in count() if self._find(topic, each) is None)

    @abstractmethod
    def _topic_names(self) -> list[str]:
        """Return the names of all topics; called in the loop."""

    @abstractmethod
    def _leader_log(self, topic: str, partition: int) -> StoredBatches | None:
        """Return what the leader of a partition has, None without one; called in the loop."""

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until a function returns true. Raises TimeoutError, TypeError for no function."""
        if not callable(done):
            kind = type(done).__name__
            raise TypeError(f"wait: expected a function, called until it returns true, not {kind}")
        self._wait(done, lambda: f"{done.__qualname__} has not returned true")

    def _wait(self, done: Callable[[], bool], unmet: Callable[[], str]) -> None:
        """Wait until a function returns true. unmet: returns what TimeoutError says."""
        end = time.monotonic() + TIMEOUT
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"{unmet()} within {TIMEOUT:g} seconds")
            time.sleep(POLL)

    # -- faults

    def fault(  # noqa: PLR0913 - the fields of `Fault`, all but one by keyword
        self,
        match: ApiKey | int | str | Callable[[Request], bool] | None = None,
        *,
        nth: int | None = None,
        probability: float = 1.0,
        action: Action | str = Action.ERROR,
        error: ErrorCode | int | str | None = None,
        delay: float | None = None,
        keep: int | None = None,
        at: int | None = None,
        carried_out: bool = False,
    ) -> Fault:
        """Add a fault, of all brokers together; its `hit` counts the requests that it affected.

        match: what a function raises, `hit` raises, or else the end of the cluster. error, delay,
        keep, at, carried_out: of one action each. Raises ValueError for a fault that no request can
        meet, such as one with an API that the release does not have, and for what has no effect.
        """
        code = UNSET if error is None else error_code(error)
        seconds = UNSET if delay is None else delay
        fault = Fault(match, nth, probability, action, code, seconds, keep, at, carried_out)
        fault.check_served(client_apis(self.config.release, self.config.zookeeper))
        self._faults.append(fault)
        self._thread.call(lambda: self._add_fault(fault))
        return fault

    def unused_faults(self) -> list[Fault]:
        """Return the faults that no request has met, also of those that were removed."""
        return [fault for fault in self._faults if fault.is_unused]

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._thread.call(self._clear_faults)

    @abstractmethod
    def _add_fault(self, fault: Fault) -> None:
        """Add a fault; called in the loop."""

    @abstractmethod
    def _clear_faults(self) -> None:
        """Remove all faults; called in the loop."""
