"""The brokers that the clients of a simulation meet: nodes in memory, whose power may fail.

Every append is flushed (`log.flush.interval.messages`), so what a producer with acks=all was
promised outlives a power failure of all nodes.

    ClusterEvent ─▶ LocalCluster ─▶ Effect, ...         disks fail ─▶ Effect, ..., PowerLost ─▶ anew
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple, TypeVar

from kafkawire.broker import Endpoint, Fault
from kafkawire.broker.network.socket_server import SocketServer
from kafkawire.metadata import PartitionRegistration, TopicIdPartition, TopicImage
from kafkawire.node import NodeConfig
from kafkawire.node.composition import InMemory
from kafkawire.node.front.front import NodeFront
from kafkawire.node.front.options import FrontOptions
from kafkawire.node.local_cluster import ClusterEvent, LocalCluster
from kafkawire.node.local_cluster import Effect as ClusterEffect
from kafkawire.node.local_node import LocalNode
from kafkawire.node.operator_requests import OperatorRequest, OperatorResponse
from kafkawire.primitives import Message
from kafkawire.records import RecordBatches
from kafkawire.replication import Partition

M = TypeVar("M", bound=Message)
EPOCH_MS: Final = 1_700_000_000_000
OFFSETS_PARTITIONS: Final = 1
"""The partitions of `__consumer_offsets`: fewer than Kafka's, so that nodes start faster."""
SETTINGS: Final = {
    "log.flush.interval.messages": "1",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "broker.heartbeat.interval.ms": "700",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "20000",
    "controller.quorum.request.timeout.ms": "20000",
    "replica.fetch.wait.max.ms": "1000",
}
"""Where nothing happens, nodes send little, which would be most of the work of a run."""
FETCH_MAX_WAIT_S: Final = 10.0
RETRY_BACKOFF_S: Final = 0.3
CHANGES: Final = frozenset(
    {"append", "truncate", "fsync", "fsync_directory", "make_directory", "rename", "delete"}
)
"""The operations that change a disk."""
MOST_CHANGES: Final = 12
"""The power fails before so many changes of disks at most."""
ANY_SIZE: Final = 1 << 30


class PowerLost(NamedTuple):
    """All nodes ended at once, and have started again with what their disks had kept."""


class _PowerFailure(BaseException):
    """Ends what the nodes do; no handler may take it for an error of its own."""


Effect = ClusterEffect | PowerLost


def _sending_little(config: NodeConfig) -> NodeConfig:
    quorum = config.quorum._replace(fetch_max_wait=FETCH_MAX_WAIT_S)
    return replace(config, quorum=quorum, retry_backoff=RETRY_BACKOFF_S)


class Brokers:
    """The nodes of a cluster, driven like one; and what an administrator sees of them.

    rng: chooses ids, when the power fails, and what disks lose then. faults: to inject into
    requests of clients. All nodes start at `now`.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        rng: Random,
        now: float,
        *,
        settings: Mapping[str, str],
        release: str,
        options: FrontOptions,
    ) -> None:
        self.ids = [each.node_id for each in endpoints]
        self.faults: list[Fault] = []
        self._rng = rng
        self._options = options
        nodes = InMemory(
            endpoints,
            EPOCH_MS,
            {**SETTINGS, **settings},
            cluster_id="brokers",
            listener="SASL_PLAINTEXT" if options.passwords else "PLAINTEXT",
            release=release,
        ).nodes()
        self._nodes = [LocalNode(_sending_little(each.config), each.disks) for each in nodes]
        self._changes_left = 0
        self._requests = 0
        self._held: list[Effect] = []
        """Effects of requests of the administrator, for the next call."""
        self.cluster = self._build()
        self._held += self.cluster.start(now)

    def _build(self) -> LocalCluster:
        rng = self._rng
        cluster = LocalCluster(self._nodes, rng, lambda: rng.randbytes(16), self._options)
        cluster.faults = self.faults
        return cluster

    # -- the machine

    def handle(self, event: ClusterEvent, now: float) -> list[Effect]:
        """Handle an event; return the effects to carry out."""
        return self._powered(lambda: self.cluster.handle(event, now), now)

    def advance(self, now: float) -> list[Effect]:
        """Let the nodes do what is due."""
        return self._powered(lambda: self.cluster.advance(now), now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self.cluster.next_deadline()

    def settle(self, now: float) -> list[Effect]:
        """Let the nodes do all that is due."""
        effects = self.advance(now)
        while (due := self.next_deadline()) is not None and due <= now:
            effects += self.advance(now)
        return effects

    def administer(self, body: Message, expected: type[M], now: float) -> M:
        """Let the cluster handle a request; its effects are among the next ones.

        Raises TimeoutError if no broker can respond at this time.
        """
        if not any(node_id in self.ids for node_id in self.cluster.running):
            raise TimeoutError("no broker runs")
        effects = self.handle(OperatorRequest(self._requests, body), now)
        self._requests += 1
        while (due := self.next_deadline()) is not None and due <= now:
            if any(isinstance(each, OperatorResponse | PowerLost) for each in effects):
                break
            effects += self.advance(now)
        responses = [each.body for each in effects if isinstance(each, OperatorResponse)]
        self._held += [each for each in effects if not isinstance(each, OperatorResponse)]
        if responses in ([], [None]):
            raise TimeoutError("no response")
        assert isinstance(responses[0], expected), responses
        return responses[0]

    # -- power

    def fail_power(self) -> None:
        """Let the power of all nodes fail amid the next changes of their disks."""
        self._changes_left = self._rng.randrange(1, MOST_CHANGES)
        for node in self._nodes:
            for disk in node.disks.values():
                disk.fault = self._before_change

    def _before_change(self, operation: str, _path: str) -> float:
        if operation in CHANGES:
            self._changes_left -= 1
            if self._changes_left == 0:
                raise _PowerFailure
        return 0.0

    def _powered(self, call: Callable[[], list[ClusterEffect]], now: float) -> list[Effect]:
        effects, self._held = self._held, []
        try:
            effects += call()
        except _PowerFailure:
            effects += self._restart(now)
        return effects

    def _restart(self, now: float) -> list[Effect]:
        """Build all nodes anew, after some of what they had done was carried out."""
        effects: list[Effect] = list(self.cluster._effects)
        del effects[self._rng.randrange(len(effects) + 1) :]
        for node in self._nodes:
            for disk in node.disks.values():
                disk.fault = None
                disk.crash(self._rng.randrange)
        self.cluster = self._build()
        return [*effects, PowerLost(), *self.cluster.start(now)]

    # -- what a test sees

    def server(self, node_id: int) -> SocketServer | None:
        """Return the connections of a broker, if it runs."""
        front = self.cluster.fronts.get(node_id)
        return None if front is None else front.broker.server

    def topic(self, name: str) -> TopicImage | None:
        """Find a topic in the newest metadata."""
        return self.cluster.image().topic(name)

    def partition(self, topic: str, index: int) -> PartitionRegistration | None:
        """Find a partition in the newest metadata."""
        found = self.topic(topic)
        return None if found is None else found.partitions.get(index)

    def in_sync(self, topic: str, index: int) -> list[int]:
        """Return the in-sync replicas of a partition; none if it does not exist."""
        found = self.partition(topic, index)
        return [] if found is None else list(found.isr)

    def leads(self, node_id: int, topic: str, index: int) -> bool:
        """Whether a node has begun to lead a partition."""
        found = self.leader(topic, index)
        return found is not None and found[0].config.node_id == node_id

    def leader(self, topic: str, index: int) -> tuple[NodeFront, Partition] | None:
        """Return the node that leads a partition, and its replica; None if none does now."""
        found, partition = self.topic(topic), self.partition(topic, index)
        if found is None or partition is None:
            return None
        front = self.cluster.fronts.get(partition.leader)
        if front is None:
            return None
        replica = front.machines.replica(TopicIdPartition(found.topic_id, index))
        return None if replica is None or not replica.is_leader else (front, replica)

    def end_offset(self, topic: str, index: int) -> int:
        """Return where the log of a partition's leader ends; 0 if it has no leader now."""
        found = self.leader(topic, index)
        return 0 if found is None else found[1].log.log_end_offset

    def batches(self, topic: str, index: int) -> RecordBatches:
        """Return all batches of a partition's leader, none if it has no leader now."""
        found = self.leader(topic, index)
        if found is None:
            return RecordBatches(b"")
        log = found[1].log
        end = log.log_end_offset
        return RecordBatches(log.read(log.log_start_offset, ANY_SIZE, end, True))

    def known_clients(self) -> Iterator[int]:
        """Iterate over the connections of clients, of their requests and delayed operations."""
        for front in self.cluster.fronts.values():
            server = front.broker.server
            pending = server.channel.pending.values()
            connections = [each.id for each in server.connections.values()]
            connections += [each.connection for each in pending]
            connections += front.machines._delayed
            yield from (each for each in connections if each > 0)  # others are of nodes
