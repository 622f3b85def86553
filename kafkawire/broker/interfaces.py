"""What request handlers need of their broker.

Law: handlers use nothing else. A result may be `DELAYED`: then the response follows by the
`reply_to` of the request. `kafkawire.node.front` implements it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from .fetched import Fetched
from .request import HandlerResult, Outcome, Request

if TYPE_CHECKING:
    from ..messages.delete_records_request import DeleteRecordsRequest
    from ..messages.delete_records_response import DeleteRecordsResponse
    from ..messages.fetch_request import FetchRequest
    from ..messages.fetch_response import FetchResponse
    from ..messages.init_producer_id_request import InitProducerIdRequest
    from ..messages.init_producer_id_response import InitProducerIdResponse
    from ..messages.list_offsets_request import ListOffsetsRequest
    from ..messages.list_offsets_response import ListOffsetsResponse
    from ..messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
    from ..messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
    from ..messages.produce_request import ProduceRequest
    from ..messages.produce_response import ProduceResponse
    from ..records import BatchBuilder


class Replicas(Protocol):
    """The partitions of which this broker has replicas."""

    def produce(
        self, request: Request, body: ProduceRequest, now: float, /
    ) -> ProduceResponse | Outcome:
        """Append records. With acks=0 the response says only which error closes the connection."""

    def fetch(
        self, request: Request, body: FetchRequest, now: float, /
    ) -> FetchResponse | Fetched | Outcome:
        """Read records."""

    def list_offsets(
        self, request: Request, body: ListOffsetsRequest, now: float, /
    ) -> ListOffsetsResponse | Outcome:
        """Look up offsets by timestamp."""

    def offsets_for_leader_epoch(
        self, request: Request, body: OffsetForLeaderEpochRequest, now: float, /
    ) -> OffsetForLeaderEpochResponse | Outcome:
        """Look up the end offsets of leader epochs."""

    def delete_records(
        self, request: Request, body: DeleteRecordsRequest, now: float, /
    ) -> DeleteRecordsResponse | Outcome:
        """Move log start offsets."""

    def forget(self, request: Request, /) -> None:
        """Drop a delayed operation: its client disconnected."""


class ProducerIdManager(Protocol):
    """Assigns producer ids and epochs."""

    def initialise(
        self, request: Request, body: InitProducerIdRequest, now: float, /
    ) -> InitProducerIdResponse | Outcome:
        """Assign a new producer id; a transactional id keeps its own, with the next epoch."""


class TransactionApis(Protocol):
    """The transactions that a broker coordinates, or takes part in."""

    def handle(self, request: Request, now: float, /) -> HandlerResult:
        """Process a request of a producer, or of another broker, about transactions."""


class CoordinatorLog(Protocol):
    """The partitions of `__consumer_offsets`, as their coordinators use them."""

    @property
    def partition_count(self) -> int: ...
    def append(self, index: int, builder: BatchBuilder, now: float, /) -> int:
        """Append records to a partition; return the offset after them."""

    def committed(self, index: int, /) -> int:
        """Return the high watermark of a partition: what is before it is not lost."""

    def batches(self, index: int, /) -> Iterable[bytes]:
        """Read a partition from its start, batch by batch."""
