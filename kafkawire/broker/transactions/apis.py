"""The APIs of transactions: messages to requests of coordinators, and their results to responses.

A request that the coordinator of this node does not handle gets its error at once; a leader
gets its markers written, whoever coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ...messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from ...messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from ...messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
)
from ...messages.api_key import ApiKey
from ...messages.end_txn_request import EndTxnRequest
from ...messages.end_txn_response import EndTxnResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...messages.write_txn_markers_request import WriteTxnMarkersRequest
from ...protocol import ErrorCode
from ...transactions import (
    EPOCH_BUMPED,
    AddPartitions,
    EndTransaction,
    InitProducerId,
    Result,
    TopicPartition,
    VerifyPartitions,
)
from ...transactions import Request as CoordinatorRequest
from ...transactions.responses import of_version, partitions_of, topic_results
from ..forwarding.topic_creation import TopicCreation
from ..groups.coordinators import partition_for
from ..machines import Machines
from ..metadata_cache import MetadataCache
from ..network.request_channel import RequestChannel
from ..request import DELAYED, HandlerResult, Outcome, Request
from ..topics import OFFSETS_TOPIC
from .coordinators import TransactionCoordinators
from .describing import describe_producers, describe_transactions, list_transactions
from .markers import NodeMarkers
from .offsets import TransactionalOffsets
from .producer_ids import ProducerIds

E = ErrorCode
SEVERAL_FROM: Final = 4
"""AddPartitionsToTxn: of brokers, with several transactions."""
EPOCH_FROM: Final = 5
"""EndTxn: its response has the next epoch."""
INIT_FENCED_FROM: Final = 4


class TransactionRequests:
    """The requests about the transactions that a broker coordinates, or takes part in."""

    def __init__(
        self,
        channel: RequestChannel,
        creation: TopicCreation,
        coordinators: TransactionCoordinators,
        markers: NodeMarkers,
        offsets: TransactionalOffsets,
        producer_ids: ProducerIds,
        machines: Machines,
        metadata: MetadataCache,
    ) -> None:
        self._channel = channel
        self._creation = creation
        self._coordinators = coordinators
        self._markers = markers
        self._offsets = offsets
        self._producer_ids = producer_ids
        self._machines = machines
        self._metadata = metadata

    def handle(self, request: Request, now: float) -> HandlerResult:
        """Process a request."""
        result = _HANDLERS[request.api_key](self, request, request.body, now)
        self._coordinators.run(now)
        return result

    # -- producers

    def initialise(
        self, request: Request, body: InitProducerIdRequest, now: float
    ) -> InitProducerIdResponse | Outcome:
        """Assign a producer id, or the next epoch of a transactional id."""
        transactional_id = body.transactional_id
        if transactional_id is None:
            return self._producer_ids.initialise(request, now)
        if body.enable2_pc or body.keep_prepared_txn:
            return InitProducerIdResponse(
                error_code=E.UNSUPPORTED_VERSION, producer_id=-1, producer_epoch=-1
            )

        def then(result: Result, now: float) -> None:
            error = of_version(result.error, request.version, INIT_FENCED_FROM)
            response = InitProducerIdResponse(
                error_code=error,
                producer_id=result.producer_id,
                producer_epoch=result.producer_epoch,
            )
            self._channel.respond(request.reply_to, response, now)

        self._coordinators.submit(
            lambda reply_to: InitProducerId(
                reply_to,
                transactional_id,
                body.transaction_timeout_ms,
                body.producer_id,
                body.producer_epoch,
                version=self._coordinators.version,
            ),
            then,
            now,
        )
        self._coordinators.run(now)
        return DELAYED

    def _end(self, request: Request, body: EndTxnRequest, now: float) -> HandlerResult:
        version = request.version

        def then(result: Result, now: float) -> None:
            response = EndTxnResponse(error_code=of_version(result.error, version))
            if version >= EPOCH_FROM and not result.error:
                response.producer_id = result.producer_id
                response.producer_epoch = result.producer_epoch
            self._channel.respond(request.reply_to, response, now)

        self._coordinators.submit(
            lambda reply_to: EndTransaction(
                reply_to,
                body.transactional_id,
                body.producer_id,
                body.producer_epoch,
                body.committed,
                EPOCH_BUMPED if version >= EPOCH_FROM else 0,
            ),
            then,
            now,
        )
        return DELAYED

    # -- partitions

    def _add_offsets(
        self, request: Request, body: AddOffsetsToTxnRequest, now: float
    ) -> HandlerResult:
        topic = self._creation.ensure_offsets_topic(now)
        if topic is None:
            return AddOffsetsToTxnResponse(error_code=E.COORDINATOR_NOT_AVAILABLE)
        partition = OFFSETS_TOPIC, partition_for(body.group_id, len(topic.partitions))

        def then(result: Result, now: float) -> None:
            error = of_version(result.error, request.version)
            response = AddOffsetsToTxnResponse(error_code=error)
            self._channel.respond(request.reply_to, response, now)

        self._coordinators.submit(
            lambda reply_to: AddPartitions(
                reply_to,
                body.transactional_id,
                body.producer_id,
                body.producer_epoch,
                frozenset({partition}),
            ),
            then,
            now,
        )
        return DELAYED

    def _add_partitions(
        self, request: Request, body: AddPartitionsToTxnRequest, now: float
    ) -> HandlerResult:
        if request.version >= SEVERAL_FROM:
            return self._add_several(request, body, now)
        partitions = partitions_of(body.v3_and_below_topics)
        unknown = {each for each in partitions if self._metadata.topics.partition(*each) is None}

        def respond(errors: Mapping[TopicPartition, ErrorCode], now: float) -> None:
            response = AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=topic_results(errors)
            )
            self._channel.respond(request.reply_to, response, now)

        if unknown:
            missing, rest = E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED
            respond({each: missing if each in unknown else rest for each in partitions}, now)
            return DELAYED

        def then(result: Result, now: float) -> None:
            respond(dict.fromkeys(partitions, of_version(result.error, request.version)), now)

        self._coordinators.submit(
            lambda reply_to: AddPartitions(
                reply_to,
                body.v3_and_below_transactional_id,
                body.v3_and_below_producer_id,
                body.v3_and_below_producer_epoch,
                frozenset(partitions),
            ),
            then,
            now,
        )
        return DELAYED

    def _add_several(
        self, request: Request, body: AddPartitionsToTxnRequest, now: float
    ) -> HandlerResult:
        """Add or verify partitions of several transactions, for another broker."""
        results: dict[str, AddPartitionsToTxnResult] = {}
        wanted = {each.transactional_id for each in body.transactions}
        for each in body.transactions:
            self._add_one(request, each, results, wanted, now)
        if not wanted:
            return AddPartitionsToTxnResponse()
        return DELAYED

    def _add_one(
        self,
        request: Request,
        body: AddPartitionsToTxnTransaction,
        results: dict[str, AddPartitionsToTxnResult],
        wanted: set[str],
        now: float,
    ) -> None:
        partitions = partitions_of(body.topics)

        def then(result: Result, now: float) -> None:
            errors = {
                each: result.error
                or (E.TRANSACTION_ABORTABLE if each in result.missing else E.NONE)
                for each in partitions
            }
            results[body.transactional_id] = AddPartitionsToTxnResult(
                transactional_id=body.transactional_id, topic_results=topic_results(errors)
            )
            if results.keys() == wanted:
                response = AddPartitionsToTxnResponse(results_by_transaction=[*results.values()])
                self._channel.respond(request.reply_to, response, now)

        def make(reply_to: int) -> CoordinatorRequest:
            who = body.transactional_id, body.producer_id, body.producer_epoch
            if body.verify_only:
                return VerifyPartitions(reply_to, *who, frozenset(partitions))
            return AddPartitions(reply_to, *who, frozenset(partitions), EPOCH_BUMPED)

        self._coordinators.submit(make, then, now)

    # -- leaders

    def _write_markers(
        self, request: Request, body: WriteTxnMarkersRequest, now: float
    ) -> HandlerResult:
        channel = self._channel
        self._markers.write(
            body, lambda response, now: channel.respond(request.reply_to, response, now), now
        )
        return DELAYED

    def _commit_offsets(self, request: Request, body: Any, now: float) -> HandlerResult:
        return self._offsets.handle(request, body, now)

    # -- what there is

    def _list(self, _request: Request, body: Any, now: float) -> HandlerResult:
        wall_ms = self._channel.context.wall_ms(now)
        return list_transactions(self._coordinators, body, wall_ms)

    def _describe(self, _request: Request, body: Any, _now: float) -> HandlerResult:
        return describe_transactions(self._coordinators, body)

    def _describe_producers(self, _request: Request, body: Any, _now: float) -> HandlerResult:
        return describe_producers(self._machines, self._metadata, body)


_Handler = Callable[[TransactionRequests, Request, Any, float], HandlerResult]
_HANDLERS: Final[Mapping[ApiKey, _Handler]] = {
    ApiKey.ADD_OFFSETS_TO_TXN: TransactionRequests._add_offsets,
    ApiKey.ADD_PARTITIONS_TO_TXN: TransactionRequests._add_partitions,
    ApiKey.DESCRIBE_PRODUCERS: TransactionRequests._describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: TransactionRequests._describe,
    ApiKey.END_TXN: TransactionRequests._end,
    ApiKey.LIST_TRANSACTIONS: TransactionRequests._list,
    ApiKey.TXN_OFFSET_COMMIT: TransactionRequests._commit_offsets,
    ApiKey.WRITE_TXN_MARKERS: TransactionRequests._write_markers,
}
