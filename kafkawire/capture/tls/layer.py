"""Finds out whether a connection begins with TLS, and passes its bytes through it.

What does not begin with TLS comes out as it went in.

    first bytes --TLS--> TlsConnection --> plaintext, rows
               `--others--> unchanged, `is_tls` is False: the layer is not needed any more
"""

from __future__ import annotations

from typing import NamedTuple

from ..tcp.connection import Connection, Run
from ..tcp.events import Closed, Gap
from .keylog import KeyLog
from .outputs import Output


class First(NamedTuple):
    """The first bytes of a connection, which are too few to know."""

    side: int
    position: int
    data: bytes
    packet: int
    time_ns: int
    known: int


class TlsLayer:
    """The TLS of a connection. is_tls: None while there are too few bytes to know.

    Decryption is imported for the first connection that may be TLS.
    """

    def __init__(self, key_log: KeyLog) -> None:
        from .connection import TlsConnection

        self.is_tls: bool | None = None
        self.connection = TlsConnection(key_log)
        self._first: list[First] = []

    @property
    def client(self) -> int | None:
        """The side that sent the ClientHello, if known."""
        return self.connection.client

    def handle(self, event: Run | Gap) -> list[Output | Gap]:
        """Handle bytes of a side, or that some are missing."""
        if self.is_tls:
            return [*self.connection.handle(event)]
        if isinstance(event, Gap):
            return [*self._decide(event.connection, False), event]
        runs = self._first
        if runs and runs[0].side != event.side:
            return [*self._decide(event.connection, False), event]
        runs.append(
            First(event.side, event.position, event.data, event.packet, event.time_ns, event.known)
        )
        from .records import begins_tls

        decided = begins_tls(b"".join(run.data for run in runs))
        return [] if decided is None else self._decide(event.connection, decided)

    def close(self, event: Closed) -> list[Output | Gap]:
        """Handle the end of the connection, before its conversation ends."""
        return [] if self.is_tls else self._decide(event.connection, False)

    def closed(self, event: Closed) -> list[Output]:
        """Return the rows of the rest, after the conversation has ended."""
        return self.connection.close(event) if self.is_tls else []

    def _decide(self, connection: Connection, is_tls: bool) -> list[Output | Gap]:
        self.is_tls = is_tls
        runs = [Run(connection, *first) for first in self._first]
        self._first.clear()
        if not is_tls:
            return [*runs]
        return [each for run in runs for each in self.connection.handle(run)]
