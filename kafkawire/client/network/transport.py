"""Events and effects between the network of a client and its shell, which owns the sockets.

Every connection has its own id, so that an event of a closed connection is never taken for
one of the next.

    network -- Connect, Write, Close, RequestToken, Disconnected --> shell
    network <-- ConnectionMade, ConnectionLost, BytesReceived, WritingPaused, WritingResumed,
                TokenReceived, TokenFailed --
"""

from __future__ import annotations

from dataclasses import dataclass

from .oauthbearer import OAuthBearerToken


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a socket to a broker; ConnectionMade or ConnectionLost must follow."""

    connection: int
    node: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Write:
    """Write a frame to a socket: `buffers`, one after the other, or `data`, the same joined."""

    connection: int
    buffers: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.buffers)


@dataclass(frozen=True, slots=True)
class Close:
    """Close a socket once its bytes are written; no event of it may follow.

    after_peer: shut down writing, and close only after the peer has: a response that comes to a
    closed socket resets the connection, and the peer loses what it has not received.
    """

    connection: int
    after_peer: bool = False


@dataclass(frozen=True, slots=True)
class RequestToken:
    """Ask the token provider for a token; TokenReceived or TokenFailed must follow.

    After Close, or after ConnectionLost, nobody waits for it.
    """

    connection: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection failed, for the log: it is made again when it is next needed.

    address: host:port of the broker.
    """

    address: str
    detail: str


@dataclass(frozen=True, slots=True)
class ConnectionMade:
    """The socket is connected, its TLS handshake complete."""

    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection failed or was closed by the peer.

    fatal: a reconnect will not help (a TLS certificate that is not accepted).
    """

    connection: int
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class BytesReceived:
    """Bytes from the socket, in order."""

    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class WritingPaused:
    """The peer reads slower than this client writes: more writes would pile up in memory."""

    connection: int


@dataclass(frozen=True, slots=True)
class WritingResumed:
    """The peer has caught up: writes are welcome again."""

    connection: int


@dataclass(frozen=True, slots=True)
class TokenReceived:
    """The token provider returned a token."""

    connection: int
    token: OAuthBearerToken


@dataclass(frozen=True, slots=True)
class TokenFailed:
    """The token provider failed, or returned nothing usable; detail: escaped."""

    connection: int
    detail: str


ShellEvent = (
    ConnectionMade
    | ConnectionLost
    | BytesReceived
    | WritingPaused
    | WritingResumed
    | TokenReceived
    | TokenFailed
)
ShellEffect = Connect | Write | Close | RequestToken | Disconnected
