"""The state machine of a TLS connection: its bytes in, the bytes that it protects out.

Law: content never raises; memory is bounded. Every byte is in plaintext, or counted in a row:
handshakes, headers and tags in rows of status `tls`, what is not decrypted in others.

    ClientHello, ServerHello --key log--> decrypting --> Run (plaintext) | Unsynchronised
                                 `-----> not decrypted --> Row, which says why
    decrypting --gap--> searching --a record authenticates--> decrypting
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from ..rows import Row, Status
from ..tcp.connection import Run
from ..tcp.events import Closed, Gap
from .alerts import alert_text
from .decryption import Decryption
from .hellos import (
    CLIENT_HELLO,
    CLIENT_KEY_EXCHANGE,
    SERVER_HELLO,
    ClientHello,
    HandshakeMessages,
    parse_client_hello,
    parse_server_hello,
    version_name,
)
from .keylog import PREMASTER, KeyLog
from .records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    Record,
    RecordBuffer,
)
from .session import Session
from .suites import SUITES, suite_name

MAX_MESSAGE: Final = 1 << 17
"""Bytes of a handshake message at most (certificates may be long)."""

MAX_TRANSCRIPT: Final = 1 << 18
MAX_WAITING: Final = 1 << 18
"""Bytes of encrypted records of a side that wait for the ServerHello."""

MAX_UNREADABLE: Final = 1 << 18
"""Bytes of 0-RTT data and of a handshake without keys that are passed over."""

MAX_FAILURES: Final = 16
"""Consecutive records that do not authenticate, after which a side is given up."""

DIRECTIONS: Final = ("request", "response")


class Unsynchronised(NamedTuple):
    """Plaintext of a side is missing: what follows is not known to begin at a frame."""

    side: int


Output: TypeAlias = Run | Row | Unsynchronised


class Problem(StrEnum):
    """Why the records of a side are not decrypted."""

    NO_CLIENT_HELLO = "the ClientHello was not captured"
    NO_SERVER_HELLO = "the ServerHello was not captured"
    NO_HANDSHAKE = "the handshake was not captured"
    INVALID_HELLO = "the handshake is malformed or too long"
    WRONG_KEYS = "a record does not authenticate with the keys of the key log"
    RENEGOTIATED = "the keys of a renegotiation are not decrypted"
    EARLY_DATA = "0-RTT data is not decrypted"
    LOST = "too many records are missing or do not authenticate"
    INVALID = "not a TLS record"


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


class TlsConnection:
    """One connection. client: the side that sent the ClientHello; None if not known."""

    def __init__(self, key_log: KeyLog) -> None:
        self.client: int | None = None
        self.session: Session | None = None
        self._key_log = key_log
        self._sides = Side(), Side()
        self._hello: ClientHello | None = None
        self._announced = False
        self._transcript: bytes | None = b""

    # -- events in, plaintext and rows out

    def handle(self, event: Run | Gap) -> list[Output]:
        """Handle the next bytes of a side, or that some are missing."""
        if isinstance(event, Gap):
            return self._gap(event)
        out: list[Output] = []
        side = self._sides[event.side]
        if side.problem:
            side.overhead += len(event.data)
        else:
            side.buffer.add(event.data)
            if not side.searching:
                self._take(event, out)
            if side.searching:
                self._search(event, out)
        for each in (0, 1):
            self._report_undecrypted(each, event, out)
        return _joined(out)

    def close(self, event: Closed) -> list[Output]:
        """Handle the end of the connection; call it after the plaintext has ended."""
        out: list[Output] = []
        for number, side in enumerate(self._sides):
            held = side.buffer.clear()
            waiting, side.waiting, side.waiting_bytes = side.waiting_bytes, [], 0
            if side.problem or self.session is None or waiting:
                side.problem = side.problem or self._unfinished()
                side.overhead += held + waiting
                self._report_undecrypted(number, event, out)
                continue
            if held:
                error = f"{self}: the last record is incomplete"
                out.append(self._row(number, held, Status.UNPARSED, error, event))
            if side.overhead:
                end = "headers and tags of records" if self._announced else "no data"
                out.append(self._row(number, side.overhead, Status.TLS, f"{self}: {end}", event))
                side.overhead = 0
        return out

    def _unfinished(self) -> str:
        if self._hello is None:
            return Problem.NO_HANDSHAKE if self.session is None else Problem.NO_CLIENT_HELLO
        return Problem.NO_SERVER_HELLO

    def __str__(self) -> str:
        parts = ["TLS"]
        if self.session is not None:
            server = self.session.server
            parts = [version_name(server.version), suite_name(server.suite)]
        if self._hello is not None and self._hello.server_name:
            parts.append(f"server name {self._hello.server_name}")
        return ", ".join(parts)

    # -- rows

    def _row(self, side: int, size: int, status: Status, error: str, at: Run | Gap | Closed) -> Row:
        direction = DIRECTIONS[side if self.client is None else side != self.client]
        return Row(at.packet, at.time_ns, direction, size, status, error)

    def _report_undecrypted(self, number: int, at: Run | Gap | Closed, out: list[Output]) -> None:
        """Make a row of the bytes of a side that is not decrypted."""
        side = self._sides[number]
        if not side.problem or not side.overhead:
            return
        decryption = side.decryption
        status = Status.OTHER_PROTOCOL
        if decryption is not None and decryption.authenticated:
            status = Status.UNPARSED
        size, side.overhead = side.overhead, 0
        out.append(self._row(number, size, status, f"{self}: {side.problem}", at))

    def _give_up(self, number: int, problem: str) -> None:
        """Do not decrypt a side any more: what it holds and what follows goes to rows."""
        side = self._sides[number]
        side.problem = side.problem or problem
        side.overhead += side.waiting_bytes + side.buffer.clear()
        side.waiting, side.waiting_bytes = [], 0

    def _give_up_both(self, problem: str) -> None:
        self._give_up(0, problem)
        self._give_up(1, problem)

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
                self._give_up(run.side, Problem.INVALID)

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
            self._alert(record, record.content, run, out)
        elif self.session is None and self._hello is not None and run.side == self.client:
            self._wait(record, run)
        else:
            side.overhead += record.size
            if record.type == CHANGE_CIPHER_SPEC and self.session and not self.session.is_13:
                side.encrypted = True

    def _message(self, message: bytes, run: Run, out: list[Output]) -> None:
        """Handle a handshake message that is not encrypted."""
        kind, body = message[0], message[4:]
        if kind == CLIENT_HELLO and self.session is None and self.client in (None, run.side):
            self._hello = parse_client_hello(body)
            self.client = run.side
            self._transcript = b""
            if self._hello is None:
                self._give_up_both(Problem.INVALID_HELLO)
            elif self._key_log.secret(PREMASTER, self._hello.random) is None:
                self._transcript = None
        self._transcribe(message)
        if kind == SERVER_HELLO and self.session is None:
            self._server_hello(body, run, out)
        elif kind == CLIENT_KEY_EXCHANGE and self.session is not None and self._transcript:
            aead = SUITES.get(self.session.server.suite)
            if aead is not None:
                self.session.session_hash = hashlib.new(aead.hash, self._transcript).digest()
            self._transcript = None

    def _transcribe(self, message: bytes) -> None:
        if self._transcript is not None:
            longer = len(self._transcript) + len(message) > MAX_TRANSCRIPT
            self._transcript = None if longer else self._transcript + message

    def _server_hello(self, body: bytes, run: Run, out: list[Output]) -> None:
        hello = parse_server_hello(body)
        if hello is None:
            self._give_up_both(Problem.INVALID_HELLO)
            return
        if hello.retry:
            return
        if self.client is None:
            self.client = 1 - run.side
        client_hello = self._hello or ClientHello(b"", "", False)
        session = self.session = Session(client_hello, hello)
        for number, side in enumerate(self._sides):
            from_client = number == self.client
            problem = session.unsupported() or (
                Problem.NO_CLIENT_HELLO
                if self._hello is None
                else session.missing(self._key_log, from_client)
            )
            if problem:
                self._give_up(number, problem)
                continue
            side.decryption = Decryption(from_client)
            waiting, side.waiting, side.waiting_bytes = side.waiting, [], 0
            for record, packet, time_ns in waiting:
                before = Run(run.connection, number, 0, b"", packet, time_ns, run.known)
                self._record(record, before, out)

    def _wait(self, record: Record, run: Run) -> None:
        """Keep an encrypted record until the ServerHello."""
        side = self._sides[run.side]
        side.waiting.append(Waiting(record, run.packet, run.time_ns))
        side.waiting_bytes += record.size
        if side.waiting_bytes > MAX_WAITING:
            self._give_up_both(Problem.NO_SERVER_HELLO)

    # -- encrypted records

    def _encrypted(self, record: Record, run: Run, out: list[Output]) -> None:
        side, session = self._sides[run.side], self.session
        if session is None:
            if self._hello is None:
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
                self._announce(run, out)
                position, side.position = side.position, side.position + len(content)
                out.append(_run(run, position, content))
            return
        if kind == ALERT:
            self._alert(record, content, run, out)
            return
        side.overhead += record.size
        assert self.session is not None
        hello = kind == HANDSHAKE and content[:1] == bytes([CLIENT_HELLO])
        if not self.session.is_13 and (hello or kind == CHANGE_CIPHER_SPEC):
            self._give_up_both(Problem.RENEGOTIATED)

    def _alert(self, record: Record, content: bytes, run: Run, out: list[Output]) -> None:
        """Make a row of an alert, unless it only closes the connection."""
        text = alert_text(content)
        if text:
            error = f"{self}: {text}"
            out.append(self._row(run.side, record.size, Status.OTHER_PROTOCOL, error, run))
        else:
            self._sides[run.side].overhead += record.size

    def _announce(self, run: Run, out: list[Output]) -> None:
        """Say version, suite and server name, in front of the first plaintext."""
        if self._announced or self.client is None:
            return
        self._announced = True
        side = self._sides[self.client]
        size, side.overhead = side.overhead, 0
        out.append(self._row(self.client, size, Status.TLS, f"{self}: decrypted", run))

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
            known = session.has_handshake_keys(self._key_log, from_client)
            side.unreadable += record.size
            may_follow = session.is_13 and (early or not known)
            if not may_follow or side.unreadable > MAX_UNREADABLE:
                self._give_up(run.side, Problem.WRONG_KEYS)
            elif early:
                side.overhead -= record.size
                error = f"{self}: {Problem.EARLY_DATA}"
                out.append(self._row(run.side, record.size, Status.UNPARSED, error, run))
            return
        side.failures += 1
        decryption.sequence += 1
        if side.failures > MAX_FAILURES:
            side.overhead += record.size
            self._give_up(run.side, Problem.LOST)
            return
        error = f"{self}: {Problem.WRONG_KEYS}"
        out.append(self._row(run.side, record.size, Status.UNPARSED, error, run))
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
            for each in (0, 1):
                self._report_undecrypted(each, gap, out)
        elif held:
            error = f"{self}: record with missing bytes"
            out.append(self._row(gap.side, held, Status.UNPARSED, error, gap))
        out.append(self._row(gap.side, gap.length, Status.GAP, gap.reason, gap))
        if side.decryption is not None and not side.problem:
            side.decryption.lose(gap.length)
            side.searching = True
            out.append(Unsynchronised(gap.side))
        return out

    def _gap_in_handshake(self, number: int) -> None:
        """Handle bytes that are missing before both hellos were captured."""
        lost_hello = number == self.client and self._hello is not None
        self._give_up_both(Problem.NO_HANDSHAKE if lost_hello else self._unfinished())

    def _search(self, run: Run, out: list[Output]) -> None:
        """Search the next record of a side behind missing bytes."""
        side, session = self._sides[run.side], self.session
        decryption, buffer = side.decryption, side.buffer
        assert session is not None
        assert decryption is not None
        at = 0
        while True:
            at, record = buffer.search(at)
            if record is None:
                break
            opened = decryption.open(session, self._key_log, record)
            if opened is not None:
                self._passed_over(run, at, out)
                buffer.drop(record.size)
                side.encrypted, side.searching, side.failures = not session.is_13, False, 0
                self._opened(record, opened, run, out)
                self._take(run, out)
                return
            at += 1
        self._passed_over(run, at, out)
        if not decryption.tries:
            self._give_up(run.side, Problem.LOST)

    def _passed_over(self, run: Run, size: int, out: list[Output]) -> None:
        """Make a row of bytes in front of the next record."""
        if size:
            self._sides[run.side].buffer.drop(size)
            error = f"{self}: record with missing bytes"
            out.append(self._row(run.side, size, Status.UNPARSED, error, run))


def _joined(out: list[Output]) -> list[Output]:
    """Join the plaintext of adjacent records that one packet completed."""
    joined: list[Output] = []
    at = 0
    while at < len(out):
        first = out[at]
        at += 1
        if isinstance(first, Run):
            start = at - 1
            while at < len(out) and _continues(first, out[at]):
                at += 1
            if at - start > 1:
                data = b"".join([each.data for each in out[start:at] if isinstance(each, Run)])
                first = _run(first, first.position, data)
        joined.append(first)
    return joined


def _continues(run: Run, other: Output) -> bool:
    return isinstance(other, Run) and other.side == run.side and other.packet == run.packet


def _run(like: Run, position: int, data: bytes) -> Run:
    return Run(like.connection, like.side, position, data, like.packet, like.time_ns, like.known)
