"""What comes out of a TLS connection: plaintext, rows, and that plaintext is missing.

Plaintext of a side is contiguous between two `Unsynchronised`; records that one packet
completed are one run.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ..rows import Row
from ..tcp.connection import Run


class Negotiated(NamedTuple):
    """TLS begins: the plaintext of both sides begins with their first bytes.

    client: the side that sent the ClientHello.
    """

    client: int


class Unsynchronised(NamedTuple):
    """Plaintext of a side is missing: what follows is not known to begin at a frame."""

    side: int


Output: TypeAlias = Run | Row | Unsynchronised


class Problem(StrEnum):
    """Why the records of a side are not decrypted."""

    NO_CLIENT_HELLO = "the ClientHello was not captured"
    NO_SERVER_HELLO = "the ServerHello was not captured"
    NO_HANDSHAKE = "the handshake was not captured"
    INCOMPLETE = "the handshake is not complete"
    INVALID_HELLO = "the handshake is malformed or too long"
    WRONG_KEYS = "a record does not authenticate with the keys of the key log"
    RENEGOTIATED = "the keys of a renegotiation are not decrypted"
    EARLY_DATA = "0-RTT data is not decrypted"
    LOST = "too many records are missing or do not authenticate"
    INVALID = "not a TLS record"


def joined(out: list[Output]) -> list[Output]:
    """Join the plaintext of adjacent records that one packet completed."""
    runs: list[Output] = []
    position = 0
    while position < len(out):
        first = out[position]
        position += 1
        if isinstance(first, Run):
            start = position - 1
            while position < len(out) and _continues(first, out[position]):
                position += 1
            if position - start > 1:
                data = b"".join(
                    [each.data for each in out[start:position] if isinstance(each, Run)]
                )
                first = plaintext(first, first.position, data)
        runs.append(first)
    return runs


def _continues(run: Run, other: Output) -> bool:
    return isinstance(other, Run) and other.side == run.side and other.packet == run.packet


def plaintext(like: Run, position: int, data: bytes) -> Run:
    """Make a run of plaintext. like: the run of the bytes that it was in."""
    return Run(like.connection, like.side, position, data, like.packet, like.time_ns, like.known)
