"""Knows what is normal in the protocol.

Errors that clients provoke, responses that wait, and requests that expect no response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

PRODUCE: Final = ApiKey.PRODUCE
EXPECTED_ERRORS: Final = frozenset(
    {
        (ApiKey.API_VERSIONS, ErrorCode.UNSUPPORTED_VERSION),  # names the version to use (KIP-511)
        (ApiKey.JOIN_GROUP, ErrorCode.MEMBER_ID_REQUIRED),  # assigns the member id (KIP-394)
        (ApiKey.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS),  # tells members to join again
    }
)
"""Errors of an API with which a client goes on as planned."""

WAITS_MS: Final[dict[int, Callable[[Any], int]]] = {
    ApiKey.FETCH: lambda request: request.max_wait_ms,
    ApiKey.SHARE_FETCH: lambda request: request.max_wait_ms,
    # before version 1, a rebalance may take as long as a session
    ApiKey.JOIN_GROUP: lambda request: max(
        request.rebalance_timeout_ms, request.session_timeout_ms
    ),
}
"""How long a request lets the broker wait: for data, or for other members."""

MILLISECOND: Final = 1_000_000
TOLERANCE: Final = 1.1
TOLERANCE_NS: Final = 10 * MILLISECOND
"""By how much a response may come later than its request allows, and be no slow one."""


def are_expected(api_key: int | None, codes: Iterable[int]) -> bool:
    """Whether all error codes of a response are normal for its API."""
    return all((api_key, code) in EXPECTED_ERRORS for code in codes)


def allowed_wait_ns(exchange: Exchange) -> int:
    """Return how long the request lets the broker wait; 0 for an API that does not wait."""
    request = exchange.request
    if request is None or request.api_key is None or request.message is None:
        return 0
    wait_ms = WAITS_MS.get(request.api_key)
    return 0 if wait_ms is None else max(0, wait_ms(request.message)) * MILLISECOND


def expects_no_response(exchange: Exchange) -> bool:
    """Whether the request is a Produce with acks=0."""
    request = exchange.request
    if request is None or request.api_key != PRODUCE:
        return False
    return getattr(request.message, "acks", None) == 0


def is_long_poll(exchange: Exchange, waited_ns: int) -> bool:
    """Whether a response took no longer than its request allows."""
    allowed_ns = allowed_wait_ns(exchange)
    return allowed_ns > 0 and waited_ns <= allowed_ns * TOLERANCE + TOLERANCE_NS
