"""The steps of a simulation: what brokers, administrators and the quorum do.

An action checks at once what its request did to the newest image; what is checked of every
state is in `invariants`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from kafkawire.controller import MetadataImage
from kafkawire.messages import alter_partition_reassignments_request as reassignments
from kafkawire.messages import create_topics_request as topics
from kafkawire.messages import incremental_alter_configs_request as configs
from kafkawire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kafkawire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafkawire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkawire.messages.delete_topics_request import DeleteTopicsRequest
from kafkawire.messages.elect_leaders_request import ElectLeadersRequest
from kafkawire.messages.register_broker_record import RegisterBrokerRecord
from kafkawire.messages.unregister_broker_request import UnregisterBrokerRequest

from .invariants import require
from .simulated import BROKERS, CONTROLLERS, SESSION, SimulatedBroker, SimulatedCluster

NAMES: Final = ("a", "b", "c", "d.e", "d_e", "f")

MANY: Final = "many-{}-{}-{}-{}"
"""Topics of one request: its number, how many there are, which one, how many partitions."""
WRONG: Final = ("", "", "", "leader", "leader epoch", "partition epoch", "broker epoch")
"""What is wrong with an AlterPartition."""


class Clients:
    """What is known of brokers' sessions, to judge the controller."""

    def __init__(self, simulated: SimulatedCluster) -> None:
        self.simulated = simulated
        self.contact: dict[int, float] = {}
        self.reported: dict[int, int] = {}

    # -- quorum

    def elect(self, rng: Random) -> None:
        simulated = self.simulated
        simulated.elect(rng.randrange(CONTROLLERS), rng.randrange(4))
        self.reported = {}
        assert simulated.newest is not None
        self.contact = dict.fromkeys(simulated.newest.brokers, simulated.now)

    def commit(self, rng: Random) -> None:
        simulated = self.simulated
        left = len(simulated.log) - simulated.committed
        simulated.commit(
            simulated.committed + (left if rng.random() < 0.7 else rng.randint(0, left))
        )

    def learn(self, rng: Random) -> None:
        self.simulated.learn(rng.randrange(CONTROLLERS))

    def replace(self, rng: Random) -> None:
        self.simulated.replace(rng.randrange(CONTROLLERS))

    def former(self, rng: Random) -> None:
        """Ask a controller that leads no more, and may not know it."""
        former = [node for node in self.simulated.led if node != self.simulated.leader]
        if former:
            body = topics.CreateTopicsRequest(topics=[_topic(rng)])
            self.simulated.request_to(rng.choice(former), body, 7)

    # -- brokers

    def pass_time(self, rng: Random) -> None:
        """Let time pass, in which most brokers send heartbeats."""
        for _ in range(rng.randint(1, 4)):
            self.simulated.advance(rng.uniform(0.5, 4.0))
            for broker in self.simulated.brokers.values():
                if broker.up and rng.random() < 0.85:
                    self._heartbeat(broker, rng)
            if rng.random() < 0.6:
                self.commit(rng)

    def start(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if not broker.up:
            broker.incarnation += 1
            broker.up, broker.stopping, broker.epoch, broker.read = True, False, -1, -1
            if rng.random() < 0.5:
                broker.last_epoch = -1  # an unclean shutdown: it lost its epoch
            self._register(broker)

    def kill(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if rng.random() < 0.6:
            broker.up = False

    def stop(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        broker.stopping = broker.up and broker.epoch >= 0

    def impostor(self, rng: Random) -> None:
        """Start another process with the id of a broker that runs."""
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if broker.up:
            self._register(SimulatedBroker(broker.broker_id, 1000 + broker.incarnation, up=True))

    def _register(self, broker: SimulatedBroker) -> None:
        simulated = self.simulated
        newest = simulated.newest
        if newest is None:
            return
        old = newest.brokers.get(broker.broker_id)
        contact = self.contact.get(broker.broker_id, -SESSION)
        live = simulated.now < contact + SESSION and old is not None
        lost = old is None or broker.last_epoch != old.epoch
        simulated.request(broker.registration(), 4, broker)
        new = newest.brokers.get(broker.broker_id)
        if new is None or new == old:
            return
        if old is not None and old.incarnation_id != new.incarnation_id:
            taken = live and not old.in_controlled_shutdown
            require(not taken, "one live session per broker id", new)
        if old is None or old.incarnation_id != new.incarnation_id:
            self._check_start(newest, broker.broker_id, lost)
        self.contact[broker.broker_id] = simulated.now
        self.reported.pop(broker.broker_id, None)

    def _check_start(self, newest: MetadataImage, broker_id: int, lost: bool) -> None:
        for _, _, partition in newest.partitions():
            require(partition.leader != broker_id, "a new incarnation leads nothing", partition)
            if lost:
                require(broker_id not in partition.elr, "who lost records is not in ELR", partition)

    def heartbeat(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if broker.up:
            self._heartbeat(broker, rng)

    def stale_heartbeat(self, rng: Random) -> None:
        """Send the heartbeat of an incarnation that has ended."""
        newest = self.simulated.newest
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if newest is None or broker.broker_id not in newest.brokers:
            return
        before = newest.brokers[broker.broker_id]
        body = broker.heartbeat()
        body.broker_epoch = before.epoch - 1
        body.current_metadata_offset = len(self.simulated.log)
        body.want_fence = rng.random() < 0.3
        self.simulated.request(body, 2, None)
        require(newest.brokers[broker.broker_id] == before, "stale heartbeats do nothing", before)

    def _heartbeat(self, broker: SimulatedBroker, rng: Random) -> None:
        simulated = self.simulated
        newest = simulated.newest
        if newest is None:
            return
        if broker.epoch < 0:
            self._register(broker)
            return
        lag = 0 if rng.random() < 0.6 else rng.randrange(40)
        broker.read = max(broker.read, simulated.committed - 1 - lag)
        before = newest.brokers.get(broker.broker_id)
        body = broker.heartbeat()
        known = before is not None and before.epoch == broker.epoch
        at = len(simulated.log)
        responded = len(simulated.responses)
        simulated.request(body, 2, broker)
        after = newest.brokers.get(broker.broker_id)
        if not known or before is None or after is None:
            return
        if before.fenced and not after.fenced:
            offset = _last(simulated, RegisterBrokerRecord, broker.broker_id, at)
            require(broker.read >= offset, "who is unfenced has read its registration", after)
        if before.is_active and after.fenced:
            require(broker.stopping, "fenced without cause", before)
        if before.in_controlled_shutdown and not before.fenced and after.fenced:
            self._check_stop(newest, broker)
        self.contact[broker.broker_id] = simulated.now
        self.reported[broker.broker_id] = broker.read
        for _, response in simulated.responses[responded:]:
            if isinstance(response, BrokerHeartbeatResponse) and response.should_shut_down:
                broker.up = broker.up and not broker.stopping

    def _check_stop(self, newest: MetadataImage, broker: SimulatedBroker) -> None:
        simulated = self.simulated
        offset = max(
            offset
            for offset, each in enumerate(simulated.log)
            if isinstance(each, BrokerRegistrationChangeRecord)
            and each.broker_id == broker.broker_id
            and each.in_controlled_shutdown
        )
        for other in newest.brokers:
            if newest.is_active(other):
                read = self.reported.get(other, -1)
                require(read >= offset, "all know that a broker stops", (other, read, offset))

    def allocate(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        self.simulated.request(
            AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker.epoch),
            0,
            broker,
        )

    # -- partitions

    def alter_partition(self, rng: Random) -> None:
        """Let a leader change an ISR; sometimes with what it should not say."""
        newest = self.simulated.newest
        found = [] if newest is None else list(newest.partitions())
        if newest is None or not found:
            return
        topic, index, old = rng.choice(found)
        at = (topic.topic_id, index)
        wrong = rng.choice(
            ("", "", "", "leader", "leader epoch", "partition epoch", "broker epoch")
        )
        sender = rng.choice(old.replicas) if wrong == "leader" else old.leader
        registered = newest.brokers.get(sender)
        if registered is None:
            return
        isr = {sender, *(each for each in old.replicas if rng.random() < 0.6)}
        epochs = {key: each.epoch for key, each in newest.brokers.items()}
        states = [
            BrokerState(
                broker_id=each,
                broker_epoch=epochs.get(each, 0) - (wrong == "broker epoch" and each != sender),
            )
            for each in sorted(isr)
        ]
        body = PartitionData(
            partition_index=index,
            leader_epoch=old.leader_epoch - (wrong == "leader epoch"),
            partition_epoch=old.partition_epoch - (wrong == "partition epoch"),
            new_isr_with_epochs=states,
        )
        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=registered.epoch,
            topics=[TopicData(topic_id=topic.topic_id, partitions=[body])],
        )
        self.simulated.request(request, 3, None)
        if newest.partition(at) == old:
            return
        require(sender == old.leader, "only the leader changes the ISR", old)
        require(body.leader_epoch == old.leader_epoch, "leader epochs are compared", old)
        require(body.partition_epoch == old.partition_epoch, "partition epochs are compared", old)
        for each in states:
            broker = newest.brokers.get(each.broker_id)
            eligible = broker is not None and broker.is_active and broker.epoch == each.broker_epoch
            require(eligible, "replicas are eligible", each)

    def elect_leaders(self, rng: Random) -> None:
        unclean = rng.random() < 0.2
        newest = self.simulated.newest
        if unclean and newest is not None:
            self.simulated.forced |= set(newest.indexes.leaders.of(-1))
        body = ElectLeadersRequest(election_type=int(unclean), topic_partitions=None)
        self.simulated.request(body, 2, None)

    def reassign(self, rng: Random) -> None:
        newest = self.simulated.newest
        found = [] if newest is None else list(newest.partitions())
        if newest is None or not found:
            return
        topic, index, _ = rng.choice(found)
        count = min(len(newest.brokers), rng.randint(1, 3))
        chosen = rng.sample(sorted(newest.brokers), count) if rng.random() < 0.7 else None
        partition = reassignments.ReassignablePartition(partition_index=index, replicas=chosen)
        one = reassignments.ReassignableTopic(name=topic.name, partitions=[partition])
        self.simulated.request(
            reassignments.AlterPartitionReassignmentsRequest(topics=[one]), 1, None
        )

    # -- topics

    def create(self, rng: Random) -> None:
        body = topics.CreateTopicsRequest(topics=[_topic(rng)], validate_only=rng.random() < 0.1)
        self.simulated.request(body, 7, None)

    def create_many(self, rng: Random) -> None:
        """Create topics that are more than a slice; others come meanwhile, or time passes."""
        number = self.simulated.requests
        counts = [rng.randint(1, 20) for _ in range(rng.randint(1, 3))]
        body = topics.CreateTopicsRequest(
            topics=[
                topics.CreatableTopic(
                    name=MANY.format(number, len(counts), at, count),
                    num_partitions=count,
                    replication_factor=2,
                )
                for at, count in enumerate(counts)
            ]
        )
        self.simulated.request(body, 7, None)

    def go_on(self, rng: Random) -> None:
        """Let the leader go on with a large request, for a few slices."""
        simulated = self.simulated
        for _ in range(rng.randint(0, 3)):
            simulated.go_on()

    def create_partitions(self, rng: Random) -> None:
        topic = CreatePartitionsTopic(
            name=rng.choice(NAMES), count=rng.randint(1, 6), assignments=None
        )
        self.simulated.request(CreatePartitionsRequest(topics=[topic]), 3, None)

    def delete(self, rng: Random) -> None:
        newest = self.simulated.newest
        name = rng.choice(NAMES)
        self.simulated.request(DeleteTopicsRequest(topic_names=[name]), 5, None)
        if newest is not None and newest.topic(name) is None:
            require(not newest.config(2, name), "a deleted topic has no configs", name)

    def alter_configs(self, rng: Random) -> None:
        name = rng.choice(NAMES)
        key, value = rng.choice(
            (
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
                ("min.insync.replicas", str(rng.randint(1, 3))),
                ("retention.ms", "1000"),
            )
        )
        self.simulated.request(
            configs.IncrementalAlterConfigsRequest(
                resources=[
                    configs.AlterConfigsResource(
                        resource_type=2,
                        resource_name=name,
                        configs=[
                            configs.AlterableConfig(name=key, config_operation=0, value=value)
                        ],
                    )
                ]
            ),
            1,
            None,
        )

    def unregister(self, rng: Random) -> None:
        broker = self.simulated.brokers[rng.choice(BROKERS)]
        if not broker.up:
            self.simulated.request(UnregisterBrokerRequest(broker_id=broker.broker_id), 0, None)


def _topic(rng: Random) -> topics.CreatableTopic:
    name = rng.choice(NAMES)
    given = [topics.CreatableTopicConfig(name="retention.ms", value="7")]
    if rng.random() < 0.2:
        replicas = rng.sample(BROKERS, rng.randint(1, 3))
        manual = [topics.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
        return topics.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=manual
        )
    return topics.CreatableTopic(
        name=name,
        num_partitions=rng.randint(1, 4),
        replication_factor=rng.randint(1, 4),
        configs=given if rng.random() < 0.3 else [],
    )


def _last(simulated: SimulatedCluster, type: type, broker_id: int, end: int) -> int:
    return max(
        offset
        for offset, each in enumerate(simulated.log[:end])
        if isinstance(each, type) and getattr(each, "broker_id", None) == broker_id
    )


Action = Callable[[Clients, Random], None]
ACTIONS: Final[dict[Action, int]] = {
    Clients.pass_time: 12,
    Clients.heartbeat: 10,
    Clients.alter_partition: 14,
    Clients.commit: 6,
    Clients.create: 7,
    Clients.start: 8,
    Clients.kill: 4,
    Clients.reassign: 5,
    Clients.elect: 5,
    Clients.stop: 3,
    Clients.impostor: 2,
    Clients.stale_heartbeat: 2,
    Clients.elect_leaders: 3,
    Clients.alter_configs: 3,
    Clients.create_partitions: 2,
    Clients.allocate: 3,
    Clients.delete: 1,
    Clients.learn: 2,
    Clients.former: 2,
    Clients.replace: 1,
    Clients.unregister: 1,
    Clients.create_many: 2,
    Clients.go_on: 4,
}
"""Action -> how often it is taken."""
