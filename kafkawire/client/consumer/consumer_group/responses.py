"""Turns responses to heartbeats into events of the membership.

Every response, and every missing response, is exactly one event. An error names the broker,
its own message, and what to do.
"""

from __future__ import annotations

from typing import Final

from ....messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from ....protocol.error_code import ErrorCode, error_of
from ...cluster import ClusterView
from ...requests import NoResponse, Reason, ResponseReceived
from ..failures import GroupFailed
from .heartbeats import MemberFields
from .member_states import HeartbeatResponded, Refused
from .recovery import ADVICE, Recovery, recovery

NEEDS_PATTERNS: Final = (
    "a SubscriptionPattern needs Apache Kafka 4.0 or newer: subscribe by names or by a pattern of "
    "Python (re.compile), which the client matches"
)


def read_response(
    event: ResponseReceived | NoResponse,
    group_id: str,
    fields: MemberFields,
    view: ClusterView,
    *,
    joining: bool,
) -> HeartbeatResponded | Refused:
    """Read the response to a heartbeat with these fields. joining: whether it had epoch 0."""
    if isinstance(event, NoResponse):
        return _no_response(event, fields, view)
    message = event.message
    assert isinstance(message, ConsumerGroupHeartbeatResponse)
    if message.error_code == ErrorCode.NONE:
        return HeartbeatResponded(message, fields)
    reasons = (message.error_message, ADVICE.get(error_of(message.error_code)))
    parts = [f"{_broker(event.node, view)} refused a heartbeat of group {group_id!r}"]
    parts += [each.rstrip(".") for each in reasons if each]
    error = GroupFailed(": ".join(parts), message.error_code)
    return Refused(recovery(message.error_code, joining=joining), error)


def _no_response(event: NoResponse, fields: MemberFields, view: ClusterView) -> Refused:
    code, advice = event.code, ""
    if event.reason is Reason.NO_VERSION:
        code = ErrorCode.UNSUPPORTED_VERSION
        advice = NEEDS_PATTERNS if fields.topic_pattern else ADVICE[code]
        advice = f" ({_broker(event.node, view)}): {advice}"
    reason = f"ConsumerGroupHeartbeat: {event.reason.value} {event.detail}".rstrip() + advice
    action = Recovery.RETRY if event.retriable else Recovery.FATAL
    return Refused(action, GroupFailed(reason, code), lost=event.sent)


def _broker(node: int, view: ClusterView) -> str:
    broker = view.brokers.get(node)
    return f"broker {node}" if broker is None else f"broker {node} ({broker.address})"
