"""Assigns producer ids from blocks of the controller, as Kafka's RPCProducerIdManager.

A producer id is assigned once: what is left of a block is lost with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ...messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from ...messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from ...messages.init_producer_id_response import InitProducerIdResponse
from ...primitives import Message
from ...protocol import ErrorCode
from ..forwarding import Submit
from ..network.request_channel import RequestChannel
from ..request import DELAYED, Outcome, Request

NOBODY: Final = -1
Then = Callable[[int | None, float], None]


class ProducerIds:
    """The producer ids of a broker. broker_epoch: returns that of its registration."""

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
        self._waiting: deque[Then] = deque()
        """Who waits for a block."""

    def initialise(self, request: Request, now: float) -> InitProducerIdResponse | Outcome:
        """Assign a producer id to an idempotent producer, when there is a block."""

        def then(producer_id: int | None, now: float) -> None:
            self._channel.respond(request.reply_to, _response(producer_id), now)

        if self._block:
            return _response(self._next())
        self.take(then, now)
        return DELAYED

    def take(self, then: Then, now: float) -> None:
        """Assign a producer id; `then` is called with it, or with None if there is none."""
        if self._block:
            then(self._next(), now)
            return
        self._waiting.append(then)
        if len(self._waiting) == 1:
            allocate = AllocateProducerIdsRequest(
                broker_id=self._node_id, broker_epoch=self._broker_epoch()
            )
            self._submit(None, allocate, None, now)

    def allocated(self, body: Message | None, now: float) -> None:
        """Assign ids of a new block to those that wait; they fail if there is none."""
        waiting, self._waiting = self._waiting, deque()
        if isinstance(body, AllocateProducerIdsResponse) and not body.error_code:
            first = body.producer_id_start
            self._block = range(first, first + body.producer_id_len)
        for then in waiting:
            then(self._next() if self._block else None, now)

    def _next(self) -> int:
        producer_id, self._block = self._block[0], self._block[1:]
        return producer_id


def _response(producer_id: int | None) -> InitProducerIdResponse:
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return InitProducerIdResponse(error_code=error, producer_id=NOBODY, producer_epoch=NOBODY)
