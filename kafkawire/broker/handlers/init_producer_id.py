"""InitProducerId: assigns a producer id and epoch (KIP-98, KIP-360).

v0   the first
v1   no new fields │ throttled after the response
v2   flexible
v3   request +producer_id +producer_epoch
v4   no new fields │ PRODUCER_FENCED may be returned
v5   no new fields │ TRANSACTION_ABORTABLE may be returned
v6   request +enable2_pc +keep_prepared_txn; response +ongoing_txn_producer_id
      +ongoing_txn_producer_epoch
"""

from __future__ import annotations

from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Outcome, Request

E = ErrorCode


def handle(
    broker: Broker,
    request: Request,
    body: InitProducerIdRequest,
    _connection: Connection,
    now: float,
) -> InitProducerIdResponse | Outcome:
    """Assign a new producer id; a transactional id keeps its own, with the next epoch."""
    if body.transactional_id == "":
        return error_response(body, E.INVALID_REQUEST)
    longest = broker.settings.number("transaction.max.timeout.ms")
    if body.transactional_id is not None and not 0 < body.transaction_timeout_ms <= longest:
        return error_response(body, E.INVALID_TRANSACTION_TIMEOUT)
    return broker.transactions.apis.initialise(request, body, now)


def error_response(_body: InitProducerIdRequest, error: ErrorCode) -> InitProducerIdResponse:
    """Return a response with the error."""
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
