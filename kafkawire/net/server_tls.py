"""TLS of one connection, the server's side: bytes in, bytes out.

Law: no socket, no clock: the connection is the machine's from the moment it is accepted, so its
bounds and its idle timeout hold before the handshake is over.

    socket ─▶ receive ─▶ plaintext      plaintext ─▶ send ─▶ pending ─▶ socket
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

READ_BYTES: Final = 1 << 18


class TlsSession:
    """One connection. What must go to the client is in `pending()`, after every call."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._established = False

    def receive(self, data: bytes) -> bytes:
        """Take what came from the client; the plaintext in it.

        Raises ssl.SSLError for what is not TLS, and a handshake that fails.
        """
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            if not self._established:
                self._session.do_handshake()
                self._established = True
            while part := self._session.read(READ_BYTES):
                plain.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # the rest comes later, or the client has closed its side
        return b"".join(plain)

    def send(self, data: bytes) -> None:
        """Encrypt what goes to the client."""
        if data:
            self._session.write(data)

    def close(self) -> None:
        """Tell the client that nothing more comes (close_notify), if it is there to be told."""
        if not self._established:
            return
        with suppress(ssl.SSLError):  # the client has not closed its side: nobody waits for that
            self._session.unwrap()

    def pending(self) -> bytes:
        """Take what must go to the client."""
        return self._outgoing.read()
