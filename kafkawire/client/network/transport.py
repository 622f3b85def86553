"""Events and effects between the network of a client and its shell, which owns the sockets.

Law: every connection has its own id, so that an event of a closed connection is never taken for
one of the next.

    network -- Connect, Write, Close, Disconnected --> shell
    network <-- ConnectionMade, ConnectionLost, BytesReceived, WritingPaused, WritingResumed --
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Connect:
    connection: int
    node: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Write:
    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
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
    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection failed or was closed. fatal: a reconnect will not help (a TLS certificate
    that is not accepted).
    """

    connection: int
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class BytesReceived:
    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class WritingPaused:
    """The peer reads slower than this client writes: more writes would pile up in memory."""

    connection: int


@dataclass(frozen=True, slots=True)
class WritingResumed:
    connection: int


ShellEvent = ConnectionMade | ConnectionLost | BytesReceived | WritingPaused | WritingResumed
ShellEffect = Connect | Write | Close | Disconnected
