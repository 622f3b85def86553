"""Takes TLS records from the bytes of one direction, and decrypts them.

No more than one record is buffered, and the length of a record is bounded. A record is
decrypted if and only if it authenticates: what is returned was sent.

    bytes --RecordBuffer--> Record     type (1) | version (2) | length (2) | content
    Record --Opener--> content, or None if it does not authenticate

Source: RFC 8446, section 5; RFC 5246, section 6.2; RFC 5288 (AES-GCM); RFC 7905 (ChaCha20).
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from .hellos import TLS13
from .key_schedule import Keys
from .suites import Aead

HEADER: Final = 5
TAG: Final = 16
EXPLICIT: Final = 8
"""Bytes of the nonce that AES-GCM sends in records of TLS 1.2."""

MAX_CONTENT: Final = (1 << 14) + 2048
"""Bytes of an encrypted record at most (RFC 5246, 6.2.3; RFC 8446 allows fewer)."""

_HEADER: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04][\x00-\x48].", re.DOTALL)
_ENCRYPTED: Final = re.compile(rb"[\x15-\x17]\x03\x03[\x00-\x48].", re.DOTALL)


class Record(NamedTuple):
    """A record: its type, its header, its content."""

    type: int
    header: bytes
    content: bytes

    @property
    def size(self) -> int:
        return HEADER + len(self.content)


def begins_tls(data: bytes) -> bool | None:
    """Whether a stream begins with a TLS record; None if more bytes are needed.

    No Kafka frame of a permitted size begins like this. Data in the middle of a connection is TLS
    if it is encrypted by TLS 1.2 or 1.3.
    """
    if len(data) < HEADER:
        return None if 0x14 <= data[0] <= 0x17 and data[1:2] in (b"", b"\x03") else False
    return _HEADER.match(data) is not None and _plausible(data, 0)


def _plausible(data: bytes, position: int) -> bool:
    return 0 < int.from_bytes(data[position + 3 : position + HEADER]) <= MAX_CONTENT


class RecordBuffer:
    """Buffered bytes of one direction. held: their number."""

    def __init__(self) -> None:
        self.held = 0
        self._chunks: list[bytes] = []
        self._need = HEADER

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._chunks.append(data)
        self.held += len(data)

    def clear(self) -> int:
        """Drop all bytes; return their number."""
        dropped, self.held = self.held, 0
        self._chunks = []
        self._need = HEADER
        return dropped

    def take(self) -> tuple[list[Record], bool]:
        """Take all complete records; whether what follows can be a record."""
        records: list[Record] = []
        if self.held < self._need:
            return records, True
        data = self._joined()
        offset, valid = 0, True
        while True:
            if len(data) - offset < HEADER:
                self._need = HEADER
                break
            if not (_HEADER.match(data, offset) and _plausible(data, offset)):
                valid = False
                break
            end = offset + HEADER + int.from_bytes(data[offset + 3 : offset + HEADER])
            if end > len(data):
                self._need = end - offset
                break
            records.append(
                Record(data[offset], data[offset : offset + HEADER], data[offset + HEADER : end])
            )
            offset = end
        self._keep(data, offset)
        return records, valid

    def search(self, start: int) -> tuple[int, Record | None]:
        """Find the first place from `start` on where an encrypted record may begin.

        Returns the place, and the record if it is complete.
        """
        data = self._joined()
        match = _ENCRYPTED.search(data, start)
        while match is not None and not _plausible(data, match.start()):
            match = _ENCRYPTED.search(data, match.start() + 1)
        if match is None:
            return max(start, len(data) - HEADER + 1), None
        offset = match.start()
        end = offset + HEADER + int.from_bytes(data[offset + 3 : offset + HEADER])
        if end > len(data):
            return offset, None
        return offset, Record(
            data[offset], data[offset : offset + HEADER], data[offset + HEADER : end]
        )

    def drop(self, size: int) -> None:
        """Drop the first bytes."""
        self._keep(self._joined(), size)
        self._need = HEADER

    def _joined(self) -> bytes:
        if len(self._chunks) != 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def _keep(self, data: bytes, position: int) -> None:
        if position:
            self._chunks = [data[position:]]
            self.held = len(data) - position


class Opener:
    """Decrypts the records of one direction with one key."""

    def __init__(self, aead: Aead, keys: Keys, version: int) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

        self._aead: Any = ChaCha20Poly1305(keys.key) if aead.chacha else AESGCM(keys.key)
        self._iv = keys.iv
        self._number = int.from_bytes(keys.iv)
        self._is_13 = version == TLS13
        self._explicit = EXPLICIT if not self._is_13 and not aead.chacha else 0

    def open(self, record: Record, sequence: int) -> tuple[int, bytes] | None:
        """Decrypt a record: its content type and content; None if it does not authenticate."""
        from cryptography.exceptions import InvalidTag

        content, explicit = record.content, self._explicit
        size = len(content) - TAG - explicit
        if size < 0:
            return None
        if explicit:
            nonce = self._iv + content[:explicit]
            content = content[explicit:]
        else:
            nonce = (self._number ^ sequence).to_bytes(len(self._iv))
        header = record.header
        if not self._is_13:
            header = sequence.to_bytes(8) + header[:3] + size.to_bytes(2)
        try:
            plain: bytes = self._aead.decrypt(nonce, content, header)
        except InvalidTag:
            return None
        return _inner(plain) if self._is_13 else (record.type, plain)


def _inner(plain: bytes) -> tuple[int, bytes]:
    """Split TLSInnerPlaintext: content, type, padding (RFC 8446, 5.2)."""
    stripped = plain.rstrip(b"\0")
    return (stripped[-1], stripped[:-1]) if stripped else (0, b"")
