"""Responds to requests as events, for a caller without request handlers."""

from __future__ import annotations

from ..messages.delete_records_request import DeleteRecordsRequest
from ..messages.fetch_request import FetchRequest
from ..messages.list_offsets_request import ListOffsetsRequest
from ..messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from ..messages.produce_request import ProduceRequest
from ..primitives import Message
from .appending import Append, Appends
from .effects import Respond
from .events import RequestReceived
from .fetch_params import fetch_of, params_of, targets_of
from .fetching import Fetches
from .offsets import Deletions, Offsets
from .replicas import Replicas


class Requests:
    """The requests to a broker: those to append, to fetch, for offsets, and to delete."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.fetches = Fetches(replicas)
        self.appends = Appends(replicas)
        self.offsets = Offsets(replicas)
        self.deletions = Deletions(replicas)

    def handle(self, event: RequestReceived, now: float) -> None:
        """Handle a request; `Respond` is at once, or when the delayed operation completes."""
        response = self._response(event, now)
        if isinstance(event.body, ProduceRequest) and event.body.acks == 0:
            self.replicas.emit(Respond(event.token, None))
        elif response is not None:
            self.replicas.emit(Respond(event.token, response))

    def _response(self, event: RequestReceived, now: float) -> Message | None:
        token, version, body = event
        match body:
            case FetchRequest():
                params, targets = params_of(body, version), targets_of(body)
                fetch = fetch_of(self.replicas, params, body, targets)
                return self.fetches.fetch(token, fetch, now)
            case ProduceRequest():
                how = Append(body.acks, body.timeout_ms / 1000)
                return self.appends.produce(token, body, how, now)
            case ListOffsetsRequest():
                return self.offsets.list_offsets(body)
            case OffsetForLeaderEpochRequest():
                return self.offsets.for_leader_epoch(body)
            case DeleteRecordsRequest():
                return self.deletions.delete_records(token, body, now)
            case other:
                raise TypeError(f"not a request of replication: {type(other).__name__}")
