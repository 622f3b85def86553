"""Decodes and encodes records of Kafka's internal logs.

Content never raises. What cannot be decoded (an unknown type or version, truncated or corrupt
bytes) is a part with its raw bytes and the reason; null is None, and a null value is a tombstone.

    log                    key                            value
    __consumer_offsets     int16 type | body, version 0   int16 version | body
    __transaction_state    the same, with types of        the same
    __share_group_state      their own
    __cluster_metadata     null                           uvarint frame version (1) | uvarint type |
    __remote_log_metadata  null                             uvarint version | body
    control records        int16 version | int16 type     transaction markers: int16 version | body
    of any log                                            KRaft: body, which begins with its version

A key begins with the record's type, a value with its version: old schemas called both "version".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..errors import DecodeError, UnknownApiKey, UnsupportedVersion, WireError
from ..messages import REGISTRY
from ..primitives import DEFAULT_LIMITS, Limits, Message, Reader
from .embedded import add_payloads
from .json_form import Json
from .json_text import shown_json
from .log_types import (
    BARE,
    CONTROL_KEY,
    CONTROL_VALUES,
    COORDINATED,
    END_TXN,
    FORMER,
    FRAME_TYPE,
    FRAMED,
    KEY_TYPE,
    VERSIONED,
    InternalLog,
)
from .secrets import SECRET_MESSAGES, placeholder
from .versioned import decode_at

PREFIX: Final = 2
"""Bytes of the leading type or version."""

FRAME_VERSION: Final = 1
"""The only version of the frame around metadata records."""


class LogPart(NamedTuple):
    """The key or the value of a log record.

    raw: its bytes.
    name: the name of its message; None for an unknown type. type: the record's type, if these bytes
    have it (coordinators' keys, framed values). version: the version of the body; None if unknown.
    message: the decoded body with its `deviations`; None if there is an error. error: why it is
    not decoded, with field and byte, or None. secret: whether the bytes contain or may contain a
    secret: undecoded ones of the metadata log.
    """

    raw: bytes
    name: str | None = None
    type: int | None = None
    version: int | None = None
    message: Message | None = None
    error: str | None = None
    secret: bool = False

    def to_json(self, *, secrets: bool = True) -> dict[str, Json]:
        """Make a JSON object: name, type, version, message; or error and the bytes in hex.

        Payloads inside (subscriptions, assignments) follow their raw fields, as `<field>Decoded`.
        secrets: whether secrets are shown, or their length.
        """
        header = {"name": self.name, "type": self.type, "version": self.version}
        obj: dict[str, Json] = {key: value for key, value in header.items() if value is not None}
        if self.message is None or self.version is None:
            hidden = self.secret and not secrets
            raw = placeholder(len(self.raw), "byte") if hidden else self.raw.hex()
            return obj | {"error": self.error, "hex": raw}
        body = obj["message"] = shown_json(self.message, self.version, secrets)
        add_payloads(body, self.message, self.version, secrets=secrets)
        if self.message.deviations is not None:
            obj["deviations"] = str(self.message.deviations)
        return obj


class LogRecord(NamedTuple):
    """A record of an internal log. key, value: None if they are null."""

    key: LogPart | None
    value: LogPart | None


def decode_log_record(
    log: InternalLog,
    key: bytes | None,
    value: bytes | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
) -> LogRecord:
    """Decode the key and value of a record in one of Kafka's own logs; never raises on content."""
    if log in COORDINATED:
        return _coordinated(COORDINATED[log], key, value, limits)
    types = FRAMED[log]
    record = LogRecord(
        None if key is None else LogPart(key, error="records of this log have null keys"),
        None if value is None else _attempt(value, lambda: _framed(types, value, limits)),
    )
    return record if log is not InternalLog.METADATA else LogRecord(*map(_marked, record))


def _marked(part: LogPart | None) -> LogPart | None:
    """Mark a part of the metadata log whose bytes contain, or may contain, a secret."""
    if part is None or (part.message is not None and part.name not in SECRET_MESSAGES):
        return part
    return part._replace(secret=True)


def decode_control_record(
    key: bytes | None, value: bytes | None, *, limits: Limits = DEFAULT_LIMITS
) -> LogRecord:
    """Decode a record of a control batch; never raises on content."""
    if key is None:
        return LogRecord(None, _without_type(value, "a control record without a key"))
    read = _attempt(key, lambda: _append_only(CONTROL_KEY, key, limits))
    if read.message is None:
        return LogRecord(read, _without_type(value, "the key does not say the type"))
    number = int.from_bytes(key[PREFIX : 2 * PREFIX], "big", signed=True)
    read = read._replace(type=number)
    if value is None:
        return LogRecord(read, None)
    name = CONTROL_VALUES.get(number)
    if name is None:
        return LogRecord(read, _without_type(value, f"no control record has type {number}"))
    decode = _append_only if name == END_TXN else _bare
    return LogRecord(read, _attempt(value, lambda: decode(name, value, limits), name))


def encode_log_message(message: Message, version: int) -> bytes:
    """Encode a message as the key or value of its log record, prefix included.

    Raises EncodeError, UnsupportedVersion, and UnknownApiKey for a message of no log.
    """
    body = message.encode(version, lenient=message.deviations is not None)
    return _prefix(type(message).__name__, version) + body


# -- reading


def _coordinated(
    types: dict[int, str], key: bytes | None, value: bytes | None, limits: Limits
) -> LogRecord:
    if key is None:
        return LogRecord(None, _without_type(value, "without a key, its type is not known"))
    read = _attempt(key, lambda: _key(types, key, limits))
    if value is None:
        return LogRecord(read, None)
    stem = None if read.type is None else types.get(read.type)
    if stem is None:
        return LogRecord(read, _without_type(value, "the key is of no known type"))
    name = f"{stem}Value"
    return LogRecord(read, _attempt(value, lambda: _value(name, value, limits), name))


def _without_type(raw: bytes | None, reason: str) -> LogPart | None:
    return None if raw is None else LogPart(raw, error=reason)


def _attempt(raw: bytes, read: Callable[[], LogPart], name: str | None = None) -> LogPart:
    try:
        return read()
    except WireError as error:
        return LogPart(raw, name, error=str(error))


def _key(types: dict[int, str], raw: bytes, limits: Limits) -> LogPart:
    number = _int16(raw, "type")
    if number not in types:
        return LogPart(raw, type=number, error=f"no record of this log has type {number}")
    name = f"{types[number]}Key"
    version = REGISTRY.get(name).first  # a key has one version
    part = LogPart(raw, name, number, version)
    return _body(part, PREFIX, limits)


def _value(name: str, raw: bytes, limits: Limits) -> LogPart:
    return _body(LogPart(raw, name, version=_int16(raw, "version")), PREFIX, limits)


def _append_only(name: str, raw: bytes, limits: Limits) -> LogPart:
    """Read a value to which newer versions only append: a newer one is read as the newest known."""
    version = min(_int16(raw, "version"), REGISTRY.get(name).last)
    return _body(LogPart(raw, name, version=version), PREFIX, limits)


def _bare(name: str, raw: bytes, limits: Limits) -> LogPart:
    return _body(LogPart(raw, name, version=_int16(raw, "version")), 0, limits)


def _framed(types: dict[int, str], raw: bytes, limits: Limits) -> LogPart:
    reader = Reader(raw)
    try:
        frame_version = int(reader.read_uvarint())
        number = int(reader.read_uvarint())
        version = int(reader.read_uvarint())
    except IndexError:
        return LogPart(raw, error=f"the data ends inside the frame (at byte {len(raw)})")
    if frame_version != FRAME_VERSION:
        return LogPart(raw, error=f"frame version {frame_version}, not {FRAME_VERSION}")
    name = types.get(number)
    if name is None:
        return LogPart(raw, type=number, error=f"no record of this log has type {number}")
    part = _body(LogPart(raw, name, number, version), int(reader.pos), limits)
    former = FORMER.get(name)
    if part.error is not None and former is not None:
        older = _body(part._replace(name=former, error=None), int(reader.pos), limits)
        return part if older.error is not None else older
    return part


def _body(part: LogPart, start: int, limits: Limits) -> LogPart:
    """Decode the body at `start`; the part keeps the fields of its prefix."""
    assert part.name is not None
    assert part.version is not None
    try:
        cls: Any = REGISTRY.load(part.name)
        message = decode_at(cls, part.raw, start, part.version, limits)
    except (DecodeError, UnsupportedVersion) as error:
        return part._replace(error=str(error))
    return part._replace(message=message)


def _int16(raw: bytes, what: str) -> int:
    if len(raw) < PREFIX:
        raise DecodeError(f"the data ends inside the {what}", "", len(raw))
    return int.from_bytes(raw[:PREFIX], "big", signed=True)


# -- writing


def _prefix(name: str, version: int) -> bytes:
    if name in KEY_TYPE:
        return KEY_TYPE[name].to_bytes(PREFIX, "big")
    if name in VERSIONED:
        return version.to_bytes(PREFIX, "big")
    if name in FRAME_TYPE:
        return bytes([FRAME_VERSION, FRAME_TYPE[name], version])
    if name in BARE:
        return b""
    raise UnknownApiKey(f"{name!r} is not a log record")
