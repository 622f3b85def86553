"""Types of TLS records, by which a stream is known to begin with TLS (RFC 8446, section 5.1)."""

from __future__ import annotations

from typing import Final

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23
CONTENT_TYPES: Final = frozenset(range(CHANGE_CIPHER_SPEC, APPLICATION_DATA + 1))
"""With which a record, and so a connection in TLS, begins."""
