"""Simulates a whole cluster: nodes with disks, bad links, clients, an administrator.

All that happens follows from a `Scenario`: the same one gives the same trace, byte for byte.
`Violation` names the first invariant that fails.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kafkawire.metadata import MetadataImage, TopicIdPartition
from kafkawire.node import Effect, Published, Stopped
from kafkawire.node.invariants import Replica, Violation, stored
from kafkawire.primitives import Message
from kafkawire.raft import LeaderChanged
from kafkawire.replication import Partition, ReplicaChanged, ReplicaState

from .checker import Checker
from .clients import CREATE_VERSION, create_topic
from .faults import FAULTS, FaultyNetwork
from .network import CLIENT, Callback, Process
from .scenario import Fault, Scenario
from .workload import ADMIN, MAIN, Workload

HEALED_AFTER: Final = 2.0
"""Seconds from the last faults until all faults end."""
QUIET_AFTER: Final = 2.0
"""Seconds from then until no producer goes on."""
CATCH_UP: Final = 25.0
"""Seconds within which everything catches up."""
CHECK_EVERY: Final = 0.5


class Simulation(FaultyNetwork):
    """One run of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.scenario = scenario
        self.duplicates = scenario.duplicates
        self.checker = Checker()
        self.workload = Workload(self)
        self._compared: dict[tuple[int, int], int] = {}
        self.observers.append(self.observe)

    def simulate(self) -> str:
        """Run it all; return the digest of the trace. Raises Violation."""
        for id in self.processes:
            self.start(id)
        self.at(1.0, self.create_main)
        for fault in self.scenario.faults:
            self.at(fault.at, lambda fault=fault: self.happen(fault))  # type: ignore[misc]
        self.at(CHECK_EVERY, self.check)
        healed = self.scenario.faulty_until + HEALED_AFTER
        self.at(healed, self.heal)
        self.run(healed + QUIET_AFTER)
        self.workload.running = False
        if not self.run(self.now + CATCH_UP, self.is_settled):
            raise Violation(f"no progress: {self.unsettled()}")
        self.check_end()
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    def create_main(self) -> None:
        """Create the topic of all seeds, once there is a controller; then one to delete."""
        image = self.image()
        if image is not None and image.topic(MAIN) is not None:
            self.workload.administer("create")
            return
        if self.live():
            request = create_topic(MAIN, 2, 3, min_insync_replicas="2")
            self.call(self.rng.choice(self.live()), CREATE_VERSION, request, lambda _: None)
        self.at(self.now + 1.0, self.create_main)

    # -- for the clients

    def image(self) -> MetadataImage | None:
        """Return the newest metadata that a running broker has published."""
        servers = [self.server(each) for each in self.live()]
        images = [each.loader.image for each in servers if each is not None and each.is_published]
        return max(images, key=lambda image: image.offset, default=None)

    def call(self, target: int, version: int, body: Message, callback: Callback) -> None:
        """Send a request of a client."""
        self.request(CLIENT, target, "PLAINTEXT", version, body, callback)

    def happen(self, fault: Fault) -> None:
        """Let something go wrong, if that breaks no promise by itself."""
        self.log(f"fault {fault}")
        if fault.kind in ADMIN:
            self.workload.administer(fault.kind)
            return
        process = self.processes[fault.node]
        if process.node is not None:
            FAULTS[fault.kind](self, fault, process)

    # -- what must hold

    def observe(self, process: Process, effect: Effect) -> None:
        """Check what a node reports."""
        id = process.config.node_id
        match effect:
            case LeaderChanged(leader, epoch) if leader is not None:
                self.checker.quorum_led(epoch, leader)
            case ReplicaChanged(key, ReplicaState.LEADER, epoch):
                self.log(f"{id} leads {key.partition} in {epoch}")
                self.checker.led(key, epoch, id)
                self._check_leader(id, key)
            case Published():
                self._learn(effect)
                if self.unclean.get(id, process.incarnation) < process.incarnation:
                    self._recovered(id, process)
                self._check_strays(id, effect.image)
            case Stopped(failure):
                self._learn_uncommitted()
                if failure is not None and id not in self.unclean:
                    raise Violation(f"node {id} failed: {failure}")
                self.at(self.now + 1.0, lambda: self.start(id))

    def _check_leader(self, id: int, key: TopicIdPartition) -> None:
        """Check that the leader of the newest epoch has everything."""
        partition = self.leader(key)
        if partition is not None and partition.broker.broker_id == id:
            self.checker.complete(key, partition.log, f"leader {id}")

    def _check_strays(self, id: int, image: MetadataImage) -> None:
        """Check that a broker has the logs of its replicas alone, of the right topics."""
        server = self.server(id)
        for each in server.logs.partitions if server is not None else ():
            topic = image.topic(each.topic)
            found = None if topic is None else topic.partitions.get(each.partition)
            if topic is None or found is None or id not in found.replicas:
                raise Violation(f"broker {id} has a log of {each}, which is not its replica")
            if server is not None and server.logs.topic_id(each) != topic.topic_id:
                raise Violation(f"broker {id} has the log of another topic for {each}")

    def replica(self, id: int, key: TopicIdPartition) -> Partition | None:
        server = self.server(id)
        return None if server is None else server.replicas.partitions.get(key)

    def is_offline(self, id: int, key: TopicIdPartition) -> bool:
        """Return whether a replica is in a log directory that has failed."""
        server = self.server(id)
        return server is not None and key in server.replicas.replicas.offline

    def leader(self, key: TopicIdPartition) -> Partition | None:
        """Return the replica that leads in the newest epoch, if its broker runs."""
        for id in self.live():
            partition = self.replica(id, key)
            newest = self.checker.newest.get(key)
            if partition is not None and partition.is_leader and partition.leader_epoch == newest:
                return partition
        return None

    def check(self) -> None:
        """Check logs; let clients of new partitions begin."""
        self.workload.follow()
        for key in self.workload.producers:
            leader, known = self.leader(key), self.known.get(key)
            if leader is None or known is None:
                continue
            for id in leader.isr.maximal & set(known.isr):  # it may not know who was fenced
                other = self.replica(id, key)
                if other is not None and id not in self.unclean:
                    who = Replica(id, self.processes[id].incarnation, other.log)
                    self.checker.agree(key, leader.log, who)
        for id, process in self.processes.items():
            if process.node is not None:
                self._check_metadata(id, process)
        self.at(self.now + CHECK_EVERY, self.check)

    def _check_metadata(self, id: int, process: Process) -> None:
        assert process.node is not None
        raft = process.node.parts.raft
        end = raft.client.high_watermark
        start = max(self._compared.get((id, process.incarnation), 0), raft.log.start_offset)
        if start < end:
            self.checker.metadata(id, raft.log.read(start, 1 << 30), end)
            self._compared[id, process.incarnation] = end

    # -- the end

    def is_settled(self) -> bool:
        """Return whether everything caught up."""
        return not self.unsettled()

    def unsettled(self) -> str:
        """Say what has not caught up."""
        image = self.image()
        if image is None:
            return "no metadata"
        if set(self.live()) != {each for each in self.brokers if image.is_active(each)}:
            return f"brokers {image.brokers}"
        if len(self.live()) < len(self.brokers) or image.topic(MAIN) is None:
            return "brokers or topics missing"
        for topic, index, partition in image.partitions():
            key = TopicIdPartition(topic.topic_id, index)
            leader = self.leader(key)
            offline = {each for each in partition.replicas if self.is_offline(each, key)}
            if leader is None or set(partition.isr) != set(partition.replicas) - offline:
                return f"{topic.name}-{index}: {partition}"
            ends = {
                (replica.log.log_end_offset, replica.log.high_watermark)
                for each in partition.replicas
                if (replica := self.replica(each, key)) is not None
            }
            if len(ends) != 1 or len(set(next(iter(ends)))) != 1:
                return f"{topic.name}-{index}: ends {ends}"
        return ""

    def check_end(self) -> None:
        """Check all records and all metadata."""
        image = self.image()
        assert image is not None
        for key, producer in self.workload.producers.items():
            leader = self.leader(key)
            if leader is None or image.partition(key) is None:
                continue
            self.checker.complete(key, leader.log, "the leader at the end")
            if producer.number >= 0 and not leader.log.log_start_offset:
                values = self.values(leader)
                self.checker.once_in_order(values, producer.name, producer.acknowledged)
        for id in self.live():
            server = self.server(id)
            if server is not None and server.loader.offset == image.offset:
                different = server.loader.image.differences(image)
                if different:
                    raise Violation(f"broker {id} has other metadata: {different}")

    def values(self, partition: Partition) -> list[bytes]:
        """Return all values of a log."""
        log = partition.log
        return list(stored(log, log.log_start_offset, log.log_end_offset).values())
