"""Names the alerts of TLS.

Closing a connection is not worth a row; every other alert is.

Source: the IANA registry "TLS Alerts".
"""

from __future__ import annotations

import re
from typing import Final

CLOSE_NOTIFY: Final = 0
FATAL: Final = 2

ALERTS: Final = {
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    40: "handshake_failure",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}


CLEAR: Final = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02].\Z", re.DOTALL)
"""A record with an alert that is not encrypted, at the end of bytes; encrypted ones are longer."""

CLEAR_BYTES: Final = 7

_FATAL: Final = re.compile(r"\balert (\w+) \(fatal\)\Z")


def clear_alert(data: bytes) -> bytes | None:
    """Return the content of an alert at the end of bytes, if it is not encrypted."""
    return data[-2:] if CLEAR.match(data, max(0, len(data) - CLEAR_BYTES)) else None


def fatal_alert(text: str) -> str | None:
    """Return the name of the alert in the text of a row, if it is fatal."""
    match = _FATAL.search(text)
    return None if match is None else match[1]


def alert_text(content: bytes) -> str:
    """Describe an alert; empty for close_notify."""
    if len(content) != 2:
        return "alert (encrypted)"
    level, number = content
    if number == CLOSE_NOTIFY:
        return ""
    name = ALERTS.get(number, str(number))
    return f"alert {name}{' (fatal)' if level == FATAL else ''}"
