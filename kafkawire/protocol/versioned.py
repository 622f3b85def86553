"""Decodes and encodes payloads with a version: int16 version, then the body.

A version newer than the newest known one is read as that one if versions only append by
contract (the consumer and Connect protocols); bytes after it are in the message's `deviations`.

    JoinGroup, SyncGroup ...   00 03 | body of ConsumerProtocolSubscription 3
    Envelope                   00 00 | body of DefaultPrincipalData 0

Some clients (kafka-go, old KafkaJS) label a version 0 subscription as version 1. Kafka itself
rejects it; here it is read as the older version if every byte fits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from ..errors import DecodeError, Truncated, UnknownApiKey, UnsupportedVersion
from ..messages import REGISTRY
from ..primitives import DEFAULT_LIMITS, Limits, Message, Reader
from .client_payload import ClientPayload
from .connect import ConnectAssignment, ConnectWorkerMetadata

PREFIX: Final = 2
"""Bytes of the leading version."""

APPEND_ONLY: Final = {
    "ConsumerProtocolSubscription": True,
    "ConsumerProtocolAssignment": True,
    "ConnectWorkerMetadata": True,
    "ConnectAssignment": True,
    "DefaultPrincipalData": False,
}
"""Payload with a leading version -> whether a newer version may be read as the newest known."""

CONNECT: Final[dict[str, type[ClientPayload]]] = {
    "ConnectWorkerMetadata": ConnectWorkerMetadata,
    "ConnectAssignment": ConnectAssignment,
}


class Reading(NamedTuple):
    """A decoded payload: `version` is the one in the payload, `read_as` the one that fitted."""

    version: int
    read_as: int
    value: Any


class _Layouts(NamedTuple):
    """A class that decodes, its versions, and whether a newer one may be read as the last."""

    cls: Any
    first: int
    last: int
    append_only: bool

    def newest(self, version: int) -> int:
        """Return the version to read for the version in a payload."""
        return min(version, self.last) if self.append_only else version


def encode_versioned(message: Message, version: int) -> bytes:
    """Encode a message with a leading version, as the metadata in JoinGroup.

    Raises EncodeError, UnsupportedVersion, and UnknownApiKey for a message that has no leading
    version.
    """
    _layouts(type(message).__name__)
    body = message.encode(version)
    return version.to_bytes(PREFIX, "big") + body


def decode_versioned(
    name: str, data: bytes, *, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, Message]:
    """Decode a payload with a leading version; return the version and the message.

    Bytes after the last field and text that is not UTF-8 are accepted, as in Kafka; the message's
    `deviations` lists them. Raises DecodeError whose offset counts from the version,
    UnsupportedVersion, and UnknownApiKey for a name that is not among the versioned payloads.
    """
    reading = read_versioned(name, data, limits)
    return reading.version, reading.value


def read_versioned(name: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Reading:
    """Decode as `decode_versioned` does; return also the version that fitted."""
    reading = try_versioned(name, data, limits)
    if reading is not None:
        return reading
    layouts = _layouts(name)
    if len(data) < PREFIX:
        raise Truncated("the data ends inside the version", name, len(data))
    version = _version(data)
    newest = layouts.newest(version)
    if not layouts.first <= newest <= layouts.last:
        raise UnsupportedVersion(
            f"{name} has versions {layouts.first}-{layouts.last}, not {version}"
        )
    value = decode_at(layouts.cls, data, PREFIX, newest, limits)
    return Reading(version, newest, value)


def try_versioned(name: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Reading | None:
    """Decode as `read_versioned` does; None instead of an error."""
    layouts = _layouts(name)
    version = _version(data)
    newest = layouts.newest(version)
    if len(data) < PREFIX or not layouts.first <= newest <= layouts.last:
        return None
    versions = range(newest, layouts.first - 1, -1)
    reading = newest_fit(layouts.cls, data, PREFIX, versions, limits)
    if reading is None or reading.version == version:
        return reading
    return Reading(version, reading.read_as, reading.value)


def exact_fit(name: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Reading | None:
    """Decode all bytes of a payload at exactly the version in front; None instead of an error."""
    layouts = _layouts(name)
    version = _version(data)
    if len(data) < PREFIX or not layouts.first <= version <= layouts.last:
        return None
    value = _fit(layouts.cls, data, PREFIX, version, limits)
    if value is None or value.deviations is not None:
        return None
    return Reading(version, version, value)


def newest_fit(
    cls: Any, data: bytes, start: int, versions: range, limits: Limits
) -> Reading | None:
    """Find the first of the versions (newest first) that can be read from `start`.

    Only the first may be read leniently (trailing bytes, text that is not UTF-8): an older version
    is a guess, which must fit exactly. Returns also the version that fitted.
    """
    for version in versions:
        value = _fit(cls, data, start, version, limits)
        if value is not None and (value.deviations is None or version == versions[0]):
            return Reading(version, version, value)
    return None


def _fit(cls: Any, data: bytes, start: int, version: int, limits: Limits) -> Any:
    """Decode leniently from `start` to the end; None instead of an error."""
    reader = Reader(data, start, lenient=True, limits=limits)
    try:
        value = cls.decode_from(reader, version)
    except (IndexError, ValueError):  # errors of a reader: truncated data, DecodeError, text
        return None
    value.deviations = reader.finish()
    return value


def decode_at(cls: Any, data: bytes, start: int, version: int, limits: Limits) -> Any:
    """Decode the body at `start`; offsets in errors count from the beginning of `data`."""
    try:
        return cls.decode(data[start:], version, lenient=True, limits=limits)
    except DecodeError as error:
        offset = None if error.offset is None else error.offset + start
        raise type(error)(error.reason, error.path, offset) from None


def _version(data: bytes) -> int:
    return int.from_bytes(data[:PREFIX], "big", signed=True)


@cache
def _layouts(name: str) -> _Layouts:
    append_only = APPEND_ONLY.get(name)
    if append_only is None:
        raise UnknownApiKey(f"{name!r} is not a payload with a leading version")
    ours = CONNECT.get(name)
    if ours is not None:
        return _Layouts(ours, ours.FIRST, ours.LAST, append_only)
    info = REGISTRY.get(name)
    return _Layouts(REGISTRY.load(name), info.first, info.last, append_only)
