"""GetTelemetrySubscriptions: assigns an id to a client, and requests no metrics (KIP-714).

v0   the first; flexible
"""

from __future__ import annotations

from ...messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from ...messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from ...primitives import ZERO_UUID
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..telemetry import (
    COMPRESSION_TYPES,
    PUSH_INTERVAL_MS,
    TELEMETRY_MAX_BYTES,
    subscription_id,
)


def handle(
    broker: Broker,
    _request: Request,
    body: GetTelemetrySubscriptionsRequest,
    _connection: Connection,
    _now: float,
) -> GetTelemetrySubscriptionsResponse:
    """Return the subscription; a client without an id gets a new one."""
    instance = body.client_instance_id
    if instance == ZERO_UUID:
        instance = broker.context.new_uuid()
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance,
        subscription_id=subscription_id(instance),
        accepted_compression_types=list(COMPRESSION_TYPES),
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=broker.settings.number(TELEMETRY_MAX_BYTES),
        delta_temporality=True,
    )


def error_response(
    _body: GetTelemetrySubscriptionsRequest, error: ErrorCode
) -> GetTelemetrySubscriptionsResponse:
    """Return a response with the error."""
    return GetTelemetrySubscriptionsResponse(error_code=error)
