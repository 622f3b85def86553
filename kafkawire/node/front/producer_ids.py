"""Assigns producer ids from blocks of the controller, as Kafka's RPCProducerIdManager.

Law: a producer id is assigned once: what is left of a block is lost with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ...broker.network.request_channel import RequestChannel
from ...broker.request import DELAYED, Outcome, Request
from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from ...messages.init_producer_id_request import InitProducerIdRequest
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...primitives import Message
from ...protocol import ErrorCode
from .requests import Submit

E = ErrorCode
NOBODY: Final = -1


class NodeProducerIds:
    """`ProducerIdManager` of a node. broker_epoch: returns that of its registration."""

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        channel: RequestChannel,
        submit: Submit,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._submit = submit
        self._block = range(0)
        self._waiting: deque[int] = deque()
        """The `reply_to` of requests that wait for a block."""

    def initialise(
        self, request: Request, body: InitProducerIdRequest, now: float
    ) -> InitProducerIdResponse | Outcome:
        """Assign a producer id, when there is a block; transactions are not supported."""
        if body.transactional_id is not None:
            return _failed(E.UNSUPPORTED_VERSION)
        if self._block:
            return self._next()
        self._waiting.append(request.reply_to)
        if len(self._waiting) == 1:
            allocate = AllocateProducerIdsRequest(
                broker_id=self._node_id, broker_epoch=self._broker_epoch()
            )
            self._submit(None, allocate, None, now)
        return DELAYED

    def allocated(self, body: Message | None, now: float) -> None:
        """Assign ids of a new block to those that wait; they fail if there is none."""
        waiting, self._waiting = self._waiting, deque()
        if isinstance(body, AllocateProducerIdsResponse) and not body.error_code:
            first = body.producer_id_start
            self._block = range(first, first + body.producer_id_len)
        for reply_to in waiting:
            found = self._next() if self._block else _failed(E.COORDINATOR_LOAD_IN_PROGRESS)
            self._channel.respond(reply_to, found, now)

    def _next(self) -> InitProducerIdResponse:
        producer_id, self._block = self._block[0], self._block[1:]
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NOBODY, producer_epoch=NOBODY)
