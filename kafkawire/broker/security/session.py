"""The sessions of clients that have authenticated with SASL (KIP-368).

A client authenticates again on the open connection before its session ends, with the same
mechanism and as the same principal. A request after the end closes the connection.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_REAUTH: Final = "connections.max.reauth.ms"
MIN_REAUTH_INTERVAL_MS: Final = 1000
"""Between the starts of two re-authentications of a connection, as in Kafka."""
EXPIRED: Final = "session expired: no re-authentication in time"


class Session(NamedTuple):
    """A session. ends_ms: milliseconds since 1970; None for a session without an end."""

    mechanism: str
    user: str
    ends_ms: int | None

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the session has ended. now_ms: milliseconds since 1970."""
        return self.ends_ms is not None and now_ms > self.ends_ms

    def lifetime_ms(self, now_ms: int) -> int:
        """Return how long the session lasts, as in SaslAuthenticateResponse: 0 for no end."""
        return 0 if self.ends_ms is None else max(self.ends_ms - now_ms, 0)


def session_end(now_ms: int, max_reauth_ms: int, expires_ms: int | None) -> int | None:
    """Return when a session that begins now ends, in milliseconds since 1970; None for never.

    max_reauth_ms: `connections.max.reauth.ms`, 0 for no limit. expires_ms: of the credential.
    """
    ends = [] if expires_ms is None else [max(expires_ms, now_ms)]
    if max_reauth_ms > 0:
        ends.append(now_ms + max_reauth_ms)
    return min(ends, default=None)
