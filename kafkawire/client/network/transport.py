"""What the network of a client and its shell, which has the sockets, say to each other.

Law: a connection has a number of its own, so that news of one that was given up is never taken for
news of the next.

    network -- Connect, Write, Close --> shell
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
class ConnectionMade:
    connection: int


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """It could not be made, or has ended. fatal: making it again cannot help (a TLS certificate
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
    """The peer reads slower than we write: what is written now would pile up in memory."""

    connection: int


@dataclass(frozen=True, slots=True)
class WritingResumed:
    connection: int


ShellEvent = ConnectionMade | ConnectionLost | BytesReceived | WritingPaused | WritingResumed
ShellEffect = Connect | Write | Close
