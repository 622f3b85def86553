"""Applies quotas to the requests of clients.

Law: what was produced is stored, and its response is not delayed; what was fetched is not sent
while its client is throttled. Followers have no quotas here.
"""

from __future__ import annotations

from ....broker.fetched import Fetched
from ....broker.network.request_channel import RequestChannel
from ....broker.replication.sessions import NO_SESSION
from ....broker.request import Request
from ....messages.fetch_response import FetchableTopicResponse, FetchResponse
from ....messages.produce_response import ProduceResponse
from ....primitives import Message
from ....protocol import encode_frame
from ..plans import FetchPlan, ProducePlan
from ..requests import Submitted
from .client_quotas import FETCH, PRODUCE, ClientQuotas


class Throttling:
    """Counts bytes of clients against their quotas, and mutes those that exceed them."""

    def __init__(self, quotas: ClientQuotas, channel: RequestChannel) -> None:
        self.quotas = quotas
        self._channel = channel

    def response(self, submitted: Submitted, body: Message, now: float) -> Message | Fetched:
        """Return the response to a request of a client, throttled where it exceeds a quota."""
        request, plan = submitted.request, submitted.plan
        assert request is not None
        assert plan is not None
        if isinstance(plan, FetchPlan):
            assert isinstance(body, FetchResponse)
            return self._throttled(request, plan, body, now) or plan.response(body)
        response = plan.response(body)
        if isinstance(plan, ProducePlan):
            assert isinstance(response, ProduceResponse)
            response.throttle_time_ms = self.produced(request, now)
        return response

    def produced(self, request: Request, now: float) -> int:
        """Count the bytes of a Produce; return for how many ms its client is throttled."""
        who = request.user, request.client_id
        return self._mute(request, self.quotas.record(PRODUCE, *who, request.size, now), now)

    def most_fetched(self, request: Request) -> int | None:
        """Return how many bytes one Fetch may return; None for any."""
        return self.quotas.most(FETCH, request.user, request.client_id)

    def _throttled(
        self, request: Request, plan: FetchPlan, body: FetchResponse, now: float
    ) -> FetchResponse | None:
        """Return a response without records if the client is throttled; its session stays."""
        who = request.user, request.client_id
        if self.most_fetched(request) is None:
            return None
        size = _size(plan, body)
        throttle_ms = self._mute(request, self.quotas.record(FETCH, *who, size, now), now)
        if not throttle_ms:
            return None
        self.quotas.unrecord(FETCH, *who, size, now)
        session = plan.context.session
        return FetchResponse(
            throttle_time_ms=throttle_ms, session_id=NO_SESSION if session is None else session.id
        )

    def _mute(self, request: Request, throttle_ms: int, now: float) -> int:
        if throttle_ms:
            self._channel.mute(request.connection, throttle_ms / 1000, now)
        return throttle_ms


def _size(plan: FetchPlan, body: FetchResponse) -> int:
    """Return the size of a response; of a session it has at least the partitions with records."""
    if plan.context.session is not None:
        topics = []
        for each in body.responses:
            filled = [data for data in each.partitions if data.records]
            if filled:
                topics.append(
                    FetchableTopicResponse(
                        topic=each.topic, topic_id=each.topic_id, partitions=filled
                    )
                )
        body = FetchResponse(responses=topics)
    return len(encode_frame(body, plan.version, 0))
