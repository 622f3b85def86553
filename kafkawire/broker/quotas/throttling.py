"""Applies quotas to the requests of clients.

What was produced is stored, and its response is not delayed; what was fetched is not sent
while its client is throttled. Any response may be one of a client that has used up its share of
the time in which requests are processed. Followers and other nodes have no quotas here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from ...messages.fetch_response import FetchableTopicResponse, FetchResponse
from ...messages.share_fetch_response import ShareFetchResponse
from ...metadata.client_quotas import CONTROLLER_MUTATION, FETCH, PRODUCE, REQUEST, Quotas
from ...protocol import ApiKey, encode_frame
from ..network.request_channel import RequestChannel
from ..request import Request
from .client_quotas import ClientQuotas

THROTTLE_TIME: Final = "throttle_time_ms"
OF_QUORUM: Final = frozenset(
    {
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ALTER_PARTITION,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ENVELOPE,
        ApiKey.FETCH,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.VOTE,
    }
)
"""The APIs of controllers that Kafka does not count the time of."""


class Throttling:
    """Counts bytes and time of clients against their quotas, and mutes those that exceed them.

    exempt: the APIs of which nothing is counted.
    """

    def __init__(
        self,
        quotas: ClientQuotas,
        channel: RequestChannel,
        exempt: Collection[int] = (),
    ) -> None:
        self._exempt = exempt
        self.quotas = quotas
        self._channel = channel
        self.counts_time = False
        """Whether anyone has a quota of request time."""
        self.limits_produce = False
        self.limits_fetch = False

    def publish(self, quotas: Quotas) -> None:
        """Take over the quotas of an image; each response passes here if any needs that."""
        self.quotas.publish(quotas)
        self.counts_time = self.quotas.limit(REQUEST)
        self.limits_produce, self.limits_fetch = map(self.quotas.limit, (PRODUCE, FETCH))
        any_response = self.counts_time or self.quotas.limit(CONTROLLER_MUTATION)
        self._channel.before_response = self.responding if any_response else None

    def responding(self, request: Request, body: Any, now: float) -> None:
        """Count the time of a request, and put into its response how long its client waits.

        The controller has put there for how long the client's changes of topics throttle it.
        """
        if request.is_from_node or request.api_key in self._exempt:
            return
        throttle_ms = max(self._time_throttle_ms(request, now), getattr(body, THROTTLE_TIME, 0))
        if throttle_ms:
            if hasattr(body, THROTTLE_TIME):
                body.throttle_time_ms = throttle_ms
            self._mute(request, throttle_ms, now)

    def _time_throttle_ms(self, request: Request, now: float) -> int:
        seconds = self._channel.take_time(request.connection)
        return self.quotas.record_time(request.user, request.client_id, seconds, now)

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
        throttle_ms = max(
            self.quotas.record(FETCH, *who, size, now), self._time_throttle_ms(request, now)
        )
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
