"""Handles how requests to the leaders ended.

Each acknowledgement of a request ends once, or is to be sent again. After an error of a whole
response, or without one, the session is lost: the two sides may differ on its epoch.

    ShareFetch ─▶ records acquired, errors of partitions, acknowledgements ended
    ShareAcknowledge ─▶ acknowledgements ended
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ...messages.share_acknowledge_response import PartitionData as AcknowledgedPartition
from ...messages.share_acknowledge_response import ShareAcknowledgeResponse
from ...messages.share_fetch_response import PartitionData, ShareFetchResponse
from ...protocol.error_code import ErrorCode
from ..cluster import Broker
from ..consumer.failures import FetchFailed
from ..requests import (
    NoResponse,
    Reason,
    RequestMetadataUpdate,
    ResponseReceived,
    UpdateLeader,
)
from .acknowledgements import Acknowledgements, SharePartition, ended
from .configuration import ShareConsumerConfig
from .errors import LeaderError, leader_error
from .leader import (
    FetchRefused,
    FetchWarning,
    InFlight,
    Leader,
    LeaderEffect,
    LeaderTable,
    RecordsAcquired,
    SessionLost,
)
from .records import decode
from .sessions import SessionState

Effects: TypeAlias = list[LeaderEffect]
Response = ShareFetchResponse | ShareAcknowledgeResponse

WARNED_FAILURES: Final = 3
"""Failures of a partition in a row after which the user is warned: a new leader takes fewer."""
AT_ONCE: Final = frozenset(
    {ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH}
)
"""Errors after which a new session is begun at once, the first time."""
NOT_IN_EFFECT: Final = "the leader refused an acknowledgement"
NO_OUTCOME: Final = "the leader's response has no outcome of an acknowledgement"
CODES: Final[Mapping[Reason, ErrorCode]] = {
    Reason.TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    Reason.NO_VERSION: ErrorCode.UNSUPPORTED_VERSION,
}
"""Why there is no response -> the error code of its acknowledgements; else NETWORK_EXCEPTION."""


class LeaderResponses:
    """Handles the outcomes of one consumer's requests to leaders."""

    def __init__(self, config: ShareConsumerConfig, table: LeaderTable) -> None:
        self._config = config
        self._table = table

    def handle(self, event: ResponseReceived | NoResponse, now: float) -> Effects:
        """Handle how a request ended."""
        node = event.request.to
        assert isinstance(node, int)
        assert isinstance(event.request.key, tuple)
        leader = self._table.leader(node)
        sent = leader.in_flight
        if sent is None or sent.serial != event.request.key[1]:
            return []
        leader.in_flight = None
        if isinstance(event, NoResponse):
            return self._on_no_response(node, leader, sent, event, now)
        response = event.message
        assert isinstance(response, ShareFetchResponse | ShareAcknowledgeResponse)
        if response.error_code != ErrorCode.NONE:
            return self._on_error(node, leader, sent, response, now)
        leader.failures = 0
        if leader.session.state is not SessionState.CLOSED:
            leader.session.on_response()
        if response.acquisition_lock_timeout_ms > 0:
            self._table.lock_timeout_s = response.acquisition_lock_timeout_ms / 1000
        if isinstance(response, ShareFetchResponse):
            return self._on_fetched(node, leader, sent, response, now)
        return self._on_acknowledged(leader, sent, response, now)

    # -- no response, or one with an error

    def _on_no_response(
        self, node: int, leader: Leader, sent: InFlight, event: NoResponse, now: float
    ) -> Effects:
        code = CODES.get(event.reason, ErrorCode.NETWORK_EXCEPTION)
        reason = f"{sent.api.name}: {event.reason.value} {event.detail}".rstrip()
        effects: Effects = [ended(each, reason, code) for each in sent.acknowledgements]
        if event.reason is Reason.NO_VERSION and not sent.partitions:
            return effects  # no request was sent: the session goes on
        effects += self._lose(node, leader, now)
        if not event.retriable and sent.partitions:
            partitions = [each.topic_partition for each in sorted(sent.partitions)]
            effects.append(FetchRefused(FetchFailed(reason, code, partitions)))
        return [*effects, _metadata_update(sent.partitions)]

    def _lose(self, node: int, leader: Leader, now: float) -> Effects:
        if leader.session.state is SessionState.CLOSED:
            return []
        leader.session.on_lost()
        self._table.back_off(leader, now)
        return [SessionLost(node)]

    def _on_error(
        self, node: int, leader: Leader, sent: InFlight, response: Response, now: float
    ) -> Effects:
        code = response.error_code
        reason = f"{sent.api.name} failed"
        if response.error_message:
            reason = f"{reason}: {response.error_message}"
        effects: Effects = [ended(each, reason, code) for each in sent.acknowledgements]
        first = leader.failures == 0
        effects += self._lose(node, leader, now)
        action = leader_error(code)
        if action is LeaderError.NEW_SESSION and code in AT_ONCE and first:
            leader.retry_at = now
        elif action is LeaderError.FAIL and sent.partitions:
            partitions = [each.topic_partition for each in sorted(sent.partitions)]
            effects.append(FetchRefused(FetchFailed(reason, code, partitions)))
        elif action is LeaderError.REFRESH_METADATA:
            effects.append(_metadata_update(sent.partitions))
        return effects

    # -- ShareFetch

    def _on_fetched(
        self, node: int, leader: Leader, sent: InFlight, response: ShareFetchResponse, now: float
    ) -> Effects:
        outcomes = _Outcomes(sent.acknowledgements)
        partitions = {each[1:]: each for each in sent.partitions}
        effects: Effects = []
        acquired = False
        for topic in response.responses:
            for data in topic.partitions:
                partition = partitions.get((data.partition_index, topic.topic_id))
                for each in outcomes.take(topic.topic_id, data.partition_index):
                    code, text = data.acknowledge_error_code, data.acknowledge_error_message
                    effects += self._on_outcome(leader, each, code, text, now)
                if partition is None:
                    continue
                if data.error_code != ErrorCode.NONE:
                    effects += self._on_partition_error(partition, data, response, now)
                    continue
                self._table.release(partition)
                if data.acquired_records:
                    acquired = True
                    effects.append(self._acquired(node, partition, data, sent))
        effects += outcomes.without_outcome()
        early = now - sent.sent_at < self._config.fetch_max_wait_s / 2
        if acquired or not early:
            leader.early = 0
        else:
            self._table.pace(leader, now)
        return effects

    def _acquired(
        self, node: int, partition: SharePartition, data: PartitionData, sent: InFlight
    ) -> RecordsAcquired:
        check = self._config.check_crcs
        decoded = decode(partition, data.records or b"", data.acquired_records, check_crcs=check)
        return RecordsAcquired(
            node, partition, decoded.items, tuple(decoded.ranges), self.lock_deadline(sent.sent_at)
        )

    def lock_deadline(self, sent_at: float) -> float | None:
        """Return when locks of a request expire at the earliest; None if that is unknown."""
        timeout_s = self._table.lock_timeout_s
        return None if timeout_s is None else sent_at + timeout_s

    def _on_partition_error(
        self,
        partition: SharePartition,
        data: PartitionData,
        response: ShareFetchResponse,
        now: float,
    ) -> Effects:
        failures = self._table.hold(partition, now)
        reason = "cannot fetch partition"
        if data.error_message:
            reason = f"{reason}: {data.error_message}"
        error = FetchFailed(reason, data.error_code, [partition.topic_partition])
        action = leader_error(data.error_code)
        if action is LeaderError.FAIL:
            return [FetchRefused(error)]
        effects: Effects = [FetchWarning(error)] if failures == WARNED_FAILURES else []
        if action is LeaderError.RETRY:
            return effects
        return [*effects, *_new_leader(partition, data, response)]

    # -- acknowledgements

    def _on_acknowledged(
        self, leader: Leader, sent: InFlight, response: ShareAcknowledgeResponse, now: float
    ) -> Effects:
        outcomes = _Outcomes(sent.acknowledgements)
        effects: Effects = []
        for topic in response.responses:
            for data in topic.partitions:
                for each in outcomes.take(topic.topic_id, data.partition_index):
                    code, text = data.error_code, data.error_message
                    effects += self._on_outcome(leader, each, code, text, now)
                    if leader_error(code) is LeaderError.REFRESH_METADATA:
                        effects += _new_leader(each.partition, data, response)
        return effects + outcomes.without_outcome()

    def _on_outcome(
        self,
        leader: Leader,
        each: Acknowledgements,
        code: int,
        message: str | None,
        now: float,
    ) -> Effects:
        """End acknowledgements, or send them again after a backoff."""
        closed = leader.session.state is SessionState.CLOSED
        if code != ErrorCode.NONE and leader_error(code) is LeaderError.RETRY and not closed:
            leader.pending.append(each)
            self._table.back_off(leader, now)
            return []
        return [ended(each, f"{NOT_IN_EFFECT}: {message}" if message else NOT_IN_EFFECT, code)]


class _Outcomes:
    """The acknowledgements of a request whose outcome is not known yet."""

    def __init__(self, acknowledgements: Iterable[Acknowledgements]) -> None:
        self._left: dict[tuple[bytes, int], list[Acknowledgements]] = {}
        for each in acknowledgements:
            where = each.partition.topic_id, each.partition.partition
            self._left.setdefault(where, []).append(each)

    def take(self, topic_id: bytes, partition: int) -> list[Acknowledgements]:
        """Return those of a partition of the response, once."""
        return self._left.pop((topic_id, partition), [])

    def without_outcome(self) -> Effects:
        """End those that the response does not name."""
        code = ErrorCode.INVALID_RECORD_STATE
        return [ended(each, NO_OUTCOME, code) for left in self._left.values() for each in left]


def _metadata_update(partitions: Iterable[SharePartition]) -> RequestMetadataUpdate:
    return RequestMetadataUpdate(frozenset(each.topic for each in partitions))


def _new_leader(
    partition: SharePartition,
    data: PartitionData | AcknowledgedPartition,
    response: Response,
) -> Effects:
    """Take a new leader over from a response (KIP-951), and update the metadata."""
    effects: Effects = [_metadata_update([partition])]
    leader, epoch = data.current_leader.leader_id, data.current_leader.leader_epoch
    if leader < 0 or epoch < 0:
        return effects
    endpoints = tuple(
        Broker(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints
    )
    return [UpdateLeader(*partition.topic_partition, leader, epoch, endpoints), *effects]
