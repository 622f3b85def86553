"""Says in words why a connection could not be made."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import Final

ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
"""In the texts of asyncio, which joins the errors of several addresses to one text."""

NOT_TLS: Final = (
    "the broker does not answer in TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
)
CLOSED_IN_HANDSHAKE: Final = (
    "the broker closed the connection in the TLS handshake; does it expect PLAINTEXT or "
    "SASL_PLAINTEXT (security.protocol)?"
)


def reason_of(error: Exception, *, tls: bool) -> str:
    """Return why a connection attempt failed. tls: whether it includes a TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"invalid broker certificate: {error.verify_message}"
    if _is_not_tls(error):
        return NOT_TLS
    if tls and isinstance(error, ConnectionResetError | ssl.SSLEOFError):
        return CLOSED_IN_HANDSHAKE
    if isinstance(error, socket.gaierror):
        return f"unknown host: {error.strerror}"
    codes = dict.fromkeys(int(code) for code in ERRNO.findall(str(error)))
    if codes and not isinstance(error, ssl.SSLError):
        return ", ".join(os.strerror(code).lower() for code in codes)
    return str(error) or type(error).__name__


def is_fatal(error: Exception) -> bool:
    """Whether another attempt will fail in the same way."""
    return _is_not_tls(error) or isinstance(error, ssl.SSLCertVerificationError)


def _is_not_tls(error: Exception) -> bool:
    # only errors that OpenSSL raised have a reason
    return getattr(error, "reason", None) == "WRONG_VERSION_NUMBER"
