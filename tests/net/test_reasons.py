"""Why a connection could not be made, in words."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from kafkawire.net.sockets.reasons import is_fatal, reason_of

REFUSED = OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")
BOTH = OSError(f"Multiple exceptions: {REFUSED}, [Errno {errno.ENETUNREACH}] Connect call failed")


def not_tls() -> ssl.SSLError:
    error = ssl.SSLError(1, "wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("error", "tls", "words"),
    [
        (REFUSED, False, "connection refused"),
        (BOTH, False, "connection refused, network is unreachable"),
        (socket.gaierror(-2, "Name or service not known"), False, "unknown host"),
        (not_tls(), True, "does not answer in TLS"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), True, "PLAINTEXT"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), False, "connection reset by peer"),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), True, "PLAINTEXT"),
        (ValueError(), False, "ValueError"),
        (OverflowError("port must be 0-65535"), False, "port must be 0-65535"),
    ],
)
def test_reasons(error: Exception, tls: bool, words: str) -> None:
    assert words in reason_of(error, tls=tls)


def test_only_what_cannot_pass_is_fatal() -> None:
    assert is_fatal(not_tls())
    assert is_fatal(ssl.SSLCertVerificationError(1, "expired"))
    assert not is_fatal(REFUSED)
    assert not is_fatal(ssl.SSLEOFError(8, "EOF"))
