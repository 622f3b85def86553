"""Applies quotas to the requests of clients.

What was produced is stored, and its response is not delayed; what was fetched is not sent
while its client is throttled. Followers have no quotas here.
"""

from __future__ import annotations

from ...messages.fetch_response import FetchableTopicResponse, FetchResponse
from ...messages.share_fetch_response import ShareFetchResponse
from ...protocol import encode_frame
from ..network.request_channel import RequestChannel
from ..request import Request
from .client_quotas import FETCH, PRODUCE, ClientQuotas


class Throttling:
    """Counts bytes of clients against their quotas, and mutes those that exceed them."""

    def __init__(self, quotas: ClientQuotas, channel: RequestChannel) -> None:
        self.quotas = quotas
        self._channel = channel

    def produced(self, request: Request, now: float) -> int:
        """Count the bytes of a Produce; return for how many ms its client is throttled."""
        who = request.user, request.client_id
        throttle_ms = self.quotas.record(PRODUCE, *who, request.size, now)
        if throttle_ms:
            self._mute(request, throttle_ms, now)
        return throttle_ms

    def most_fetched(self, request: Request) -> int | None:
        """Return how many bytes one Fetch or ShareFetch may return; None for any."""
        return self.quotas.most(FETCH, request.user, request.client_id)

    def fetched(self, request: Request, body: FetchResponse, in_session: bool, now: float) -> int:
        """Count the bytes of a Fetch, unless they exceed its quota; return the throttle time."""
        return self._fetched(request, _size(body, request.version, in_session), now)

    def share_fetched(self, request: Request, body: ShareFetchResponse, now: float) -> int:
        """Count the bytes of a ShareFetch, as those of a Fetch; return the throttle time."""
        return self._fetched(request, len(encode_frame(body, request.version, 0)), now)

    def _fetched(self, request: Request, size: int, now: float) -> int:
        who = request.user, request.client_id
        throttle_ms = self.quotas.record(FETCH, *who, size, now)
        if throttle_ms:
            self._mute(request, throttle_ms, now)
            self.quotas.unrecord(FETCH, *who, size, now)
        return throttle_ms

    def _mute(self, request: Request, throttle_ms: int, now: float) -> None:
        self._channel.mute(request.connection, throttle_ms / 1000, now)


def _size(body: FetchResponse, version: int, in_session: bool) -> int:
    """Return the size of a response; of a session it has at least the partitions with records."""
    if in_session:
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
    return len(encode_frame(body, version, 0))
