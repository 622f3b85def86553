"""What the conversation machine says: a row for each message, and for each run of bytes that is
none.

Law: every byte given to a conversation is in exactly one row, or counted in it: nothing disappears,
nothing is invented.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from ..primitives import Message


class Status(StrEnum):
    """How far a row's bytes were understood."""

    OK = "ok"
    """Decoded, byte for byte."""
    LENIENT = "lenient"
    """Decoded, but something had to be bent (trailing bytes, invalid text); `error` says what."""
    MALFORMED = "malformed"
    """Key and version are known and the body is not what they say; `error` says where it stops."""
    UNKNOWN_API = "unknown_api"
    """The header only: no API has that key."""
    UNKNOWN_VERSION = "unknown_version"
    """The header only: the API is known, that version is not; `error` says how far the nearest
    one fits.
    """
    GUESSED = "guessed"
    """The API is known, that version is not; decoded as the nearest one, which `error` names."""
    UNPAIRED = "unpaired"
    """A response whose request was not seen: its correlation id is all that can be said; `error`
    lists what it may be.
    """
    INFERRED = "inferred"
    """The same, decoded as the only thing that its content can be; `api_version` is None where
    several versions are written alike, and `error` names them.
    """
    SASL_TOKEN = "sasl_token"
    """A raw token after a SaslHandshake of version 0: a size, and no header."""
    TRUNCATED = "truncated"
    """The capture ends, or loses bytes, inside the frame."""
    GAP = "gap"
    """Bytes that were sent and not captured."""
    CONFLICT = "conflict"
    """Bytes sent again that differ from those that were there first."""
    DISCARDED = "discarded"
    """Captured bytes that came too late, or belong to no connection's stream."""
    UNPARSED = "unparsed"
    """Captured bytes that are no frame, or could not be placed in one."""
    UNREADABLE = "unreadable"
    """The capture itself is cut, corrupt, or of a kind that is not read; `error` says where."""
    OTHER_PROTOCOL = "other_protocol"
    """The connection speaks something else; `error` names it where it is known."""


class Row(NamedTuple):
    """One message, or one run of bytes that is none.

    packet: 1-based number of the packet whose arrival completes it; time_ns: when that was, since
    the epoch. direction: request or response; for rows that are no message, the side the bytes came
    from. length: the int32 in front of the message, so without its own 4 bytes; for other rows the
    number of bytes. body_version: the version the body is written in (see `protocol.Frame`).
    message: the decoded body; where there is none, `raw` holds the bytes of the body.
    request_packet, request_time_ns: of the request that a response answers.
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
        """Whether the row is a whole frame of a Kafka connection."""
        return self.status in MESSAGES


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


def time_text(time_ns: int) -> str | None:
    """Write a capture time as ISO 8601 in UTC with nanoseconds; None where there is none."""
    if time_ns <= 0:  # frames without packets, and packets without a time
        return None
    seconds, rest = divmod(time_ns, 1_000_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest:09d}Z"
