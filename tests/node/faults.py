"""What goes wrong in a simulated cluster, if that breaks no promise by itself.

Records are on two brokers when they are acknowledged: one at a time may lose them, or be
without a log directory, and not the last that is eligible.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from kafkawire.metadata import PartitionRegistration, TopicIdPartition
from kafkawire.node import Published, ShutdownRequested
from kafkawire.node.broker.broker_server import BrokerServer
from kafkawire.storage import MemoryDisk, SharedBytes

from .clients import MOVE_VERSION, moved
from .network import CLIENT, Network, Process
from .scenario import Composition, Fault, Scenario

FAILING: Final = frozenset({"append", "fsync", "rename"})


class FaultyNetwork(Network):
    """Processes to which faults happen."""

    def __init__(self, scenario: Scenario) -> None:
        shared = SharedBytes(least=1) if scenario.composition is Composition.IN_MEMORY else None
        super().__init__(scenario.seed, scenario.configs(), two=scenario.two, shared=shared)
        self.brokers = list(range(1, scenario.brokers + 1))
        self.unclean: dict[int, int] = {}
        """Broker that may lose, or have lost, records -> its incarnation then."""
        self.known: dict[TopicIdPartition, PartitionRegistration] = {}
        """The newest of each partition that any node has published, running or not."""
        self.lasting: set[int] = set()
        """Brokers whose second directory is not repaired."""
        self.uncommitted: dict[TopicIdPartition, PartitionRegistration] = {}
        """What a controller decided, and may be committed later."""

    def server(self, id: int) -> BrokerServer | None:
        """Return the broker of a process that runs."""
        node = self.processes[id].node
        return None if node is None else node.parts.broker

    def live(self) -> list[int]:
        """List the brokers that run."""
        return [each for each in self.brokers if self.processes[each].node is not None]

    # -- what is known

    def _learn(self, effect: Published) -> None:
        """Note the newest partitions; those of deleted topics are gone."""
        for key in effect.delta.partitions:
            known, found = self.known.get(key), effect.image.partition(key)
            if found is None:
                self.known.pop(key, None)
            elif known is None or found.partition_epoch >= known.partition_epoch:
                self.known[key] = found

    def _learn_uncommitted(self) -> None:
        for node in self.running():
            controller = node.parts.controller
            if controller is not None and controller.is_active:
                for topic, index, found in controller.newest.partitions():
                    self.uncommitted[TopicIdPartition(topic.topic_id, index)] = found
        for key, found in list(self.uncommitted.items()):
            known = self.known.get(key)
            if known is not None and found.partition_epoch <= known.partition_epoch:
                del self.uncommitted[key]

    def may_fail(self, id: int) -> bool:
        """Return whether a broker may lose what is not durable, without breaking a promise.

        Records are on two brokers when they are acknowledged: one at a time may lose them, until
        the controller knows of it, and not the last that is eligible.
        """
        self._learn_uncommitted()
        if set(self.unclean) - {id}:
            return id not in self.brokers
        for partition in [*self.known.values(), *self.uncommitted.values()]:
            if {*partition.isr, *partition.elr} == {id}:
                return False
        return True

    def kill_node(self, fault: Fault, process: Process) -> None:
        """Kill a process; with its machine's power, what is not durable is lost."""
        if not self.may_fail(fault.node):
            return
        self.unclean[fault.node] = process.incarnation
        losses = self.rng.randrange if fault.kind == "power" else None
        self.kill(fault.node, losses)
        self.at(self.now + fault.seconds, lambda: self.start(fault.node))

    def shut_down(self, _fault: Fault, process: Process) -> None:
        self.handle(process, ShutdownRequested())

    def isolate(self, fault: Fault, _process: Process) -> None:
        """Cut a node off from the others, and from clients if `other` is even."""
        others = [*self.processes, *([CLIENT] if fault.other % 2 == 0 else [])]
        for other in others:
            self.blocked[fault.node, other] = self.now + fault.seconds
            self.blocked[other, fault.node] = self.now + fault.seconds

    def cut(self, fault: Fault, _process: Process) -> None:
        self.blocked[fault.node, fault.other] = self.now + fault.seconds

    def slow_down(self, fault: Fault, _process: Process) -> None:
        self.slow[fault.node] = self.now + fault.seconds

    def pause(self, fault: Fault, process: Process) -> None:
        process.paused_until = self.now + fault.seconds

    def jump(self, fault: Fault, process: Process) -> None:
        process.skew += fault.seconds
        if process.wake is not None:
            self._wake(process, process.wake)

    def fail_disk(self, fault: Fault, process: Process) -> None:
        """Let a disk be full, or fail, for a while."""
        if not self.may_fail(fault.node):
            return
        incarnation = self.unclean[fault.node] = process.incarnation
        if fault.kind == "full":
            process.disk.capacity = process.disk.used + 200
        else:
            process.disk.fault = _broken

        def repair() -> None:
            process.disk.capacity = process.disk.fault = None
            known = process.incarnation == incarnation or self._is_published(process)
            if known and process.node is not None:
                self._recovered(fault.node, process)

        self.at(self.now + fault.seconds, repair)

    def fail_directory(self, fault: Fault, process: Process) -> None:
        """Let the second directory of a broker fail; the broker goes on.

        It restarts with the directory after a while; never, if `other` is even.
        """
        if process.other is None or not self.may_fail(fault.node):
            return
        self.unclean[fault.node] = process.incarnation
        process.other.fault = _broken
        if fault.other % 2 == 0:
            self.lasting.add(fault.node)
            return
        self.at(self.now + fault.seconds, lambda: self.repair_directory(fault.node))

    def repair_directory(self, id: int) -> None:
        """Let a second directory work; a broker that did without it restarts when it may."""
        process = self.processes[id]
        if process.other is None or id in self.lasting:
            return
        process.other.fault = None
        server = self.server(id)
        if server is None:
            return  # it starts with the directory
        if not server.logs.offline_directories:
            self._recovered(id, process)
        elif self.may_fail(id):
            self.unclean[id] = process.incarnation
            self.kill(id)
            self.start(id)
        else:
            self.at(self.now + 0.5, lambda: self.repair_directory(id))

    def move_log(self, fault: Fault, _process: Process) -> None:
        """Move a log of a broker to its other directory."""
        server = self.server(fault.node)
        if server is None or not server.logs.partitions:
            return
        partition = self.rng.choice(server.logs.partitions)
        current = server.logs.directory_of(partition)
        others = [each.name for each in server.logs.directories if each is not current]
        if others:
            request = moved(partition, others[0])
            self.request(CLIENT, fault.node, "PLAINTEXT", MOVE_VERSION, request, lambda _: None)

    def _is_published(self, process: Process) -> bool:
        """Return whether the controller knows the incarnation, if it is a broker's."""
        broker = None if process.node is None else process.node.parts.broker
        return broker is None or broker.is_published

    def _recovered(self, id: int, process: Process) -> None:
        """Note that a node has nothing to lose any more, unless its disk may still fail."""
        other = process.other
        if process.disk.capacity is None and process.disk.fault is None and not _fails(other):
            self.unclean.pop(id, None)

    def heal(self) -> None:
        """End all faults."""
        self.log("healed")
        self.blocked.clear()
        self.slow.clear()
        self.duplicates = 0.0
        for id, process in self.processes.items():
            process.paused_until = 0.0
            process.disk.capacity = process.disk.fault = None
            self.repair_directory(id)
            self.start(id)


def _fails(disk: MemoryDisk | None) -> bool:
    return disk is not None and disk.fault is not None


def _broken(operation: str, path: str) -> float:
    if operation in FAILING:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)
    return 0.0


FAULTS: Final = {
    "kill": FaultyNetwork.kill_node,
    "power": FaultyNetwork.kill_node,
    "shutdown": FaultyNetwork.shut_down,
    "isolate": FaultyNetwork.isolate,
    "cut": FaultyNetwork.cut,
    "slow": FaultyNetwork.slow_down,
    "pause": FaultyNetwork.pause,
    "jump": FaultyNetwork.jump,
    "full": FaultyNetwork.fail_disk,
    "broken": FaultyNetwork.fail_disk,
    "directory": FaultyNetwork.fail_directory,
    "move": FaultyNetwork.move_log,
}
"""Kind -> what happens."""
