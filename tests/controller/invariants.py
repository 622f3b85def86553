"""What must hold in a simulated quorum, after every step.

The checks know the rules, not the code: transitions are checked record by record as they are
committed, states in the newest image of the leader.
"""

from __future__ import annotations

from kafkawire.controller import MetadataImage, MetadataLoader, PartitionRegistration, snapshot
from kafkawire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kafkawire.messages.create_topics_response import CreateTopicsResponse
from kafkawire.messages.partition_change_record import PartitionChangeRecord
from kafkawire.messages.register_broker_record import RegisterBrokerRecord
from kafkawire.messages.topic_record import TopicRecord
from kafkawire.metadata.indexes import PartitionIndexes, TopicIdPartition
from kafkawire.metadata.versions import EPOCH_BUMP_UNTIL
from kafkawire.primitives import Message

from .simulated import SimulatedCluster, Violation

UNCLEAN = "unclean.leader.election.enable"
INDEXES = ("replicas", "isr", "elr", "leaders", "directories", "imbalanced", "reassigning")


def require(holds: bool, rule: str, what: object = "") -> None:
    if not holds:
        raise Violation(rule, str(what))


class Invariants:
    """Follows the committed log, and looks at the leader."""

    def __init__(self, simulated: SimulatedCluster) -> None:
        self.simulated = simulated
        self.loader = MetadataLoader()
        self.position = 0
        self.responded = 0
        self.created: set[bytes] = set()
        self.blocks: set[int] = set()

    def check(self) -> None:
        """Check what is cheap."""
        self._follow()
        self._check_responses()
        newest = self.simulated.newest
        if newest is not None:
            check_image(newest, self.simulated.elr)

    def check_all(self) -> None:
        """Check also what reads the whole log."""
        self.check()
        simulated = self.simulated
        if simulated.leader is None:
            return
        simulated.advance(0.0)
        simulated.commit(len(simulated.log))
        self.check()
        image = simulated.controllers[simulated.leader].image
        require(
            image == self.loader.image, "image of the log", image.differences(self.loader.image)
        )
        newest = simulated.newest
        assert newest is not None
        require(newest == image, "newest is committed", newest.differences(image))
        check_indexes(image)
        check_snapshot(image)
        self._check_tail()

    def _check_tail(self) -> None:
        """An image from a snapshot in the middle and the records after it is the same."""
        records = self.simulated.log[: self.position]
        half = len(records) // 2
        first = MetadataLoader()
        for offset, record in enumerate(records[:half]):
            if record is not None:
                first.apply([record], offset)
        if first.in_transaction or first.image.offset < 0:
            return
        second = MetadataLoader()
        second.load_snapshot([each.message for each in snapshot(first.image)], half - 1)
        for offset, record in enumerate(records[half:], half):
            if record is not None:
                second.apply([record], offset)
        require(second.image == self.loader.image, "snapshot and tail")

    def _follow(self) -> None:
        log = self.simulated.log
        while self.position < self.simulated.committed:
            record = log[self.position]
            if record is not None:
                self._check_record(record)
            self.position += 1
        self._check_many()

    def _check_many(self) -> None:
        """Topics of one large request are all there, with all partitions, or none of them is."""
        together: dict[tuple[str, str], int] = {}
        for topic in self.loader.image.topics.values():
            if topic.name.startswith("many-"):
                _, number, topics, _, partitions = topic.name.split("-")
                whole = len(topic.partitions) == int(partitions)
                require(whole, "topics are created whole", topic)
                together[number, topics] = together.get((number, topics), 0) + 1
        for (number, topics), count in together.items():
            require(count == int(topics), "topics of a request are created together", number)

    def _check_record(self, record: Message) -> None:
        image = self.loader.image
        old: PartitionRegistration | None = None
        at = (b"", 0)
        if isinstance(record, PartitionChangeRecord):
            at = (record.topic_id, record.partition_id)
            old = image.partition(at)
        if isinstance(record, RegisterBrokerRecord):
            known = image.brokers.get(record.broker_id)
            if known is None or known.incarnation_id != record.incarnation_id:
                require(record.broker_epoch == self.position, "epoch is the record's offset")
                require(record.fenced, "a new incarnation is fenced")
        if isinstance(record, TopicRecord):
            self.created.add(record.topic_id)
        self.loader.apply([record], self.position)
        new = image.partition(at)
        if old is not None and new is not None:
            self._check_change(old, new, at)
        if isinstance(record, PartitionChangeRecord) and new is not None:
            elr = record.eligible_leader_replicas
            require(elr is None or tuple(elr) == new.elr, "records are applied whole", record)

    def _check_change(
        self, old: PartitionRegistration, new: PartitionRegistration, at: tuple[bytes, int]
    ) -> None:
        image = self.loader.image
        topic_id = at[0]
        require(new.partition_epoch == old.partition_epoch + 1, "partition epoch grows by 1", new)
        moved = new.leader != old.leader
        require(new.leader_epoch >= old.leader_epoch + moved, "a leader has its own epoch", new)
        left = set(old.replicas) - set(new.replicas)
        require(not left or new.leader_epoch > old.leader_epoch, "removal bumps the epoch", new)
        shrunk = self.simulated.level <= EPOCH_BUMP_UNTIL and set(old.isr) - set(new.isr)
        require(
            not shrunk or new.leader_epoch > old.leader_epoch, "old: smaller ISR, new epoch", new
        )
        name = image.topics[topic_id].name
        unclean = image.config(2, name).get(UNCLEAN) or image.config(4, "").get(UNCLEAN)
        if moved and new.leader >= 0 and unclean != "true":
            last = () if old.isr else old.last_known_elr  # its ELR may have lost its records
            joined = new.isr if old.is_reassigning and not new.is_reassigning else ()
            clean = new.leader in {*old.isr, *old.elr, *last, *joined}
            require(clean or at in self.simulated.forced, "election is clean", (old, new))
        reverted = (
            bool(old.adding) and set(old.isr) <= set(old.adding) and new.isr == new.replicas[:1]
        )
        for each in set(new.isr) - set(old.isr):
            may_enter = image.is_active(each) or reverted  # as in Kafka: it was in sync before
            require(may_enter, "only active replicas enter the ISR", (old, new))

    def _check_responses(self) -> None:
        """What was acknowledged is committed."""
        for sent, response in self.simulated.responses[self.responded :]:
            if isinstance(response, CreateTopicsResponse) and not sent.body.validate_only:
                for topic in response.topics:
                    committed = topic.error_code != 0 or topic.topic_id in self.created
                    require(committed, "acknowledged is committed", topic.name)
            if isinstance(response, AllocateProducerIdsResponse) and response.error_code == 0:
                block = range(
                    response.producer_id_start,
                    response.producer_id_start + response.producer_id_len,
                )
                ids = {block[0], block[-1], block[len(block) // 2]}
                require(not ids & self.blocks, "producer ids are given once", block)
                self.blocks |= ids
        self.responded = len(self.simulated.responses)


def check_image(image: MetadataImage, elr: bool) -> None:
    """Check the states of all partitions."""
    for topic, index, partition in image.partitions():
        where = f"{topic.name}-{index} {partition}"
        isr = set(partition.isr)
        require(isr <= set(partition.replicas), "ISR is of the replicas", where)
        require(len(isr) == len(partition.isr), "ISR has nobody twice", where)
        require(partition.leader == -1 or partition.leader in isr, "leader is in the ISR", where)
        require(bool(isr) or (elr and partition.leader == -1), "ISR is not empty", where)
        require(not isr & set(partition.elr), "nobody is in ISR and ELR", where)
        require(set(partition.elr) <= set(partition.replicas), "ELR is of the replicas", where)
        require(elr or not partition.elr, "no ELR unless enabled", where)
        active = {each for each in isr if image.is_active(each)}
        require(partition.leader == -1 or partition.leader in active, "leader is active", where)
        require(not active or partition.leader != -1, "who can lead leads", where)
        # with ELR: one that a reverted reassignment, begun by an unclean election, goes back to
        last = len(isr) == 1 and (not elr or partition.leader_recovery_state == 1)
        require(active == isr or last, "the ISR is active", where)
        known = bool(isr or partition.elr or partition.last_known_elr)
        require(known, "without an ISR, a partition knows its last leader", where)
        eligible = () if isr else partition.elr
        waits = partition.leader == -1 and any(map(image.is_active, eligible))
        require(not waits, "of the ELR, who can lead leads", where)
        _check_reassignment(partition, where)


def _check_reassignment(partition: PartitionRegistration, where: str) -> None:
    adding, removing = set(partition.adding), set(partition.removing)
    require(adding | removing <= set(partition.replicas), "reassigned are replicas", where)
    if adding or removing:
        target = [each for each in partition.replicas if each not in removing]
        done = bool(target) and set(target) <= set(partition.isr)
        require(not done, "reassignment completes", where)


def check_indexes(image: MetadataImage) -> None:
    """Build the indexes anew and compare."""
    made = PartitionIndexes()
    for topic, index, partition in image.partitions():
        made.update(TopicIdPartition(topic.topic_id, index), None, partition)
    for name in INDEXES:
        ours = {
            key: set(partitions)
            for key, partitions in getattr(image.indexes, name)._partitions.items()
        }
        anew = {key: set(partitions) for key, partitions in getattr(made, name)._partitions.items()}
        require(ours == anew, "indexes say what partitions say", name)


def check_snapshot(image: MetadataImage) -> None:
    """An image that is written and read is the same."""
    loader = MetadataLoader()
    loader.load_snapshot([each.message for each in snapshot(image)], image.offset)
    require(loader.image == image, "image of the snapshot", loader.image.differences(image))
    check_indexes(loader.image)
