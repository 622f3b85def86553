"""The partitions that one broker of a cluster in memory leads, as its request handlers use them.

Law: all replicas of a partition share one log, so every request but a delayed Fetch completes at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..fetched import Fetched
from ..request import Outcome, Request
from .appending import Appender
from .reading import fetch
from .replica_manager import ReplicaManager

if TYPE_CHECKING:
    from ...messages.delete_records_request import DeleteRecordsRequest
    from ...messages.delete_records_response import DeleteRecordsResponse
    from ...messages.fetch_request import FetchRequest
    from ...messages.fetch_response import FetchResponse
    from ...messages.list_offsets_request import ListOffsetsRequest
    from ...messages.list_offsets_response import ListOffsetsResponse
    from ...messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
    from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
    from ...messages.produce_request import ProduceRequest
    from ...messages.produce_response import ProduceResponse

    Produce = Callable[[ReplicaManager, Appender, ProduceRequest, int, float], ProduceResponse]


class LocalReplicas:
    """`Replicas` of one broker."""

    def __init__(self, manager: ReplicaManager, appender: Appender) -> None:
        self.manager = manager
        self._appender = appender
        self._produce: Produce | None = None

    def produce(self, request: Request, body: ProduceRequest, now: float) -> ProduceResponse:
        """Append records."""
        if self._produce is None:
            # imported at first use, as handlers are: a cluster starts faster
            from .producing import produce

            self._produce = produce
        return self._produce(self.manager, self._appender, body, request.version, now)

    def fetch(
        self, request: Request, body: FetchRequest, now: float
    ) -> FetchResponse | Fetched | Outcome:
        """Read records, or delay the response until there are enough."""
        return fetch(self.manager, request, body, now)

    def list_offsets(
        self, request: Request, body: ListOffsetsRequest, _now: float
    ) -> ListOffsetsResponse:
        """Look up offsets by timestamp."""
        from .offsets import list_offsets

        return list_offsets(self.manager, body, request.version)

    def offsets_for_leader_epoch(
        self, _request: Request, body: OffsetForLeaderEpochRequest, _now: float
    ) -> OffsetForLeaderEpochResponse:
        """Look up the end offsets of leader epochs."""
        from .offsets import offsets_for_leader_epoch

        return offsets_for_leader_epoch(self.manager, body)

    def delete_records(
        self, _request: Request, body: DeleteRecordsRequest, now: float
    ) -> DeleteRecordsResponse:
        """Move log start offsets."""
        from .deleting import delete_records

        return delete_records(self.manager, self._appender, body, now)

    def forget(self, request: Request) -> None:
        """Drop a delayed Fetch."""
        self.manager.fetch_purgatory.take(request.reply_to)
