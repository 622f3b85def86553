"""The machines of a node, as its front uses them: requests by token, and the effects in order.

Effects wait in a queue until the event that led to them is handled, so handlers are never
called from within handlers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from ...broker.forwarding import AnyPlan, Plan, Submitted
from ...broker.machines import Controllers
from ...broker.request import DELAYED, Outcome, Request
from ...errors import LocalProtocolError
from ...messages import REGISTRY
from ...messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ...metadata import TopicIdPartition
from ...primitives import Message
from ...protocol import ErrorCode
from ...replication import Append, AppendResult, Partition, ReplicaManager
from ...replication.appending import ALL
from ...replication.log.replica_log import Validate
from ...storage.producer_entry import ProducerStateEntry
from ..broker.replica_log import StoredReplicaLog
from ..effects import Effect, Respond, SendRequest
from ..events import Event, RequestReceived
from ..node import Node

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)
NO_EPOCH: Final = -1


class NodeMachines:
    """A node behind its handlers.

    timeout: of appends, in seconds. listeners: connection -> the name of its listener. own: the
    listener of the node's own requests.
    """

    def __init__(self, node: Node, timeout: float, listeners: Mapping[int, str], own: str) -> None:
        self.node = node
        self._timeout = timeout
        self._listeners = listeners
        self._own = own
        self.effects: deque[Effect] = deque()
        """What the node returned and was not handled yet."""
        self._submitted: dict[int, Submitted] = {}
        self._delayed: dict[int, int] = {}
        """Connection -> the token of its request that the replica manager delays."""
        self._tokens = 0

    def start(self, now: float) -> None:
        """Start the node."""
        self.effects.extend(self.node.start(now))

    def handle(self, event: Event, now: float) -> None:
        """Let the node handle an event."""
        self.effects.extend(self.node.handle(event, now))

    def advance(self, now: float) -> None:
        """Let the node do what is due."""
        due = self.node.next_deadline()
        if due is not None and due <= now:
            self.effects.extend(self.node.advance(now))

    # -- requests

    def submit(
        self, request: Request | None, body: Message, plan: AnyPlan | None, now: float
    ) -> None:
        """Hand a request to the node: that of a client, or one of its own."""
        self._tokens += 1
        token = self._tokens
        listener = self._own if request is None else self._listeners[request.connection]
        if request is None or type(body) is not type(request.body):
            version = REGISTRY.get(type(body).__name__).last
        else:
            version = request.version
        self._submitted[token] = Submitted(request, body, plan)
        try:
            self.handle(RequestReceived(token, listener, version, body), now)
        except LocalProtocolError:
            del self._submitted[token]
            raise

    def responded(self, effect: Respond) -> Submitted | None:
        """Return the request of a response."""
        submitted = self._submitted.pop(effect.token, None)
        request = None if submitted is None else submitted.request
        if request is not None:
            self._delayed.pop(request.connection, None)
        return submitted

    def forget(self, connection: int) -> None:
        """Drop a delayed Fetch, as its client has disconnected: it may wait for weeks.

        Other requests complete, as what they wait for does not depend on clients.
        """
        token = self._delayed.get(connection)
        broker = self.node.parts.broker
        if token is not None and broker is not None and broker.replicas.fetches.forget(token):
            del self._submitted[token], self._delayed[connection]

    def respond(
        self,
        request: Request,
        operation: Callable[[ReplicaManager, int], M | None],
        plan: Plan[M, R],
        now: float,
    ) -> R | Outcome:
        """Let the replica manager handle a request; its response may be delayed."""
        self._tokens = token = self._tokens + 1
        response, effects = self.node.call(operation, token, now)
        self.effects += effects
        if response is not None:
            return plan.response(response, now)
        self._submitted[token] = Submitted(request, request.body, plan)
        self._delayed[request.connection] = token
        return DELAYED

    def append(
        self, key: TopicIdPartition, batch: bytes, now: float, validate: Validate | None = None
    ) -> tuple[int, AppendResult | None]:
        """Append as the leader of a partition; return the token, and the result if it is known.

        Otherwise `AppendCompleted` with the token follows. validate: how the batch is validated,
        if it is not one that the broker alone writes.
        """
        how = Append(ALL, self._timeout, validate is None, validate)
        self._tokens += 1
        result, effects = self.node.call(
            lambda replicas, token: replicas.appends.append(token, key, batch, how, now),
            self._tokens,
            now,
        )
        self.effects.extend(effects)
        if self.node.stopped:  # it failed on this append
            result = AppendResult(ErrorCode.KAFKA_STORAGE_ERROR)
        return self._tokens, result

    def delete_before(self, topic: str, index: int, offset: int, now: float) -> None:
        """Delete the records of a partition before an offset, as its leader."""
        partition = DeleteRecordsPartition(partition_index=index, offset=offset)
        body = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])])
        self._tokens += 1
        _, effects = self.node.call(
            lambda replicas, token: replicas.deletions.delete_records(token, body, now),
            self._tokens,
            now,
        )
        self.effects.extend(effects)

    # -- requests of this node to others, besides those of the machines

    def send(self, broker_id: int, version: int, body: Message) -> int | None:
        """Send a request to a broker; return its token, or None if it is not registered.

        The token is negative, so that it is none of the machines'.
        """
        destination = self.node.parts.broker_at(broker_id)
        if destination is None:
            return None
        self._tokens += 1
        self.effects.append(SendRequest(-self._tokens, destination, version, body))
        return -self._tokens

    # -- the broker

    def replica(self, key: TopicIdPartition) -> Partition | None:
        """Return a replica of this node."""
        return self.node.partitions.get(key)

    def watch(self, key: TopicIdPartition, is_watched: bool) -> None:
        """Have the high watermark of a partition reported, or no more."""
        broker = self.node.parts.broker
        if broker is not None and is_watched:
            broker.replicas.replicas.watched.add(key)
        elif broker is not None:
            broker.replicas.replicas.watched.discard(key)

    def producers(self, key: TopicIdPartition) -> Mapping[int, ProducerStateEntry]:
        """Return the producers of a partition, by their ids."""
        replica = self.replica(key)
        log = None if replica is None else replica.log
        return log.log.producers.producers if isinstance(log, StoredReplicaLog) else {}

    def controllers(self) -> Controllers:
        """Return the voters of the quorum."""
        client = self.node.parts.raft.client
        voters = [each for each in client.voters.voters if each.endpoints]
        return Controllers(
            client.leader_id, {each.key.id: each.endpoints[0][1:] for each in voters}
        )

    def kraft_version(self) -> int:
        """Return the kraft.version of the quorum."""
        return self.node.parts.raft.client.kraft_version

    @property
    def is_broker(self) -> bool:
        """Whether the node is a broker, perhaps beside its controller."""
        return self.node.parts.broker is not None

    def broker_epoch(self) -> int:
        """Return the epoch of the broker's registration; -1 for none."""
        broker = self.node.parts.broker
        return NO_EPOCH if broker is None else broker.lifecycle.epoch
