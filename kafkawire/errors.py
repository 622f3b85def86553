"""Every exception kafkawire raises, on one screen.

Law: an exception carries what a program needs as attributes, builds its text in `__str__`, and
pickles (its `args` are its constructor's arguments). A Kafka error code is a value
(`kafkawire.ErrorCode`), never an exception.

    KafkaWireError
    |-- WireError(reason, path, offset)   bytes or values that are not what the protocol says
    |   |-- DecodeError      Truncated InvalidLength InvalidVarint InvalidText UnexpectedNull
    |   |                    InvalidTag TrailingBytes CorruptBatch UnsupportedMagic
    |   |                    UnsupportedCompression LimitExceeded
    |   |-- EncodeError      OutOfRange InvalidValue NullNotAllowed FieldNotInVersion
    |   |-- UnknownApiKey
    |   `-- UnsupportedVersion
    |-- ProtocolError        LocalProtocolError (our caller), RemoteProtocolError (the peer)
    `-- CaptureError(reason, offset)
                             BadMagic TruncatedCapture CorruptCapture UnsupportedLinkType
"""

from __future__ import annotations


class KafkaWireError(Exception):
    """The root: catch it to catch everything this package raises on purpose."""


class WireError(KafkaWireError, ValueError):
    """Bytes or values that do not fit the protocol.

    reason: what is wrong, one sentence. path: the field, as
    `FetchRequest.topics[3].partitions[0].fetch_offset`; "" where no field is concerned. offset:
    index of the byte in the decoded data; None when encoding, or where no byte is concerned.
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
    """The bytes are not a message of that kind and version."""


class Truncated(DecodeError):
    """The data ends before the value does."""


class InvalidLength(DecodeError):
    """A length or count that cannot be right."""


class InvalidVarint(DecodeError):
    """A variable-length integer longer than its type allows."""


class InvalidText(DecodeError):
    """A string that is not UTF-8."""


class UnexpectedNull(DecodeError):
    """Null where the schema allows none."""


class InvalidTag(DecodeError):
    """A tagged field that this version does not have, or whose declared size is not its size."""


class TrailingBytes(DecodeError):
    """Bytes left over after the last field."""


class CorruptBatch(DecodeError):
    """A record batch whose checksum or structure is wrong."""


class UnsupportedMagic(DecodeError):
    """A record batch of a format other than 0, 1 and 2."""


class UnsupportedCompression(DecodeError):
    """A codec that is not known, not allowed in that format, or whose package is not installed."""


class LimitExceeded(DecodeError):
    """The data asks for more than the configured limit (`kafkawire.Limits`)."""


class EncodeError(WireError):
    """The object cannot be written in that version."""


class OutOfRange(EncodeError):
    """A number, or a length, that its wire type cannot hold."""


class InvalidValue(EncodeError):
    """A value of the wrong type, or text that cannot be written as UTF-8."""


class NullNotAllowed(EncodeError):
    """None in a field that is not nullable in that version."""


class FieldNotInVersion(EncodeError):
    """A field that the version lacks is set, and the schema does not say it may be dropped."""


class UnknownApiKey(WireError):
    """No message has that API key or name."""


class UnsupportedVersion(WireError):
    """The message has no such version."""


class ProtocolError(KafkaWireError):
    """The conversation, not a single message, is wrong."""


class LocalProtocolError(ProtocolError):
    """Our own caller asked for something the protocol does not allow now."""


class RemoteProtocolError(ProtocolError):
    """The peer did something the protocol does not allow."""


class CaptureError(KafkaWireError):
    """Part of a capture file cannot be read; what was read before it stands.

    reason: what is wrong, one sentence. offset: index of the byte in the (uncompressed) file where
    it is.
    """

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} (at byte {self.offset})"


class BadMagic(CaptureError):
    """The file is no capture of a kind we know."""


class TruncatedCapture(CaptureError):
    """The file ends in the middle of a packet or block."""


class CorruptCapture(CaptureError):
    """Bytes that are no packet or block, skipped up to where packets begin again."""


class UnsupportedLinkType(CaptureError):
    """Packets of a link layer we do not read."""
