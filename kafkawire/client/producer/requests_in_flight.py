"""Produce requests that are in flight, and what follows for their batches from each end of one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ...messages.api_key import ApiKey
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...protocol.error_code import ErrorCode
from ..cluster import Broker
from ..metrics import Metrics, tables
from ..requests import NoResponse, RequestMetadataUpdate, ResponseReceived, SendRequest, Sent
from .configuration import ProducerSettings
from .delivery_reports import DeliveryReports
from .events import Failure, ProducerEffect
from .produce_requests import results
from .sender import ProduceBatches, Sender


class RequestsInFlight:
    """The requests of a producer by their keys, which count up."""

    def __init__(
        self,
        settings: ProducerSettings,
        sender: Sender,
        delivery_reports: DeliveryReports,
        owner: str,
        metrics: Metrics | None = None,
    ) -> None:
        self._settings = settings
        self._sender = sender
        self._delivery_reports = delivery_reports
        self._owner = owner
        self._metrics = metrics
        self._serials = count()
        self._requests: dict[int, ProduceBatches] = {}

    def __bool__(self) -> bool:
        return bool(self._requests)

    def send(self, produce: ProduceBatches, now: float) -> SendRequest:
        """Return the request, which is in flight from now on."""
        if self._metrics is not None:
            self._measure(self._metrics, produce, now)
        serial = next(self._serials)
        self._requests[serial] = produce
        return SendRequest(
            self._owner,
            serial,
            produce.node,
            ApiKey.PRODUCE,
            produce.body,
            self._settings.request_timeout_s,
            has_response=self._settings.acks != 0,
        )

    def _measure(self, metrics: Metrics, produce: ProduceBatches, now: float) -> None:
        records = 0
        for _, batch in produce.batches:
            size = len(batch.tokens)
            records += size
            metrics.record(tables.BATCH_SIZE, batch.size, now)
            metrics.record(tables.QUEUE_TIME, (now - batch.created_at) * 1000, now)
            if batch.attempts:
                metrics.record(tables.RECORDS_RETRIED, size, now)
        metrics.record(tables.RECORDS_PER_REQUEST, records, now)
        metrics.record(tables.RECORDS_SENT, records, now)

    def on_response(self, event: ResponseReceived, now: float) -> Iterator[ProducerEffect]:
        """Handle the result of each batch."""
        produce = self._complete(event.request)
        assert isinstance(event.message, ProduceResponse)
        rows = results(event.message, produce.rows)
        endpoints = tuple(
            [
                Broker(each.node_id, each.host, each.port, each.rack)
                for each in event.message.node_endpoints
            ]
        )
        for queue, batch in produce.batches:
            row = rows.get((queue.topic, queue.partition))
            if row is None:
                row = PartitionProduceResponse(
                    error_code=ErrorCode.NETWORK_EXCEPTION, error_message="missing in the response"
                )
            yield from self._delivery_reports.complete(queue, batch, row, endpoints, now)

    def on_failure(self, event: NoResponse, now: float) -> Iterator[ProducerEffect]:
        """Handle a request without a response: its batches are sent again, or fail."""
        failure = Failure(event.code, event.reason, event.detail)
        if event.retriable:
            yield RequestMetadataUpdate()
        for queue, batch in self._complete(event.request).batches:
            if batch.done:
                queue.in_flight.remove(batch)
            elif event.retriable:
                self._delivery_reports.retry(queue, batch, failure, now)
            else:
                queue.in_flight.remove(batch)
                self._delivery_reports.fail(queue, batch, failure)

    def on_sent(self, event: Sent) -> None:
        """Handle a request that has no response (acks=0): its batches are delivered."""
        for queue, batch in self._complete(event.request).batches:
            queue.in_flight.remove(batch)
            if not batch.done:
                batch.deliver(-1, -1)

    def _complete(self, request: SendRequest) -> ProduceBatches:
        assert isinstance(request.key, int)
        produce = self._requests.pop(request.key)
        self._sender.completed(produce)
        return produce
