"""Reads NSS key logs: the secrets of TLS connections, by the random value of their ClientHello.

Secrets are returned by `KeyLog.secret` only; they are in no message, `repr` or pickle. A line
that is not valid (a log that is still being written ends in one) is skipped and counted.

    CLIENT_RANDOM <client random> <master secret>                     TLS 1.2
    RSA Session-ID:<session id> Master-Key:<master secret>            TLS 1.2, of older programs
    SERVER_TRAFFIC_SECRET_0 <client random> <secret>, ...             TLS 1.3

Source: RFC 9850 (SSLKEYLOGFILE).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, TypeAlias

from ...errors import KafkaWireError

MASTER: Final = b"CLIENT_RANDOM"
PREMASTER: Final = b"PMS_CLIENT_RANDOM"
"""Wireshark's label of a pre-master secret."""

SESSION: Final = b"RSA Session-ID"
"""The label of a master secret by the session id, as Java agents log them.
"""

CLIENT_EARLY: Final = b"CLIENT_EARLY_TRAFFIC_SECRET"
CLIENT_HANDSHAKE: Final = b"CLIENT_HANDSHAKE_TRAFFIC_SECRET"
SERVER_HANDSHAKE: Final = b"SERVER_HANDSHAKE_TRAFFIC_SECRET"
CLIENT_TRAFFIC: Final = b"CLIENT_TRAFFIC_SECRET_0"
SERVER_TRAFFIC: Final = b"SERVER_TRAFFIC_SECRET_0"

LABELS: Final = frozenset(
    {
        MASTER,
        PREMASTER,
        CLIENT_EARLY,
        CLIENT_HANDSHAKE,
        SERVER_HANDSHAKE,
        CLIENT_TRAFFIC,
        SERVER_TRAFFIC,
    }
)
"""Labels of the secrets that are used; other labels are valid and skipped."""

MAX_BYTES: Final = 1 << 28
MAX_LINE: Final = 1 << 16
"""Bytes of a key log, and of a line of it, at most: a million connections; a line has 1,154 bytes
at most.
"""

LENGTHS: Final = frozenset({32, 48})
"""Bytes of a secret; of a pre-master secret any number."""

_LINE: Final = re.compile(rb"([A-Z][A-Z0-9_]{0,63}) ([0-9A-Fa-f]{64}) ((?:[0-9A-Fa-f]{2}){1,512})")
_SESSION: Final = re.compile(
    rb"RSA Session-ID:((?:[0-9A-Fa-f]{2}){1,32}) Master-Key:([0-9A-Fa-f]{96})"
)
_SKIPPED: Final = re.compile(rb"\s*(?:#.*)?|([A-Z][A-Z0-9_]*) \S+ \S+")
"""Empty lines, comments, and lines with other labels."""


class KeyLogError(KafkaWireError):
    """A file is not a key log. Its content is not part of the message."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class KeyLog:
    """The secrets of a key log. invalid: the number of invalid lines."""

    def __init__(self, text: bytes = b"") -> None:
        self.invalid = 0
        self._secrets: dict[tuple[bytes, bytes], bytes] = {}
        self.add(text)

    def __len__(self) -> int:
        return len(self._secrets)

    def __repr__(self) -> str:
        return f"<key log of {len(self)} secrets>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("key logs are not pickled: their secrets would be in the file")

    def add(self, text: bytes) -> None:
        """Add the lines of a key log, such as that of a pcapng Decryption Secrets Block."""
        for line in text.splitlines():
            match = _LINE.fullmatch(line.strip())
            if match is None and (of_session := _SESSION.fullmatch(line.strip())):
                session, secret = (bytes.fromhex(each.decode()) for each in of_session.groups())
                self._secrets[SESSION, session] = secret
                continue
            if match is None:
                skipped = _SKIPPED.fullmatch(line.strip())
                self.invalid += skipped is None or skipped[1] in (*LABELS, b"RSA")
                continue
            label, random, secret = match[1], match[2], bytes.fromhex(match[3].decode())
            if label not in LABELS:
                continue
            if label != PREMASTER and len(secret) not in LENGTHS:
                self.invalid += 1
                continue
            self._secrets[label, bytes.fromhex(random.decode())] = secret

    def copy(self) -> KeyLog:
        """Return a key log of the same secrets, to which others may be added."""
        copied = KeyLog()
        copied.invalid = self.invalid
        copied._secrets |= self._secrets
        return copied

    def secret(self, label: bytes, client_random: bytes) -> bytes | None:
        """Return the secret of a connection; of SESSION, by the session id instead."""
        return self._secrets.get((label, client_random))


def parse_key_log(data: bytes, name: str) -> KeyLog:
    """Parse the content of a key log; it may be empty, or end in a line that is incomplete.

    Raises KeyLogError if it has lines, and none of them is valid.
    """
    key_log = KeyLog(data)
    lines = sum(1 for line in data.splitlines() if line.strip())
    if key_log.invalid and key_log.invalid == lines:
        raise KeyLogError(name, "not a key log in NSS format (no valid line)")
    return key_log


def read_key_log(path: str | Path) -> KeyLog:
    """Read a key log. Raises KeyLogError, OSError."""
    return parse_key_log(key_log_content(path), str(path))


def key_log_content(path: str | Path) -> bytes:
    """Read the content of a key log, a file or a pipe.

    Raises KeyLogError for what does not end, such as a device; OSError.
    """
    parts: list[bytes] = []
    size = line = 0
    with Path(path).open("rb", buffering=0) as file:
        while part := file.read(MAX_LINE):
            parts.append(part)
            size += len(part)
            last = part.rfind(b"\n")
            line = line + len(part) if last < 0 else len(part) - last - 1
            if line > MAX_LINE:
                reason = f"not a key log in NSS format (a line of more than {MAX_LINE} bytes)"
                raise KeyLogError(str(path), reason)
            if size > MAX_BYTES:
                raise KeyLogError(str(path), f"a key log of more than {MAX_BYTES} bytes")
    return b"".join(parts)


KeySource: TypeAlias = str | Path | KeyLog | None
"""A key log, or the path of one."""


def as_key_log(source: KeySource) -> KeyLog:
    """Return a key log; an empty one for None. Raises KeyLogError, OSError."""
    if source is None:
        return KeyLog()
    return source if isinstance(source, KeyLog) else read_key_log(source)
