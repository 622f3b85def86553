"""AllocateProducerIds (KIP-730): brokers get producer ids in blocks.

Blocks do not overlap; the record is committed before a broker gets its block.
"""

from __future__ import annotations

from typing import Final

from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from ...messages.producer_ids_record import ProducerIdsRecord
from ...protocol import ErrorCode
from ..state import ControllerState

BLOCK: Final = 1000
LARGEST: Final = 2**63 - 1


def allocate(
    state: ControllerState, body: AllocateProducerIdsRequest, _version: int, _now: float
) -> AllocateProducerIdsResponse:
    """Give the next block of producer ids to a broker."""
    if state.broker(body.broker_id, body.broker_epoch) is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    first = state.image.next_producer_id
    if first > LARGEST - BLOCK:
        return AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    state.write(
        ProducerIdsRecord(
            broker_id=body.broker_id,
            broker_epoch=body.broker_epoch,
            next_producer_id=first + BLOCK,
        )
    )
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK)
