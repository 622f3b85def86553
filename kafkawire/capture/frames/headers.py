"""Decodes the headers of frames: raw frames, whose bodies stay undecoded.

Law: content never raises: a malformed header is the error of its raw frame.

    request frame ---header--> RawFrame(request: API, version, correlation id, client id)
    response frame --pairing--> RawFrame(request: the one that it responds to)
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from ...errors import DecodeError
from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.header import REQUEST_PREFIX, decode_request_header
from ..rows import Row
from .apis import api
from .decoding import InFlightRequest, RawFrame
from .stream import Mark

CONTROLLED_SHUTDOWN: Final = 7

MIN_HEADER: Final = 10
"""Bytes of a request header up to the length of its client id."""


def in_flight_request(row: Row) -> InFlightRequest | None:
    """Return the in-flight request of a request row; None if its header could not be decoded."""
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


def raw_request(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> RawFrame:
    """Decode the header of a request frame (without its size)."""
    try:
        head = decode_request_header(frame, lenient=True, limits=limits)
    except DecodeError as malformed:
        request = _prefix(frame, mark)
        return RawFrame(True, frame, mark.packet, mark.time_ns, request, -1, str(malformed))
    header = head.header
    request = InFlightRequest(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        mark.packet,
        mark.time_ns,
    )
    error = "" if header.bent is None else f"client id: {header.bent}"
    return RawFrame(True, frame, mark.packet, mark.time_ns, request, head.end, error)


@final
class RequestHeads:
    """Decodes the ordinary request headers of a connection, fast.

    Law: the result is that of `raw_request`, or None.
    """

    def __init__(self) -> None:
        self._client_id: str | None = None
        self._client_bytes: bytes = b""

    def read(self, frame: bytes, packet: i64, time_ns: i64) -> RawFrame | None:
        """Decode the header of a request frame (without its size); None: use `raw_request`."""
        size: i64 = len(frame)
        if size < MIN_HEADER:
            return None
        key, version = i64(read_i16_be(frame, 0)), i64(read_i16_be(frame, 2))
        known = api(key)
        if known.request is None or key == CONTROLLED_SHUTDOWN:
            return None
        length = i64(read_i16_be(frame, 8))
        if length < -1:
            return None
        end = MIN_HEADER if length == -1 else MIN_HEADER + length
        body = end
        if version >= known.tagged:
            body += 1
            if body > size or frame[end] != 0:
                return None
        if body > size:
            return None
        client_id: str | None = None
        if length >= 0:
            text = frame[MIN_HEADER:end]
            if text != self._client_bytes or self._client_id is None:
                if not text.isascii():
                    return None
                self._client_bytes, self._client_id = text, text.decode("ascii")
            client_id = self._client_id
        request = InFlightRequest(key, version, read_i32_be(frame, 4), client_id, packet, time_ns)
        return RawFrame(True, frame, packet, time_ns, request, body, "")


def raw_response(frame: bytes, mark: Mark, request: InFlightRequest) -> RawFrame:
    """Pair a response frame (without its size) with its request."""
    return RawFrame(False, frame, mark.packet, mark.time_ns, request, 4, "")


def _prefix(frame: bytes, mark: Mark) -> InFlightRequest | None:
    """Decode the fixed first fields of a request whose header is malformed behind them."""
    if len(frame) < REQUEST_PREFIX:
        return None
    key, version = int(read_i16_be(frame, 0)), int(read_i16_be(frame, 2))
    return InFlightRequest(
        key, version, int(read_i32_be(frame, 4)), None, mark.packet, mark.time_ns
    )


def request_row(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Decode a request frame (without its size)."""
    return raw_request(frame, mark, limits).decode(limits)


def response_row(
    frame: bytes, mark: Mark, request: InFlightRequest, limits: Limits = DEFAULT_LIMITS
) -> Row:
    """Decode a response frame (without its size) to a request."""
    return raw_response(frame, mark, request).decode(limits)
