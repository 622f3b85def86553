"""Every exception kafkawire raises, on one screen.

An exception carries what a program needs as attributes, builds its text in `__str__`, and
pickles (its `args` are its constructor's arguments). A Kafka error code is a value
(`kafkawire.ErrorCode`), never an exception.

    KafkaWireError
    |-- WireError(reason, path, offset)   invalid bytes or values
    |   |-- DecodeError      Truncated InvalidLength InvalidVarint InvalidText UnexpectedNull
    |   |                    InvalidTag TrailingBytes CorruptBatch UnsupportedMagic
    |   |                    UnsupportedCompression LimitExceeded
    |   |-- EncodeError      OutOfRange InvalidValue NullNotAllowed FieldNotInVersion
    |   |-- UnknownApiKey
    |   `-- UnsupportedVersion
    |-- ProtocolError        LocalProtocolError (the caller), RemoteProtocolError (the peer)
    |-- CaptureError(reason, offset)
    |                        BadMagic TruncatedCapture CorruptCapture UnsupportedLinkType
    |                        UnsupportedBlockType
    |-- InvalidMetadataRecord(reason, record, offset)
    |                        a record of __cluster_metadata that does not apply
    |-- FilterError(reason, text, at, length)
    |-- QueryError           an SQL statement that cannot be run
    |-- InvalidRecordValue(reason)
    |                        a key or value that is not of its format or schema
    |-- UnusableSchema(reason, name, transient)
    `-- MissingPackage       a package of an extra that is not installed

    UserWarning
    `-- IncompleteCaptureWarning
"""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Write a number with its noun: `1 byte`, `2 bytes`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


class KafkaWireError(Exception):
    """The base class of every exception that this package raises on purpose."""


class WireError(KafkaWireError, ValueError):
    """Bytes or values that are invalid in the protocol.

    reason: what is wrong, one sentence. path: the field, as
    `FetchRequest.topics[3].partitions[0].fetch_offset`; "" if there is none. offset: index of the
    byte in the decoded data; None when encoding, or if unknown.
    """

    def __init__(self, reason: str, path: str = "", offset: int | None = None) -> None:
        super().__init__(reason, path, offset)
        self.reason = reason
        self.path = path
        self.offset = offset

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        at = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{where}{self.reason}{at}"


class DecodeError(WireError):
    """The bytes are not a valid message of that type and version."""


class Truncated(DecodeError):
    """The data ends inside a value."""


class InvalidLength(DecodeError):
    """An invalid length or count."""


class InvalidVarint(DecodeError):
    """A variable-length integer longer than its type allows."""


class InvalidText(DecodeError):
    """A string that is not UTF-8."""


class UnexpectedNull(DecodeError):
    """Null in a field that is not nullable."""


class InvalidTag(DecodeError):
    """A tagged field that this version does not have, or whose declared size is wrong."""


class TrailingBytes(DecodeError):
    """Bytes after the last field."""


class CorruptBatch(DecodeError):
    """A record batch whose checksum or structure is wrong."""


class UnsupportedMagic(DecodeError):
    """A record batch of a format other than 0, 1 and 2."""


class UnsupportedCompression(DecodeError):
    """A codec that is unknown, not allowed in that format, or whose package is not installed."""


class LimitExceeded(DecodeError):
    """The data exceeds a configured limit (`kafkawire.Limits`)."""


class EncodeError(WireError):
    """The object cannot be encoded in that version."""


class OutOfRange(EncodeError):
    """A number or length out of the range of its wire type."""


class InvalidValue(EncodeError):
    """A value of the wrong type, or text that cannot be written as UTF-8."""


class NullNotAllowed(EncodeError):
    """None in a field that is not nullable in that version."""


class FieldNotInVersion(EncodeError):
    """A field that the version does not have is set, and is not ignorable."""


class UnknownApiKey(WireError):
    """No message has that API key or name."""


class UnsupportedVersion(WireError):
    """The message has no such version."""


class ProtocolError(KafkaWireError):
    """The order of messages, not a single message, is invalid."""


class LocalProtocolError(ProtocolError):
    """The caller did something that the protocol does not allow in this state."""


class RemoteProtocolError(ProtocolError):
    """The peer did something that the protocol does not allow."""


class InvalidMetadataRecord(KafkaWireError):
    """A record of `__cluster_metadata` that is unknown, or does not apply to the metadata.

    reason: what is wrong. record: its type, as `PartitionChangeRecord`; "" if unknown. offset: its
    offset in the log.
    """

    def __init__(self, reason: str, record: str, offset: int) -> None:
        super().__init__(reason, record, offset)
        self.reason = reason
        self.record = record
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.record or 'record'} at offset {self.offset}: {self.reason}"


class CaptureError(KafkaWireError):
    """Part of a capture file is unreadable; what was read before it is valid.

    reason: what is wrong, one sentence. offset: index of the byte in the (uncompressed) file.
    """

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} (at byte {self.offset})"


class BadMagic(CaptureError):
    """The file is not a capture in a known format."""


class TruncatedCapture(CaptureError):
    """The file ends in the middle of a packet or block."""


class CorruptCapture(CaptureError):
    """Bytes that are not a packet or block, skipped up to the next packet."""


class UnsupportedLinkType(CaptureError):
    """Packets of an unsupported link type."""


class UnsupportedBlockType(CaptureError):
    """A pcapng file without packets, with blocks of other types."""


class IncompleteCaptureWarning(UserWarning):
    """A capture has only parts of some messages: what is made of it lacks what was in them."""


class FilterError(KafkaWireError, ValueError):
    """A filter expression that is invalid.

    reason: what is wrong, one sentence. text: the expression. at, length: the invalid part of it.
    """

    def __init__(self, reason: str, text: str, at: int, length: int = 1) -> None:
        super().__init__(reason, text, at, length)
        self.reason = reason
        self.text = text
        self.at = at
        self.length = length

    def __str__(self) -> str:
        return f"{self.reason} (at character {self.at + 1} of the filter)"


class QueryError(KafkaWireError, ValueError):
    """An SQL statement cannot be run; the text says why, and where."""


class InvalidRecordValue(KafkaWireError, ValueError):
    """The key or value of a record is not of its format or schema.

    reason: what is wrong, one sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class UnusableSchema(KafkaWireError, ValueError):
    """A schema cannot be read, is invalid, or exceeds a limit.

    reason: what is wrong, one sentence. name: the schema, as `schema 7` or `orders.avsc`.
    transient: whether it may be usable later, since its registry could not be reached.
    """

    def __init__(self, reason: str, name: str = "", transient: bool = False) -> None:
        super().__init__(reason, name, transient)
        self.reason = reason
        self.name = name
        self.transient = transient

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}" if self.name else self.reason


class MissingPackage(KafkaWireError, ImportError):
    """A package that is installed with an extra of kafkawire is missing.

    package: its name. extra: the extra that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.package} is not installed: pip install 'kafkawire[{self.extra}]'"
