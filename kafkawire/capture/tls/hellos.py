"""Parses the handshake messages that TLS does not encrypt: ClientHello and ServerHello.

A malformed hello is None; text from the wire is escaped.

Source: RFC 8446, section 4; RFC 5246, section 7.4; RFC 6066 (server names); RFC 7627.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...display import printable

CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
CLIENT_KEY_EXCHANGE: Final = 16

TLS12: Final = 0x0303
TLS13: Final = 0x0304
VERSIONS: Final = {
    0x0300: "SSL 3.0",
    0x0301: "TLS 1.0",
    0x0302: "TLS 1.1",
    TLS12: "TLS 1.2",
    TLS13: "TLS 1.3",
}

SERVER_NAME: Final = 0
EXTENDED_MASTER_SECRET: Final = 23
EARLY_DATA: Final = 42
SUPPORTED_VERSIONS: Final = 43

RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random value of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3)."""

RANDOM: Final = 32
MESSAGE_HEADER: Final = 4
MAX_NAME: Final = 255


class ClientHello(NamedTuple):
    """random: identifies the connection in a key log. early_data: whether 0-RTT data may follow."""

    random: bytes
    server_name: str
    early_data: bool


class ServerHello(NamedTuple):
    """version: the negotiated version; retry: whether it is a HelloRetryRequest."""

    random: bytes
    version: int
    suite: int
    extended_master_secret: bool
    session_id: bytes = b""

    @property
    def retry(self) -> bool:
        return self.random == RETRY


class _Short(Exception):
    """The message ends too early."""


class _Fields:
    """Reads the fields of a message in order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise _Short
        self.at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, prefix: int) -> bytes:
        return self.take(self.number(prefix))

    def extensions(self) -> dict[int, bytes]:
        """Read the extensions, which may be missing."""
        by_type: dict[int, bytes] = {}
        if self.at == len(self.data):
            return by_type
        listed = _Fields(self.vector(2))
        while listed.at < len(listed.data):
            kind = listed.number(2)
            by_type[kind] = listed.vector(2)
        return by_type


def parse_client_hello(body: bytes) -> ClientHello | None:
    """Parse the body of a ClientHello."""
    fields = _Fields(body)
    try:
        fields.take(2)
        random = fields.take(RANDOM)
        fields.vector(1)
        fields.vector(2)
        fields.vector(1)
        extensions = fields.extensions()
        name = _server_name(extensions.get(SERVER_NAME, b""))
    except _Short:
        return None
    return ClientHello(random, name, EARLY_DATA in extensions)


def _server_name(extension: bytes) -> str:
    if not extension:
        return ""
    names = _Fields(_Fields(extension).vector(2))
    names.take(1)  # host_name is the only type
    return printable(names.vector(2)[:MAX_NAME].decode("ascii", "backslashreplace"))


def parse_server_hello(body: bytes) -> ServerHello | None:
    """Parse the body of a ServerHello or HelloRetryRequest."""
    fields = _Fields(body)
    try:
        version = fields.number(2)
        random = fields.take(RANDOM)
        session_id = fields.vector(1)
        suite = fields.number(2)
        fields.take(1)
        extensions = fields.extensions()
        if SUPPORTED_VERSIONS in extensions:
            version = _Fields(extensions[SUPPORTED_VERSIONS]).number(2)
    except _Short:
        return None
    extended = EXTENDED_MASTER_SECRET in extensions
    return ServerHello(random, version, suite, extended, session_id)


def version_name(version: int) -> str:
    """Return the name of a version."""
    return VERSIONS.get(version, f"TLS version {version:#06x}")


class HandshakeMessages:
    """Takes messages from the handshake records of one direction.

    overflow: whether a message is longer than `max_bytes`; nothing is held then.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.overflow = False
        self._held = bytearray()

    def add(self, fragment: bytes) -> list[bytes]:
        """Take the content of a record; return the complete messages with their headers."""
        messages: list[bytes] = []
        if self.overflow:
            return messages
        held = self._held
        held += fragment
        while len(held) >= MESSAGE_HEADER:
            end = MESSAGE_HEADER + int.from_bytes(held[1:MESSAGE_HEADER])
            if end > self.max_bytes:
                self.overflow = True
                held.clear()
            elif end > len(held):
                break
            else:
                messages.append(bytes(held[:end]))
                del held[:end]
        return messages
