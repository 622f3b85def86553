"""A replica that a test speaks with: sends it requests and responses, sees its effects."""

from __future__ import annotations

from typing import Any, TypeVar

from kafkawire.messages import vote_response
from kafkawire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kafkawire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kafkawire.primitives import ZERO_UUID, Message
from kafkawire.raft import (
    Effect,
    Endpoint,
    Event,
    KafkaRaftClient,
    MemoryLog,
    OffsetAndEpoch,
    RaftConfig,
    ReplicaKey,
    Reply,
    RequestReceived,
    ResponseReceived,
    Send,
    State,
    Voter,
    VoterSet,
    bootstrap_snapshot,
)
from kafkawire.raft.config import TOPIC, TOPIC_ID

T = TypeVar("T")
CLUSTER: str = "cluster"


def key(id: int) -> ReplicaKey:
    return ReplicaKey(id, bytes([id] * 16))


def endpoint(id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"node{id}", 9000 + id)


def voter_set(*ids: int) -> VoterSet:
    return VoterSet(tuple(Voter(key(id), (endpoint(id),)) for id in ids))


def _decoded(message: Message, version: int) -> Message:
    """Encode and decode a message."""
    kind: Any = type(message)
    copy: Message = kind.decode(message.encode(version), version)
    return copy


class Harness:
    """Replica 1 of the voters 1 to `voters`, and the time."""

    def __init__(
        self,
        voters: int = 3,
        *,
        dynamic: bool = True,
        log: MemoryLog | None = None,
        quorum_state: str | None = None,
        id: int = 1,
        max_bytes: int = 8 << 20,
    ) -> None:
        ids = voter_set(*range(1, voters + 1))
        self.log = MemoryLog() if log is None else log
        if dynamic and log is None:
            self.log.store_snapshot(OffsetAndEpoch(0, 0), bootstrap_snapshot(ids))
        self.config = RaftConfig(
            node_id=id,
            directory_id=key(id).directory_id,
            cluster_id=CLUSTER,
            voters=VoterSet(()) if dynamic else ids,
            endpoints=(endpoint(id),),
            max_bytes=max_bytes,
        )
        self.client = KafkaRaftClient(self.config, self.log, lambda: 0.5)
        self.now = 0.0
        self.effects: list[Effect] = []
        self._replies = 0
        self._keep(self.client.start(quorum_state, 0.0))

    def _keep(self, effects: list[Effect]) -> list[Effect]:
        self.effects += effects
        return effects

    def handle(self, event: Event) -> list[Effect]:
        return self._keep(self.client.handle(event, self.now))

    def after(self, seconds: float) -> list[Effect]:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        effects: list[Effect] = []
        while True:
            deadline = self.client.next_deadline()
            if deadline is None or deadline > end:
                break
            self.now = max(self.now, deadline)
            effects += self._keep(self.client.advance(self.now))
        self.now = end
        return effects

    def request(self, request: Message, version: int) -> Message | None:
        """Send a request as its bytes; return the response as from its bytes, None if it waits."""
        self._replies += 1
        copy = _decoded(request, version)
        effects = self.handle(RequestReceived(self._replies, copy, version))
        for effect in effects:
            if isinstance(effect, Reply) and effect.reply_to == self._replies:
                return _decoded(effect.response, version)
        return None

    def sent(self, kind: type[T]) -> list[tuple[Send, T]]:
        """List the requests of a kind that were sent."""
        return [
            (each, each.request)
            for each in self.effects
            if isinstance(each, Send) and isinstance(each.request, kind)
        ]

    def of(self, kind: type[T]) -> list[T]:
        """List the effects of a kind."""
        return [each for each in self.effects if isinstance(each, kind)]

    def grant(self, *ids: int) -> None:
        """Grant the vote or pre-vote that the replica requested of these nodes."""
        for id in ids:
            send, request = next(
                each for each in reversed(self.sent(VoteRequest)) if each[0].node.id == id
            )
            epoch = request.topics[0].partitions[0].replica_epoch
            partition = vote_response.PartitionData(
                leader_id=-1, leader_epoch=epoch, vote_granted=True
            )
            topic = vote_response.TopicData(topic_name=TOPIC, partitions=[partition])
            response = vote_response.VoteResponse(topics=[topic])
            self.handle(ResponseReceived(send.correlation_id, response))

    def lead(self) -> None:
        """Let the replica be elected by node 2."""
        self.after(1.6)
        assert self.client.state.value == "Prospective"
        self.grant(2)
        self.grant(2)
        assert self.client.state is State.LEADER

    def commit(self, *ids: int) -> None:
        """Let voters fetch all of the log."""
        self.after(0.03)
        for id in ids:
            self.request(fetch(self, id), 17)


def fetch(
    harness: Harness,
    id: int,
    offset: int | None = None,
    last_epoch: int | None = None,
    *,
    epoch: int | None = None,
    wait: int = 0,
    high_watermark: int = (1 << 63) - 1,
) -> FetchRequest:
    """Make a Fetch of a node; by default it has all of the log."""
    end = harness.log.end
    partition = FetchPartition(
        current_leader_epoch=harness.client.epoch if epoch is None else epoch,
        fetch_offset=end.offset if offset is None else offset,
        last_fetched_epoch=end.epoch if last_epoch is None else last_epoch,
        partition_max_bytes=1 << 20,
        replica_directory_id=key(id).directory_id,
        high_watermark=high_watermark,
    )
    return FetchRequest(
        cluster_id=CLUSTER,
        replica_state=ReplicaState(replica_id=id),
        max_wait_ms=wait,
        topics=[FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )


def vote(
    candidate: int,
    epoch: int,
    end: tuple[int, int] = (0, 0),
    *,
    pre_vote: bool = False,
    voter: int = 1,
    directory_id: bytes = ZERO_UUID,
    cluster_id: str = CLUSTER,
    topic: str = TOPIC,
) -> VoteRequest:
    """Make a Vote request for replica 1. end: offset and epoch of the candidate's log."""
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=key(candidate).directory_id if candidate >= 0 else ZERO_UUID,
        voter_directory_id=directory_id,
        last_offset=end[0],
        last_offset_epoch=end[1],
        pre_vote=pre_vote,
    )
    data = TopicData(topic_name=topic, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter, topics=[data])
