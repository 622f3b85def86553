"""A leader or follower by itself, and requests for it."""

from __future__ import annotations

from typing import Any, Final

from kafkawire.messages.alter_partition_request import AlterPartitionRequest
from kafkawire.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kafkawire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.metadata import (
    BrokerRegistration,
    MetadataLoader,
    PartitionRegistration,
    TopicIdPartition,
)
from kafkawire.metadata.snapshot import registration_record
from kafkawire.primitives import Message
from kafkawire.replication import (
    Effect,
    MemoryLog,
    MetadataPublished,
    Partition,
    Registered,
    ReplicaManager,
    ReplicationConfig,
    RequestReceived,
    Respond,
    ResponseReceived,
    SendRequest,
)

from .clients import batch
from .controller import created

ID: Final = b"topic-of-16-byte"
KEY: Final = TopicIdPartition(ID, 0)
CONFIG: Final = ReplicationConfig()


def broker(broker_id: int, epoch: int | None = None, **fields: Any) -> BrokerRegistration:
    """Make the registration of a broker that is not fenced."""
    given = {"fenced": False, **fields}
    return BrokerRegistration(broker_id, bytes(16), broker_id if epoch is None else epoch, **given)


class Harness:
    """Broker 1 with one partition of replicas 1, 2 and 3; epochs of brokers are their ids."""

    def __init__(self, config: ReplicationConfig = CONFIG, min_isr: int = 2) -> None:
        self.now = 0.0
        self.log = MemoryLog()
        self.sent: list[SendRequest] = []
        self.responses: dict[int, Any] = {}
        self.effects: list[Effect] = []
        self.machine = ReplicaManager(1, config, lambda _: self.log, self.now)
        self.tokens = 0
        self.loader = MetadataLoader()
        self.handle(Registered(1))
        self.publish(
            *(registration_record(broker(each, rack=f"r{each}")) for each in (1, 2, 3)),
            *created(ID, "t", min_isr),
        )

    @property
    def partition(self) -> Partition:
        return self.machine.partitions[KEY]

    def handle(self, event: Any) -> None:
        self._take(self.machine.handle(event, self.now))

    def advance(self, to: float) -> None:
        """Let time pass, deadline by deadline."""
        while (due := self.machine.next_deadline()) <= to:
            self.now = max(self.now, due)
            self._take(self.machine.advance(self.now))
        self.now = to

    def _take(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            if isinstance(effect, SendRequest):
                self.sent.append(effect)
            elif isinstance(effect, Respond):
                self.responses[effect.token] = effect.body

    def metadata(
        self, leader: int = 1, epoch: int = 0, isr: tuple[int, ...] = (1, 2, 3), version: int = 0
    ) -> None:
        made = PartitionRegistration((1, 2, 3), isr, leader, epoch, version)
        self.publish(made.record(*KEY))

    def publish(self, *records: Message) -> None:
        """Append to the metadata log."""
        delta = self.loader.apply(records, self.loader.offset + 1)
        self.handle(MetadataPublished(self.loader.image, delta))

    def request(self, version: int, body: Message) -> int:
        """Send a request; return its token."""
        self.tokens += 1
        self.handle(RequestReceived(self.tokens, version, body))
        return self.tokens

    def produce(self, *values: bytes, acks: int = -1, timeout_ms: int = 1000) -> int:
        data = PartitionProduceData(index=0, records=batch(list(values)))
        topic = TopicProduceData(name="t", partition_data=[data])
        return self.request(9, ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic]))

    def produced(self, token: int) -> Any:
        return self.responses[token].responses[0].partition_responses[0]

    def fetch(self, replica: int, offset: int, **more: Any) -> int:
        """Fetch as a follower, or as a consumer (-1)."""
        partition = FetchPartition(
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=more.pop("epoch", 0),
            last_fetched_epoch=more.pop("last_epoch", -1),
            log_start_offset=more.pop("start", 0),
        )
        body = FetchRequest(
            replica_state=ReplicaState(
                replica_id=replica, replica_epoch=more.pop("replica_epoch", replica)
            ),
            topics=[FetchTopic(topic_id=ID, partitions=[partition])],
            **more,
        )
        return self.request(17, body)

    def fetched(self, token: int) -> Any:
        return self.responses[token].responses[0].partitions[0]

    def last(self, kind: type) -> SendRequest:
        """Return the last request of a kind that was sent."""
        return [each for each in self.sent if isinstance(each.body, kind)][-1]

    def proposals(self) -> list[list[tuple[int, int]]]:
        """List the ISRs that were proposed, with broker epochs."""
        return [
            [
                (each.broker_id, each.broker_epoch)
                for each in sent.body.topics[0].partitions[0].new_isr_with_epochs
            ]
            for sent in self.sent
            if isinstance(sent.body, AlterPartitionRequest)
        ]

    def verdict(self, error: int = 0, isr: tuple[int, ...] = (), version: int = 1) -> None:
        """Respond to the last AlterPartition."""
        data = PartitionData(
            partition_index=0,
            error_code=error,
            leader_id=1,
            leader_epoch=self.partition.leader_epoch,
            isr=list(isr),
            partition_epoch=version,
        )
        body = AlterPartitionResponse(topics=[TopicData(topic_id=ID, partitions=[data])])
        self.handle(ResponseReceived(self.last(AlterPartitionRequest).token, body))
