"""The rows of a decoded capture: one for each message, and one for each run of other bytes.

Every byte of a conversation is in exactly one row, or counted in it: nothing is lost, nothing
is invented.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ..primitives import Message


class Status(StrEnum):
    """How far the bytes of a row were decoded."""

    OK = "ok"
    """Decoded, byte for byte."""
    LENIENT = "lenient"
    """Decoded leniently (trailing bytes, invalid text); `error` names the deviation."""
    MALFORMED = "malformed"
    """API key and version are known, and the body does not decode; `error` has the position."""
    UNKNOWN_API = "unknown_api"
    """The header only: unknown API key."""
    UNKNOWN_VERSION = "unknown_version"
    """Unknown version; `error` says how far the nearest version decodes."""
    GUESSED = "guessed"
    """The version is unknown; decoded as the nearest version, which `error` names."""
    UNPAIRED = "unpaired"
    """A response whose request was not captured: only its correlation id is known; `error` lists
    candidates.
    """
    INFERRED = "inferred"
    """The same, decoded as the only response that its content fits; `api_version` is None if
    several versions have the same wire format, and `error` names them.
    """
    SASL_TOKEN = "sasl_token"
    """A raw token after a SaslHandshake of version 0, or without one at the beginning of a
    connection: a size without a header.
    """
    TRUNCATED = "truncated"
    """The capture ends, or has a gap, inside the frame."""
    GAP = "gap"
    """Bytes that were sent and not captured."""
    OUT_OF_ORDER = "out_of_order"
    """No bytes, in front of a response that came before those to older requests; `error` says
    which.
    """
    CONFLICT = "conflict"
    """Retransmitted bytes that differ from those captured first."""
    DISCARDED = "discarded"
    """Captured bytes that arrived too late, or are out of the window."""
    UNPARSED = "unparsed"
    """Captured bytes that are not a frame, or not in a known place of one."""
    UNREADABLE = "unreadable"
    """The capture itself is truncated, corrupt or of an unsupported type; `error` says where."""
    SKIPPED = "skipped"
    """Packets that were not decoded although they may carry TCP: an unknown protocol, an
    encapsulation that is not supported, truncated or malformed headers; `error` says which and how
    many.
    """
    COPY = "copy"
    """A connection that was captured twice (address translation, bridges): the messages that the
    other one has, too, are left out; `error` names it.
    """
    TLS = "tls"
    """Bytes of TLS itself, in a connection that was decrypted: its handshake, the headers and tags
    of its records; `error` names version, cipher suite and server name.
    """
    PROXY = "proxy"
    """Bytes of a proxy in front of Kafka: PROXY protocol, SOCKS5 or HTTP CONNECT; `error` names it,
    and the real client or where it connects to.
    """
    OTHER_PROTOCOL = "other_protocol"
    """The connection has another protocol; `error` names it if known."""


class Row(NamedTuple):
    """One message, or one run of other bytes.

    packet: 1-based number of the packet that completes it; time_ns: its time, since the epoch.
    direction: request or response; for rows that are not messages, of the side that sent the bytes.
    length: the size in front of the message, without its own 4 bytes; for other rows the number of
    bytes. body_version: the version of the body (see `protocol.Frame`). message: the decoded body;
    if None, `raw` has the bytes of the body. request_packet, request_time_ns: of the request of a
    response.
    """

    packet: int
    time_ns: int
    direction: str
    length: int
    status: Status
    error: str = ""
    api_key: int | None = None
    api_name: str | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    body_version: int | None = None
    message: Message | None = None
    raw: bytes = b""
    request_packet: int | None = None
    request_time_ns: int | None = None

    @property
    def is_message(self) -> bool:
        """Whether the row is a complete frame of a Kafka connection."""
        return self.status in MESSAGES


class Located(NamedTuple):
    """A row and the connection it belongs to.

    connection: number of the TCP connection in the capture, from 0 in order of appearance (as
    tshark's tcp.stream); None for a row about the capture itself. client, broker: `address:port`;
    if the roles are not known, the endpoint that was seen first is called the client.
    """

    connection: int | None
    client: str | None
    broker: str | None
    row: Row


MESSAGES = frozenset(
    {
        Status.OK,
        Status.LENIENT,
        Status.MALFORMED,
        Status.UNKNOWN_API,
        Status.UNKNOWN_VERSION,
        Status.GUESSED,
        Status.UNPAIRED,
        Status.INFERRED,
        Status.SASL_TOKEN,
    }
)

CLEAN = frozenset({Status.OK, Status.TLS, Status.PROXY, Status.COPY})
"""Statuses of rows in which nothing is wrong."""
