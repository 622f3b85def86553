"""What a broker needs of the node that it is part of: its replicas, and the other brokers.

Calls are direct, and their effects wait until the request that led to them is handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..primitives import Message
from .forwarding import Plan
from .request import Outcome, Request

if TYPE_CHECKING:
    from ..metadata import TopicIdPartition
    from ..replication import AppendResult, Partition, ReplicaManager
    from ..replication.log.replica_log import Validate
    from ..storage.producer_entry import ProducerStateEntry

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)


class Controllers(NamedTuple):
    """The controllers of a cluster. leader_id: of the active one, None while there is none.

    addresses: id -> host and port.
    """

    leader_id: int | None
    addresses: Mapping[int, tuple[str, int]]


class Machines(Protocol):
    """The node below its broker; `kafkawire.node`, which composes both, has it."""

    def respond(
        self,
        request: Request,
        operation: Callable[[ReplicaManager, int], M | None],
        plan: Plan[M, R],
        now: float,
        /,
    ) -> R | Outcome:
        """Let the replica manager handle a request; its response may be delayed."""

    def forget(self, connection: int, /) -> None:
        """Drop a delayed Fetch: its client disconnected."""

    def replica(self, key: TopicIdPartition, /) -> Partition | None:
        """Return a replica of this node."""

    def append(
        self, key: TopicIdPartition, batch: bytes, now: float, /, validate: Validate | None = None
    ) -> tuple[int, AppendResult | None]:
        """Append as the leader; return a token, and the result if it is known at once.

        validate: how the batch is validated, if it is not one that the broker alone writes.
        """

    def delete_before(self, topic: str, index: int, offset: int, now: float, /) -> None:
        """Delete the records of a partition before an offset, as its leader."""

    def watch(self, key: TopicIdPartition, is_watched: bool, /) -> None:
        """Have the high watermark of a partition reported, as those of coordinators, or no more."""

    def producers(self, key: TopicIdPartition, /) -> Mapping[int, ProducerStateEntry]:
        """Return the producers of a partition, by their ids."""

    def send(self, broker_id: int, version: int, body: Message, /) -> int | None:
        """Send a request to a broker; return its token, or None if it is not registered."""

    def controllers(self) -> Controllers:
        """Return the controllers."""
