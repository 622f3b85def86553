"""A frame's bytes -> a row: what the header says, the body where it decodes, the reason where it
does not.

Law: a row always has everything that could be read before the first doubt; content never raises.
A frame is sealed first and opened later, by whoever has the time: what a conversation needs of it
is in its header, and opening it depends on nothing but the seal.

    frame --header--> Sealed --body--> Row         a response's header is its correlation id; the
                        `-- pickles                rest of its seal is the request it answers
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from ..errors import DecodeError, TrailingBytes
from ..messages import REGISTRY
from ..primitives import DEFAULT_LIMITS, Limits, Message, MessageInfo
from ..primitives.reader import Reader
from ..protocol.frame import decode_request_body, decode_response_body, response_body_versions
from ..protocol.header import (
    REQUEST_PREFIX,
    decode_request_header,
    decode_response_header,
    response_header_version,
)
from .apis import api
from .rows import Row, Status
from .stream import Mark

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

KEPT: Final = 1 << 8
KEPT_BYTES: Final = 1 << 10
"""Refused bodies that are remembered, and the longest of them."""

LEAST_HEAD: Final = 10
"""Bytes of a request header up to the length of its client id."""


@final
@mypyc_attr(acyclic=True)
class Asked:
    """A request that awaits its response."""

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        packet: int,
        time_ns: int,
    ) -> None:
        self.api_key: int = api_key
        self.api_version: int = api_version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id
        self.packet: int = packet
        self.time_ns: int = time_ns

    def __reduce__(self) -> tuple[Any, ...]:
        return Asked, (
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.packet,
            self.time_ns,
        )


@final
@mypyc_attr(acyclic=True)
class Sealed:
    """A frame (without its size) whose header was read, and whose body was not.

    packet, time_ns: as in Row. asked: what a request asks for, None where its header has not even
    that; what a response answers. body: where the body begins, -1 where the header is malformed.
    error: what is wrong with, or was bent in, a request's header.
    """

    def __init__(
        self,
        is_request: bool,
        frame: bytes,
        packet: int,
        time_ns: int,
        asked: Asked | None,
        body: int,
        error: str,
    ) -> None:
        self.is_request: bool = is_request
        self.frame: bytes = frame
        self.packet: int = packet
        self.time_ns: int = time_ns
        self.asked: Asked | None = asked
        self.body: int = body
        self.error: str = error

    def __reduce__(self) -> tuple[Any, ...]:
        return Sealed, (
            self.is_request,
            self.frame,
            self.packet,
            self.time_ns,
            self.asked,
            self.body,
            self.error,
        )

    def open(self, limits: Limits = DEFAULT_LIMITS) -> Row:
        """Read the body."""
        if self.asked is None or self.body < 0:
            return _malformed(self)
        return _request(self, limits) if self.is_request else _response(self, limits)


def asked_by(row: Row) -> Asked | None:
    """Say what response a request row lets expect; None where its header could not be read."""
    if row.api_key is None or row.api_version is None or row.correlation_id is None:
        return None
    return Asked(
        row.api_key,
        row.api_version,
        row.correlation_id,
        row.client_id,
        row.packet,
        row.time_ns,
    )


class _Verdict(NamedTuple):
    status: Status
    error: str
    message: Message | None
    body_version: int | None


def api_name(api_key: int) -> str | None:
    """Name an API; None for a key that none has."""
    return api(api_key).name


# -- sealing


def seal_request(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> Sealed:
    """Read the header of a request frame (without its size)."""
    try:
        head = decode_request_header(frame, lenient=True, limits=limits)
    except DecodeError as malformed:
        asked = _prefix(frame, mark)
        return Sealed(True, frame, mark.packet, mark.time_ns, asked, -1, str(malformed))
    header = head.header
    asks = Asked(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        mark.packet,
        mark.time_ns,
    )
    error = "" if header.bent is None else f"client id: {header.bent}"
    return Sealed(True, frame, mark.packet, mark.time_ns, asks, head.end, error)


@final
class RequestHeads:
    """Reads the headers of a connection's requests, where nothing about them is unusual.

    Law: a header is read as `seal_request` would, or not at all.
    """

    def __init__(self) -> None:
        self._client_id: str | None = None
        self._client_bytes: bytes = b""

    def seal(self, frame: bytes, packet: i64, time_ns: i64) -> Sealed | None:
        """Read the header of a request frame (without its size); None leaves it to others."""
        size: i64 = len(frame)
        if size < LEAST_HEAD:
            return None
        key, version = i64(read_i16_be(frame, 0)), i64(read_i16_be(frame, 2))
        known = api(key)
        if known.request is None or key == CONTROLLED_SHUTDOWN:
            return None
        length = i64(read_i16_be(frame, 8))
        if length < -1:
            return None
        end = LEAST_HEAD if length == -1 else LEAST_HEAD + length
        body = end
        if version >= known.tagged:
            body += 1
            if body > size or frame[end] != 0:
                return None
        if body > size:
            return None
        client_id: str | None = None
        if length >= 0:
            text = frame[LEAST_HEAD:end]
            if text != self._client_bytes or self._client_id is None:
                if not text.isascii():
                    return None
                self._client_bytes, self._client_id = text, text.decode("ascii")
            client_id = self._client_id
        asked = Asked(key, version, read_i32_be(frame, 4), client_id, packet, time_ns)
        return Sealed(True, frame, packet, time_ns, asked, body, "")


def seal_response(frame: bytes, mark: Mark, asked: Asked) -> Sealed:
    """Take a response frame (without its size) as the answer to a request."""
    return Sealed(False, frame, mark.packet, mark.time_ns, asked, 4, "")


def _prefix(frame: bytes, mark: Mark) -> Asked | None:
    """Read what every request begins with, of one whose header fails behind it."""
    if len(frame) < REQUEST_PREFIX:
        return None
    key, version = int(read_i16_be(frame, 0)), int(read_i16_be(frame, 2))
    return Asked(key, version, int(read_i32_be(frame, 4)), None, mark.packet, mark.time_ns)


def request_row(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Read a request frame (without its size)."""
    return seal_request(frame, mark, limits).open(limits)


def response_row(frame: bytes, mark: Mark, asked: Asked, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Read a response frame (without its size) as the answer to a request."""
    return seal_response(frame, mark, asked).open(limits)


# -- opening

_make: Final[Any] = tuple.__new__
"""Makes a named tuple of all its values in order, in a third of the time that its class takes."""


def _malformed(sealed: Sealed) -> Row:
    frame, asked = sealed.frame, sealed.asked
    row = Row(
        sealed.packet,
        sealed.time_ns,
        "request",
        len(frame),
        Status.MALFORMED,
        sealed.error,
        raw=frame,
    )
    if asked is None:
        return row
    return row._replace(
        api_key=asked.api_key,
        api_name=api_name(asked.api_key),
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
    )


def _request(sealed: Sealed, limits: Limits) -> Row:
    asked, frame, body = sealed.asked, sealed.frame, sealed.body
    assert asked is not None
    known = api(asked.api_key)
    version = asked.api_version
    status, error, message = Status.OK, "", None
    written: int | None = version
    side = known.request
    if side is not None and side.first <= version <= side.last:
        message = _read(side.load(), version, frame, body, limits)
    if message is None:
        verdict = _request_verdict(asked.api_key, version, frame, body, limits)
        status, error, message, written = verdict
    if sealed.error and status is Status.OK:
        status, error = Status.LENIENT, sealed.error
    row: Row = _make(
        Row,
        (
            sealed.packet,
            sealed.time_ns,
            "request",
            len(frame),
            status,
            error,
            asked.api_key,
            known.name,
            version,
            asked.correlation_id,
            asked.client_id,
            written,
            message,
            frame[body:] if message is None else b"",
            None,
            None,
        ),
    )
    return row


def _response(sealed: Sealed, limits: Limits) -> Row:
    asked, frame = sealed.asked, sealed.frame
    assert asked is not None
    key, version = asked.api_key, asked.api_version
    known = api(key)
    status, error, message = Status.OK, "", None
    written: int | None = version
    body = 4
    side = known.response
    # an ApiVersions response with an error may be written in another version (KIP-511)
    plain = key != API_VERSIONS or frame[4:6] == b"\0\0"
    if plain and side is not None and side.first <= version <= side.last:
        if response_header_version(key, version) == 1:
            # brokers send no tagged fields in response headers
            body = 5 if frame[4:5] == b"\0" else -1
        if body > 0:
            message = _read(side.load(), version, frame, body, limits)
    if message is None:
        verdict, body = _response_verdict(asked, frame, limits)
        status, error, message, written = verdict
    row: Row = _make(
        Row,
        (
            sealed.packet,
            sealed.time_ns,
            "response",
            len(frame),
            status,
            error,
            key,
            known.name,
            version,
            asked.correlation_id,
            asked.client_id,
            written,
            message,
            frame[body:] if message is None else b"",
            asked.packet,
            asked.time_ns,
        ),
    )
    return row


def _read(cls: Any, version: int, frame: bytes, body: int, limits: Limits) -> Message | None:
    """Read a body that is as it should be; None where anything is not, which is then asked for."""
    reader = Reader(frame, body, max_elements=limits.max_elements)
    try:
        message: Message = cls.decode_from(reader, version)
        message.bent = reader.finish()
    except (IndexError, ValueError):
        return None
    return message


def _request_verdict(key: int, version: int, frame: bytes, end: int, limits: Limits) -> _Verdict:
    info = REGISTRY.request(key)
    if info is None:
        return _Verdict(Status.UNKNOWN_API, f"no API has the key {key}", None, None)
    if not info.first <= version <= info.last:
        return _guess(info, version, frame, end, limits)
    known = _as_known(info, version, frame, end, limits)
    error = _refused.get(known)
    if error is None:
        try:
            body = decode_request_body(key, version, frame, end, False, limits)
            return _Verdict(Status.OK, "", body, version)
        except DecodeError as strict:
            error = _refuse(known, str(strict))
    return _bent(info, (version,), frame, end, limits, error)


def _response_verdict(asked: Asked, frame: bytes, limits: Limits) -> tuple[_Verdict, int]:
    key, version = asked.api_key, asked.api_version
    info = REGISTRY.response(key)
    if info is None:
        return _Verdict(Status.UNKNOWN_API, f"no API has the key {key}", None, None), 4
    try:
        end = decode_response_header(frame, key, version).end
    except DecodeError as strict:
        return _Verdict(Status.MALFORMED, str(strict), None, None), 4
    if not info.first <= version <= info.last:
        return _guess(info, version, frame, end, limits), end
    known = _as_known(info, version, frame, end, limits)
    error = _refused.get(known)
    if error is None:
        try:
            body = decode_response_body(key, version, frame, end, False, limits)
            return _Verdict(Status.OK, "", body.message, body.version), end
        except DecodeError as strict:
            error = _refuse(known, str(strict))
    versions = response_body_versions(key, version, frame, end)
    return _bent(info, versions, frame, end, limits, error), end


# -- bodies that are refused: what one client or broker gets wrong, it gets wrong each time


_refused: Final[dict[tuple[str, int, int, int, bytes], str]] = {}


def _as_known(
    info: MessageInfo, version: int, frame: bytes, end: int, limits: Limits
) -> tuple[str, int, int, int, bytes]:
    """Make the key under which it is remembered why a body was refused."""
    return info.name, version, end, limits.max_elements, frame[end : end + KEPT_BYTES + 1]


def _refuse(known: tuple[str, int, int, int, bytes], error: str) -> str:
    """Remember why a body was refused, which takes long to find out, if it is a short one."""
    if len(known[-1]) <= KEPT_BYTES:
        if len(_refused) >= KEPT:
            _refused.clear()
        _refused[known] = error
    return error


def _bent(
    info: MessageInfo,
    versions: tuple[int, ...],
    frame: bytes,
    end: int,
    limits: Limits,
    error: str,
) -> _Verdict:
    """Try leniently what a strict reader refused. Where it fails was searched for once already, so
    this reads without asking again.
    """
    for version in versions:
        reader = Reader(frame, end, lenient=True, max_elements=limits.max_elements)
        try:
            message: Message = REGISTRY.load(info.name).decode_from(reader, version)
            message.bent = reader.finish()
        except (DecodeError, IndexError):
            continue
        return _Verdict(Status.LENIENT, error, message, version)
    return _Verdict(Status.MALFORMED, error, None, None)


def _guess(info: MessageInfo, version: int, frame: bytes, end: int, limits: Limits) -> _Verdict:
    """Read a body of an unknown version as the nearest known one: a newer version mostly adds
    fields at the end, so what is left over does not speak against it if it is the smaller part.
    """
    nearest = min(max(version, info.first), info.last)
    reason = f"{info.name} has versions {info.first}-{info.last}, not {version}"
    cls = REGISTRY.load(info.name)
    try:
        message = cls.decode(frame[end:], nearest, limits=limits)
    except TrailingBytes as left:
        error = f"{reason}; as version {nearest}: {left}"
        if 2 * (left.offset or 0) >= len(frame) - end:
            message = cls.decode(frame[end:], nearest, lenient=True, limits=limits)
            return _Verdict(Status.GUESSED, error, message, nearest)
    except DecodeError as stopped:
        error = f"{reason}; as version {nearest}: {stopped}"
    else:
        return _Verdict(Status.GUESSED, f"{reason}; it fits version {nearest}", message, nearest)
    return _Verdict(Status.UNKNOWN_VERSION, error, None, None)
