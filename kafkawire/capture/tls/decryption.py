"""Decrypts the records of one direction in order, also behind lost ones.

TLS numbers records without sending the numbers, and changes keys at messages that may be lost;
so keys and numbers are tried, in order and a bounded number of times, until a record authenticates.
A record that does so is the one that was sent with this key and this number.

    in order      the next number; the next key from number 0 (Finished, KeyUpdate)
    behind a gap  as many more numbers of either key as records can be in the gap
"""

from __future__ import annotations

from typing import Final

from .keylog import KeyLog
from .records import HEADER, TAG, Record
from .session import Epoch, Session

MAX_LOST: Final = 1024
"""Records that may be lost in a gap; the next one behind more of them is not found."""

MAX_TRIES: Final = 1 << 13
"""Decryptions tried until a record authenticates: data that looks like records, behind any number
of gaps, is not tried for ever.
"""

LEAST_RECORD: Final = HEADER + TAG + 1


class Decryption:
    """The keys of a direction so far, and the number of the next record.

    authenticated: whether any record was decrypted. lost: how many records may be lost; tries: how
    many decryptions may still be tried to find the next one.
    """

    def __init__(self, from_client: bool) -> None:
        self.from_client = from_client
        self.epoch = Epoch.HANDSHAKE
        self.generation = 0
        self.sequence = 0
        self.authenticated = False
        self.lost = 0
        self.tries = MAX_TRIES

    def lose(self, size: int) -> None:
        """Handle a gap of that many bytes."""
        self.lost = min(self.lost + size // LEAST_RECORD + 2, MAX_LOST)

    def open(self, session: Session, key_log: KeyLog, record: Record) -> tuple[int, bytes] | None:
        """Decrypt the next record: content type and content; None if it does not authenticate."""
        for epoch, generation, first in self._keys(session):
            opener = session.opener(key_log, self.from_client, epoch, generation)
            if opener is None:
                continue
            for sequence in range(first, first + 1 + self.lost):
                if self.lost:
                    if not self.tries:
                        return None
                    self.tries -= 1
                opened = opener.open(record, sequence)
                if opened is not None:
                    self.epoch, self.generation = epoch, generation
                    self.sequence = sequence + 1
                    self.authenticated = True
                    self.lost, self.tries = 0, MAX_TRIES
                    return opened
        return None

    def _keys(self, session: Session) -> tuple[tuple[Epoch, int, int], ...]:
        """List the keys that the next record may have, with the number of its first record."""
        if not session.is_13:
            return ((Epoch.TRAFFIC, 0, self.sequence),)
        now = self.epoch, self.generation, self.sequence
        if self.epoch is Epoch.HANDSHAKE:
            return now, (Epoch.TRAFFIC, 0, 0)
        return now, (Epoch.TRAFFIC, self.generation + 1, 0)
