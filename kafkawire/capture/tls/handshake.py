"""Follows the handshake of a connection up to the keys: who is the client, what was negotiated.

Only the first ClientHello of one side and the first ServerHello count (a HelloRetryRequest is
none); everything later is encrypted, or changes no key.

    ClientHello --> hello, client --ServerHello--> session --ClientKeyExchange--> its session hash
"""

from __future__ import annotations

import hashlib
from typing import Final

from .hellos import (
    CLIENT_HELLO,
    CLIENT_KEY_EXCHANGE,
    MESSAGE_HEADER,
    SERVER_HELLO,
    ClientHello,
    parse_client_hello,
    parse_server_hello,
    version_name,
)
from .keylog import PREMASTER, KeyLog
from .outputs import Problem
from .session import Session
from .suites import SUITES, suite_name

MAX_TRANSCRIPT: Final = 1 << 18
"""Bytes of the handshake that are kept for its hash."""


class Handshake:
    """The handshake of one connection.

    client: the side that sent the ClientHello; None if not known. session: after the ServerHello.
    Its text has the version, the cipher suite and the name of the server, as far as known.
    """

    def __init__(self, key_log: KeyLog) -> None:
        self.client: int | None = None
        self.hello: ClientHello | None = None
        self.session: Session | None = None
        self._key_log = key_log
        self._transcript: bytes | None = b""

    def __str__(self) -> str:
        version, about = "TLS", []
        if self.session is not None:
            server = self.session.server
            version, about = version_name(server.version), [suite_name(server.suite)]
        if self.hello is not None and self.hello.server_name:
            about.append(self.hello.server_name)
        return f"{version} ({', '.join(about)})" if about else version

    def take(self, side: int, message: bytes) -> str:
        """Handle a message of a side that is not encrypted; return what is wrong with it."""
        kind, body = message[0], message[MESSAGE_HEADER:]
        if kind == CLIENT_HELLO and self.session is None and self.client in (None, side):
            self.client = side
            self.hello = parse_client_hello(body)
            if self.hello is None:
                return Problem.INVALID_HELLO
            # the transcript is only needed for a pre-master secret
            premaster = self._key_log.secret(PREMASTER, self.hello.random)
            self._transcript = None if premaster is None else b""
        self._transcribe(message)
        if kind == SERVER_HELLO and self.session is None:
            return self._server_hello(side, body)
        if kind == CLIENT_KEY_EXCHANGE and self.session is not None and self._transcript:
            aead = SUITES.get(self.session.server.suite)
            if aead is not None:
                self.session.session_hash = hashlib.new(aead.hash, self._transcript).digest()
            self._transcript = None
        return ""

    def _transcribe(self, message: bytes) -> None:
        if self._transcript is not None:
            longer = len(self._transcript) + len(message) > MAX_TRANSCRIPT
            self._transcript = None if longer else self._transcript + message

    def _server_hello(self, side: int, body: bytes) -> str:
        hello = parse_server_hello(body)
        if hello is None:
            return Problem.INVALID_HELLO
        if not hello.retry:
            self.client = 1 - side if self.client is None else self.client
            self.session = Session(self.hello or ClientHello(b"", "", False), hello)
        return ""

    def problem(self, side: int) -> str:
        """Return why a side cannot be decrypted, after the ServerHello; empty if it can."""
        session = self.session
        if session is None or self.hello is None:
            return self.unfinished()
        return session.unsupported() or session.missing(self._key_log, side == self.client)

    def unfinished(self, *, ended: bool = False) -> str:
        """Return what was not captured. ended: no byte is missing, but the connection ended."""
        if self.hello is not None:
            return Problem.NO_SERVER_HELLO
        if ended and self.session is None:
            return Problem.INCOMPLETE
        return Problem.NO_HANDSHAKE if self.session is None else Problem.NO_CLIENT_HELLO
