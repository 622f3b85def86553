"""The state machine of a TLS connection: its bytes in, the bytes that it protects out.

Content never raises; memory is bounded. Every byte is in plaintext, or counted in a row:
handshakes, headers and tags in rows of status `tls`, what is not decrypted in others.

    ClientHello, ServerHello --key log--> decrypting --> Run (plaintext) | Unsynchronised
                                 `-----> not decrypted --> Row, which says why
    decrypting --gap--> searching --a record authenticates--> decrypting
"""

from __future__ import annotations

from typing import Final

from ..rows import Status
from ..tcp.connection import Run
from ..tcp.events import Closed, Gap
from .decryption import Decryption
from .handshake import Handshake
from .hellos import CLIENT_HELLO
from .keylog import KeyLog
from .outputs import Output, Problem, Unsynchronised, joined, plaintext
from .record_types import ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE
from .records import Record
from .reporting import Reporting
from .session import Session
from .side import Side, Waiting

MAX_WAITING: Final = 1 << 18
MAX_WAITING_RECORDS: Final = 256
"""Bytes and number of encrypted records of a side that wait for the ServerHello."""

MAX_UNREADABLE: Final = 1 << 18
"""Bytes of 0-RTT data and of a handshake without keys that are passed over."""

MAX_FAILURES: Final = 16
"""Consecutive records that do not authenticate, after which a side is given up."""


class TlsConnection:
    """One connection; its text names version, cipher suite and server."""

    def __init__(self, key_log: KeyLog) -> None:
        self._handshake = Handshake(key_log)
        self._key_log = key_log
        self._sides = Side(), Side()
        self._rows = Reporting(self._handshake)

    @property
    def client(self) -> int | None:
        """The side that sent the ClientHello, if known."""
        return self._handshake.client

    @property
    def session(self) -> Session | None:
        """What was negotiated, after the ServerHello."""
        return self._handshake.session

    def __str__(self) -> str:
        return str(self._handshake)

    # -- events in, plaintext and rows out

    def handle(self, event: Run | Gap) -> list[Output]:
        """Handle the next bytes of a side, or that some are missing."""
        if isinstance(event, Gap):
            return self._gap(event)
        out: list[Output] = []
        side = self._sides[event.side]
        if side.problem:
            out += self._rows.passed_through(side, event)
        else:
            side.buffer.add(event.data)
            if not side.searching:
                self._take(event, out)
            if side.searching:
                self._search(event, out)
        for number, each in enumerate(self._sides):
            out += self._rows.undecrypted(number, each, event)
        return joined(out)

    def close(self, event: Closed) -> list[Output]:
        """Handle the end of the connection; call it after the plaintext has ended."""
        out: list[Output] = []
        for number, side in enumerate(self._sides):
            if side.problem or self.session is None:
                side.give_up(self._handshake.unfinished(ended=True))
                out += self._rows.undecrypted(number, side, event)
            else:
                out += self._rows.rest(number, side, event)
        return out

    def _give_up_both(self, problem: str) -> None:
        for side in self._sides:
            side.give_up(problem)

    # -- records

    def _take(self, run: Run, out: list[Output]) -> None:
        """Handle the complete records of a side that is in sync."""
        side = self._sides[run.side]
        records, valid = side.buffer.take()
        for record in records:
            if side.problem:
                side.overhead += record.size
            else:
                self._record(record, run, out)
        if side.problem:
            side.overhead += side.buffer.clear()
        elif not valid:
            if side.decryption is not None and side.decryption.authenticated:
                side.decryption.lose(0)
                side.searching = True
            else:
                side.give_up(Problem.INVALID)

    def _record(self, record: Record, run: Run, out: list[Output]) -> None:
        side = self._sides[run.side]
        if side.encrypted or record.type == APPLICATION_DATA:
            self._encrypted(record, run, out)
        elif record.type == HANDSHAKE:
            side.overhead += record.size
            for message in side.messages.add(record.content):
                self._message(message, run, out)
            if side.messages.overflow and self.session is None:
                self._give_up_both(Problem.INVALID_HELLO)
        elif record.type == ALERT:
            out += self._rows.alert(side, record, record.content, run)
        elif self.session is None and self._handshake.hello is not None and run.side == self.client:
            self._wait(record, run)
        else:
            side.overhead += record.size
            if record.type == CHANGE_CIPHER_SPEC and self.session and not self.session.is_13:
                side.encrypted = True

    def _message(self, message: bytes, run: Run, out: list[Output]) -> None:
        """Handle a handshake message that is not encrypted."""
        before = self.session
        problem = self._handshake.take(run.side, message)
        if problem:
            self._give_up_both(problem)
        elif self.session is not before:
            self._begin(run, out)

    def _begin(self, run: Run, out: list[Output]) -> None:
        """Begin to decrypt, after the ServerHello, with the records that waited for it."""
        for number, side in enumerate(self._sides):
            problem = self._handshake.problem(number)
            if problem:
                side.give_up(problem)
                continue
            side.decryption = Decryption(number == self.client)
            for record, packet, time_ns in side.taken_waiting():
                before = Run(run.connection, number, 0, b"", packet, time_ns, run.known)
                self._record(record, before, out)

    def _wait(self, record: Record, run: Run) -> None:
        """Keep an encrypted record until the ServerHello."""
        side = self._sides[run.side]
        side.waiting.append(Waiting(record, run.packet, run.time_ns))
        side.waiting_bytes += record.size
        if side.waiting_bytes > MAX_WAITING or len(side.waiting) > MAX_WAITING_RECORDS:
            self._give_up_both(Problem.NO_SERVER_HELLO)

    # -- encrypted records

    def _encrypted(self, record: Record, run: Run, out: list[Output]) -> None:
        side, session = self._sides[run.side], self.session
        if session is None:
            if self._handshake.hello is None:
                side.overhead += record.size
                self._give_up_both(Problem.NO_HANDSHAKE)
            else:
                self._wait(record, run)
            return
        decryption = side.decryption
        assert decryption is not None
        opened = decryption.open(session, self._key_log, record)
        if opened is None:
            self._failed(record, run, out)
        else:
            side.failures = 0
            self._opened(record, opened, run, out)

    def _opened(
        self, record: Record, opened: tuple[int, bytes], run: Run, out: list[Output]
    ) -> None:
        side = self._sides[run.side]
        kind, content = opened
        if kind == APPLICATION_DATA:
            side.overhead += record.size - len(content)
            if content:
                client = self.client
                if client is not None and not self._rows.announced:
                    out.append(self._rows.announce(client, self._sides[client], run))
                position, side.position = side.position, side.position + len(content)
                out.append(plaintext(run, position, content))
            return
        if kind == ALERT:
            out += self._rows.alert(side, record, content, run)
            return
        side.overhead += record.size
        assert self.session is not None
        hello = kind == HANDSHAKE and content[:1] == bytes([CLIENT_HELLO])
        if not self.session.is_13 and (hello or kind == CHANGE_CIPHER_SPEC):
            self._give_up_both(Problem.RENEGOTIATED)

    def _failed(self, record: Record, run: Run, out: list[Output]) -> None:
        """Handle a record that does not authenticate, in a side that is in sync."""
        side, session = self._sides[run.side], self.session
        decryption = side.decryption
        assert session is not None
        assert decryption is not None
        if not decryption.authenticated:
            side.overhead += record.size
            from_client = run.side == self.client
            early = from_client and session.client.early_data
            has_keys = session.has_handshake_keys(self._key_log, from_client)
            side.unreadable += record.size
            may_follow = session.is_13 and (early or not has_keys)
            if not may_follow or side.unreadable > MAX_UNREADABLE:
                side.give_up(Problem.WRONG_KEYS)
            elif early:
                side.overhead -= record.size
                text = Problem.EARLY_DATA
                out.append(self._rows.row(run.side, record.size, Status.UNPARSED, text, run))
            return
        side.failures += 1
        decryption.sequence += 1
        if side.failures > MAX_FAILURES:
            side.overhead += record.size
            side.give_up(Problem.LOST)
            return
        text = Problem.WRONG_KEYS
        out.append(self._rows.row(run.side, record.size, Status.UNPARSED, text, run))
        out.append(Unsynchronised(run.side))

    # -- missing bytes

    def _gap(self, gap: Gap) -> list[Output]:
        side = self._sides[gap.side]
        out: list[Output] = []
        held = side.buffer.clear()
        if not side.problem and side.decryption is None:
            self._gap_in_handshake(gap.side)
        if side.problem:
            side.overhead += held
            for number, each in enumerate(self._sides):
                out += self._rows.undecrypted(number, each, gap)
        elif held:
            text = "record with missing bytes"
            out.append(self._rows.row(gap.side, held, Status.UNPARSED, text, gap))
        out.append(self._rows.gap(gap))
        if side.decryption is not None and not side.problem:
            side.decryption.lose(gap.length)
            side.searching = True
            out.append(Unsynchronised(gap.side))
        return out

    def _gap_in_handshake(self, number: int) -> None:
        """Handle bytes that are missing before both hellos were captured."""
        lost_hello = number == self.client and self._handshake.hello is not None
        self._give_up_both(Problem.NO_HANDSHAKE if lost_hello else self._handshake.unfinished())

    def _search(self, run: Run, out: list[Output]) -> None:
        """Search the next record of a side behind missing bytes."""
        side, session = self._sides[run.side], self.session
        decryption, buffer = side.decryption, side.buffer
        assert session is not None
        assert decryption is not None
        offset = 0
        while True:
            offset, record = buffer.search(offset)
            if record is None:
                break
            opened = decryption.open(session, self._key_log, record)
            if opened is not None:
                self._passed_over(run, offset, out)
                buffer.drop(record.size)
                side.encrypted, side.searching, side.failures = not session.is_13, False, 0
                self._opened(record, opened, run, out)
                self._take(run, out)
                return
            offset += 1
        self._passed_over(run, offset, out)
        if not decryption.tries:
            side.give_up(Problem.LOST)

    def _passed_over(self, run: Run, size: int, out: list[Output]) -> None:
        """Make a row of bytes in front of the next record."""
        if size:
            self._sides[run.side].buffer.drop(size)
            text = "record with missing bytes"
            out.append(self._rows.row(run.side, size, Status.UNPARSED, text, run))
