"""What is known of one direction of a TLS connection."""

from __future__ import annotations

from typing import Final, NamedTuple

from .decryption import Decryption
from .hellos import HandshakeMessages
from .records import Record, RecordBuffer

MAX_MESSAGE: Final = 1 << 17
"""Bytes of a handshake message at most (certificates may be long)."""


class Waiting(NamedTuple):
    """An encrypted record that came before the ServerHello."""

    record: Record
    packet: int
    time_ns: int


class Side:
    """One direction. encrypted: whether all its records are, after ChangeCipherSpec (TLS 1.2).

    problem: why it is not decrypted. overhead: bytes of TLS itself that are in no row yet.
    unreadable: bytes passed over before the first record that authenticates. position: the number
    of plaintext bytes so far.
    """

    def __init__(self) -> None:
        self.buffer = RecordBuffer()
        self.messages = HandshakeMessages(MAX_MESSAGE)
        self.decryption: Decryption | None = None
        self.waiting: list[Waiting] = []
        self.waiting_bytes = 0
        self.encrypted = False
        self.searching = False
        self.problem = ""
        self.overhead = 0
        self.unreadable = 0
        self.failures = 0
        self.position = 0

    def give_up(self, problem: str) -> None:
        """Do not decrypt it any more: what it holds goes to rows, as what follows."""
        self.problem = self.problem or problem
        self.overhead += self.waiting_bytes + self.buffer.clear()
        self.waiting, self.waiting_bytes = [], 0

    def taken_waiting(self) -> list[Waiting]:
        """Take the records that waited for the ServerHello."""
        waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
        return waiting
