"""A frame's bytes -> a row: what the header says, the body where it decodes, the reason where it
does not.

Law: a row always has everything that could be read before the first doubt; content never raises.
A frame is sealed first and opened later, by whoever has the time: what a conversation needs of it
is in its header, and opening it depends on nothing but the seal.

    frame --header--> Sealed --body--> Row         a response's header is its correlation id; the
                        `-- pickles                rest of its seal is the request it answers
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from ...errors import DecodeError
from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.header import REQUEST_PREFIX, decode_request_header, response_header_version
from ..rows import Row, Status
from .apis import api
from .bodies import read_body, request_verdict, response_verdict
from .stream import Mark

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

LEAST_HEAD: Final = 10
"""Bytes of a request header up to the length of its client id."""


@final
@mypyc_attr(acyclic=True)
class InFlightRequest:
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
        return InFlightRequest, (
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.packet,
            self.time_ns,
        )


@final
@mypyc_attr(acyclic=True)
class RawFrame:
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
        asked: InFlightRequest | None,
        body: int,
        error: str,
    ) -> None:
        self.is_request: bool = is_request
        self.frame: bytes = frame
        self.packet: int = packet
        self.time_ns: int = time_ns
        self.asked: InFlightRequest | None = asked
        self.body: int = body
        self.error: str = error

    def __reduce__(self) -> tuple[Any, ...]:
        return RawFrame, (
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


def in_flight_request(row: Row) -> InFlightRequest | None:
    """Say what response a request row lets expect; None where its header could not be read."""
    if row.api_key is None or row.api_version is None or row.correlation_id is None:
        return None
    return InFlightRequest(
        row.api_key,
        row.api_version,
        row.correlation_id,
        row.client_id,
        row.packet,
        row.time_ns,
    )


def api_name(api_key: int) -> str | None:
    """Name an API; None for a key that none has."""
    return api(api_key).name


# -- sealing


def raw_request(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> RawFrame:
    """Read the header of a request frame (without its size)."""
    try:
        head = decode_request_header(frame, lenient=True, limits=limits)
    except DecodeError as malformed:
        asked = _prefix(frame, mark)
        return RawFrame(True, frame, mark.packet, mark.time_ns, asked, -1, str(malformed))
    header = head.header
    asks = InFlightRequest(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        mark.packet,
        mark.time_ns,
    )
    error = "" if header.bent is None else f"client id: {header.bent}"
    return RawFrame(True, frame, mark.packet, mark.time_ns, asks, head.end, error)


@final
class RequestHeads:
    """Reads the headers of a connection's requests, where nothing about them is unusual.

    Law: a header is read as `raw_request` would, or not at all.
    """

    def __init__(self) -> None:
        self._client_id: str | None = None
        self._client_bytes: bytes = b""

    def seal(self, frame: bytes, packet: i64, time_ns: i64) -> RawFrame | None:
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
        asked = InFlightRequest(key, version, read_i32_be(frame, 4), client_id, packet, time_ns)
        return RawFrame(True, frame, packet, time_ns, asked, body, "")


def raw_response(frame: bytes, mark: Mark, asked: InFlightRequest) -> RawFrame:
    """Take a response frame (without its size) as the answer to a request."""
    return RawFrame(False, frame, mark.packet, mark.time_ns, asked, 4, "")


def _prefix(frame: bytes, mark: Mark) -> InFlightRequest | None:
    """Read what every request begins with, of one whose header fails behind it."""
    if len(frame) < REQUEST_PREFIX:
        return None
    key, version = int(read_i16_be(frame, 0)), int(read_i16_be(frame, 2))
    return InFlightRequest(
        key, version, int(read_i32_be(frame, 4)), None, mark.packet, mark.time_ns
    )


def request_row(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Read a request frame (without its size)."""
    return raw_request(frame, mark, limits).open(limits)


def response_row(
    frame: bytes, mark: Mark, asked: InFlightRequest, limits: Limits = DEFAULT_LIMITS
) -> Row:
    """Read a response frame (without its size) as the answer to a request."""
    return raw_response(frame, mark, asked).open(limits)


# -- opening

_make: Final[Any] = tuple.__new__
"""Makes a named tuple of all its values in order, in a third of the time that its class takes."""


def _malformed(sealed: RawFrame) -> Row:
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


def _request(sealed: RawFrame, limits: Limits) -> Row:
    asked, frame, body = sealed.asked, sealed.frame, sealed.body
    assert asked is not None
    known = api(asked.api_key)
    version = asked.api_version
    status, error, message = Status.OK, "", None
    written: int | None = version
    side = known.request
    if side is not None and side.first <= version <= side.last:
        message = read_body(side.load(), version, frame, body, limits)
    if message is None:
        verdict = request_verdict(asked.api_key, version, frame, body, limits)
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


def _response(sealed: RawFrame, limits: Limits) -> Row:
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
            message = read_body(side.load(), version, frame, body, limits)
    if message is None:
        verdict, body = response_verdict(key, version, frame, limits)
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
