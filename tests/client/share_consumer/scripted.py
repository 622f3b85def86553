"""A share consumer machine in virtual time; the test is its coordinator and its leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TypeVar

from kafkawire.client.cluster import Broker, Partition, Topic
from kafkawire.client.consumer.events import Poll
from kafkawire.client.requests import (
    MetadataChanged,
    NoResponse,
    Reason,
    ResponseReceived,
    SendRequest,
)
from kafkawire.client.share_consumer import (
    AcknowledgementMode,
    AcquireMode,
    ShareConsumer,
    ShareConsumerConfig,
    ShareRecord,
    events,
)
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kafkawire.messages.share_acknowledge_response import (
    PartitionData as AcknowledgedPartition,
)
from kafkawire.messages.share_acknowledge_response import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafkawire.messages.share_fetch_request import ShareFetchRequest
from kafkawire.messages.share_fetch_response import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kafkawire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafkawire.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkawire.primitives import Message
from kafkawire.records import BatchBuilder

M = TypeVar("M", bound=Message)
ORDERS_ID = b"o" * 16
MEMBER_ID = "A" * 22
LOCK_S = 30.0
ACQUIRE = ApiKey.SHARE_FETCH
ACKNOWLEDGE = ApiKey.SHARE_ACKNOWLEDGE
HEARTBEAT = ApiKey.SHARE_GROUP_HEARTBEAT
BODIES: Mapping[ApiKey, type[Message]] = {
    ACQUIRE: ShareFetchRequest,
    ACKNOWLEDGE: ShareAcknowledgeRequest,
    HEARTBEAT: ShareGroupHeartbeatRequest,
}


class View:
    """A cluster of two brokers; broker 1 leads partition 0 of orders, broker 2 partition 1."""

    def __init__(self) -> None:
        self.brokers = {node: Broker(node, f"b{node}", 9092) for node in (1, 2)}
        self.topics: dict[str, Topic] = {}
        self.controller_id = 1
        self.cluster_id: str | None = None
        self.finalized_features: dict[str, int] = {}
        self.last_error = ""
        self.lead(0, 1)
        self.lead(1, 2)

    def lead(self, partition: int, node: int) -> None:
        """Let a broker lead a partition of orders."""
        before = self.topics.get("orders", Topic("orders", ORDERS_ID)).partitions
        partitions = {**before, partition: Partition("orders", partition, node, 1)}
        self.topics["orders"] = Topic("orders", ORDERS_ID, partitions=partitions)

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.topics[topic].partitions.get(index) if topic in self.topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((each.name for each in self.topics.values() if each.topic_id == topic_id), None)


class Scripted:
    """A machine, and what it has sent and returned. results: of commits, by key."""

    def __init__(
        self,
        mode: AcknowledgementMode = AcknowledgementMode.EXPLICIT,
        acquire: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> None:
        config = ShareConsumerConfig("g", acknowledgement_mode=mode, acquire_mode=acquire)
        self.view = View()
        self.machine = ShareConsumer(config, self.view, MEMBER_ID, rng=Random(0).random)
        self.now = 100.0
        self.requests: list[SendRequest] = []
        self.effects: list[object] = []

    # -- the machine

    def handle(self, event: events.ShareConsumerEvent) -> list[object]:
        return self._collect(self.machine.handle(event, self.now))

    def pass_time(self, seconds: float) -> list[object]:
        """Advance the time, deadline by deadline."""
        end, effects = self.now + seconds, list[object]()
        while (due := self.machine.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            effects += self._collect(self.machine.advance(self.now))
        self.now = end
        return effects

    def _collect(self, effects: Iterable[object]) -> list[object]:
        found = list(effects)
        self.requests += [each for each in found if isinstance(each, SendRequest)]
        self.effects += [each for each in found if not isinstance(each, SendRequest)]
        return found

    # -- requests

    def sent(self, api: ApiKey, to: int | None = None) -> list[SendRequest]:
        """Return the requests of that kind without an outcome."""
        return [each for each in self.requests if each.api is api and to in (None, each.to)]

    def pop(self, api: ApiKey, expected: type[M], to: int | None = None) -> tuple[SendRequest, M]:
        """Return the oldest request of that kind, which is in flight, and its message."""
        request = self.sent(api, to)[0]
        self.requests.remove(request)
        message = request.body.build(request.body.highest)
        assert isinstance(message, expected)
        return request, message

    def respond(self, request: SendRequest, message: Message) -> list[object]:
        node = request.to if isinstance(request.to, int) else 1
        version = request.body.highest
        return self.handle(ResponseReceived(request, version, message, node))

    def fail(self, request: SendRequest, reason: Reason = Reason.DISCONNECTED) -> list[object]:
        retriable = reason is not Reason.NO_VERSION
        sent = reason is not Reason.NO_VERSION
        return self.handle(NoResponse(request, reason, retriable, "why", sent=sent))

    def metadata_changed(self) -> None:
        self.handle(MetadataChanged(frozenset({"orders"})))

    # -- ways to records

    def join(self, *partitions: int) -> ShareGroupHeartbeatRequest:
        """Subscribe to orders, and be assigned these partitions."""
        self.handle(events.Subscribe(("orders",)))
        request, message = self.pop(HEARTBEAT, ShareGroupHeartbeatRequest)
        self.respond(request, heartbeat(1, *partitions))
        return message

    def poll(self, *partitions: PartitionData, to: int = 1) -> ShareFetchRequest:
        """Poll, and let a leader respond with these partitions."""
        self.handle(Poll())
        return self.fetched(*partitions, to=to)

    def fetched(self, *partitions: PartitionData, to: int = 1) -> ShareFetchRequest:
        """Let a leader respond to a fetch."""
        request, message = self.pop(ACQUIRE, ShareFetchRequest, to)
        self.respond(request, fetch_response(*partitions))
        return message

    def acknowledged(self, code: int = 0, to: int = 1) -> ShareAcknowledgeRequest:
        """Let a leader respond to acknowledgements."""
        request, message = self.pop(ACKNOWLEDGE, ShareAcknowledgeRequest, to)
        listed = [
            AcknowledgedPartition(partition_index=each.partition_index, error_code=code)
            for topic in message.topics
            for each in topic.partitions
        ]
        responses = [ShareAcknowledgeTopicResponse(topic_id=ORDERS_ID, partitions=listed)]
        self.respond(request, ShareAcknowledgeResponse(responses=responses))
        return message

    @property
    def delivered(self) -> list[ShareRecord]:
        """All records that polls have returned."""
        found = [each.records for each in self.effects if isinstance(each, events.Deliver)]
        return [record for records in found for record in records]

    @property
    def outcomes(self) -> list[tuple[tuple[int, int, int], int]]:
        """The ranges whose acknowledgements have ended, with error codes."""
        return [
            (tuple[int, int, int](each), 0 if effect.error is None else int(effect.error.code))
            for effect in self.effects
            if isinstance(effect, events.Acknowledged)
            for each in effect.ranges
        ]

    def result(self, key: object) -> dict[str, int] | None:
        """Return the error codes of a commit by partition; None while it waits."""
        for each in self.effects:
            if isinstance(each, events.Committed) and each.key == key:
                return {
                    str(where): 0 if error is None else int(error.code)
                    for where, error in each.results.items()
                }
        return None

    def kinds(self, kind: type[M] | type[object]) -> list[object]:
        """Return the effects of a kind."""
        return [each for each in self.effects if isinstance(each, kind)]


def heartbeat(epoch: int, *partitions: int, **fields: object) -> ShareGroupHeartbeatResponse:
    """A response that assigns partitions of orders."""
    listed = [TopicPartitions(topic_id=ORDERS_ID, partitions=list(partitions))]
    values: dict[str, object] = {
        "member_id": MEMBER_ID,
        "member_epoch": epoch,
        "heartbeat_interval_ms": 5000,
        "assignment": Assignment(topic_partitions=listed if partitions else []),
        **fields,
    }
    return ShareGroupHeartbeatResponse(**values)  # type: ignore[arg-type]


def partition(
    first: int = 0, last: int = -1, *, index: int = 0, count: int = 1, **fields: object
) -> PartitionData:
    """A partition with the records from first to last, all acquired."""
    number = last - first + 1
    values: dict[str, object] = {"partition_index": index, **fields}
    if number > 0:
        values |= {
            "records": batch(first, number),
            "acquired_records": [acquired(first, last, count)],
        }
    return PartitionData(**values)  # type: ignore[arg-type]


def acquired(first: int, last: int, count: int = 1) -> AcquiredRecords:
    return AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)


def fetch_response(*partitions: PartitionData, error_code: int = 0) -> ShareFetchResponse:
    topic = ShareFetchableTopicResponse(topic_id=ORDERS_ID, partitions=list(partitions))
    return ShareFetchResponse(
        responses=[topic] if partitions else [],
        acquisition_lock_timeout_ms=round(LOCK_S * 1000),
        error_code=error_code,
    )


def batch(first: int, number: int) -> bytes:
    """A record batch; the value of a record is its offset."""
    builder = BatchBuilder(base_offset=first)
    for offset in range(first, first + number):
        builder.append(None, b"%d" % offset)
    return builder.build()
