"""PushTelemetry: accepts the metrics of a client, and drops them (KIP-714).

v0   the first; flexible
"""

from __future__ import annotations

from typing import Final

from ...messages.push_telemetry_request import PushTelemetryRequest
from ...messages.push_telemetry_response import PushTelemetryResponse
from ...primitives import ZERO_UUID
from ...protocol import ErrorCode
from ...records import Compression
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request
from ..telemetry import TELEMETRY_MAX_BYTES, subscription_id

E = ErrorCode
RESERVED: Final = frozenset({ZERO_UUID, bytes(15) + b"\x01"})
"""UUIDs that are never those of a client."""
CODECS: Final = frozenset(Compression)


def handle(
    broker: Broker,
    _request: Request,
    body: PushTelemetryRequest,
    _connection: Connection,
    _now: float,
) -> PushTelemetryResponse:
    """Check the request as Kafka does; nothing reads the metrics."""
    return PushTelemetryResponse(error_code=_error(broker, body))


def _error(broker: Broker, body: PushTelemetryRequest) -> ErrorCode:
    """Return the first error, in Kafka's order."""
    if body.client_instance_id in RESERVED:
        return E.INVALID_REQUEST
    if body.subscription_id != subscription_id(body.client_instance_id):
        return E.UNKNOWN_SUBSCRIPTION_ID
    if body.compression_type not in CODECS:
        return E.UNSUPPORTED_COMPRESSION_TYPE
    if len(body.metrics) > broker.settings.number(TELEMETRY_MAX_BYTES):
        return E.TELEMETRY_TOO_LARGE
    return E.NONE


def error_response(_body: PushTelemetryRequest, error: ErrorCode) -> PushTelemetryResponse:
    """Return a response with the error."""
    return PushTelemetryResponse(error_code=error)
