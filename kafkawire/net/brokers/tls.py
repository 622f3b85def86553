"""TLS of one connection on the server's side, without I/O.

No socket, no clock. The cluster knows the connection from accept on, so its limits and its
idle timeout apply during the handshake too.

    socket ─▶ receive ─▶ plaintext      plaintext ─▶ send ─▶ pending ─▶ socket
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Final

from ...broker.security.tls_principal import distinguished_name

READ_BYTES: Final = 1 << 18


class TlsSession:
    """One connection. Call `pending()` after every call for the bytes to send.

    is_closed: whether the client has sent close_notify: it sends nothing more.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._established = False
        self._subject: str | None = None
        self.is_closed = False

    def receive(self, data: bytes) -> bytes:
        """Decrypt bytes from the client.

        Raises ssl.SSLError for invalid TLS and for a failed handshake.
        """
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            if not self._established:
                self._session.do_handshake()
                self._established = True
                certificate: Any = self._session.getpeercert()
                if certificate:
                    self._subject = distinguished_name(certificate["subject"])
            while part := self._session.read(READ_BYTES):
                plain.append(part)
            self.is_closed = True
        except ssl.SSLWantReadError:
            pass  # incomplete
        except ssl.SSLZeroReturnError:
            self.is_closed = True
        return b"".join(plain)

    def take_subject(self) -> str | None:
        """Return the subject of the client's verified certificate, once (RFC 2253)."""
        subject, self._subject = self._subject, None
        return subject

    def send(self, data: bytes) -> None:
        """Encrypt bytes to the client."""
        if data:
            self._session.write(data)

    def close(self) -> None:
        """Send close_notify, if the handshake is complete."""
        if not self._established:
            return
        with suppress(ssl.SSLError):  # the close_notify of the client is not awaited
            self._session.unwrap()

    def pending(self) -> bytes:
        """Take the encrypted bytes to send."""
        return self._outgoing.read()
