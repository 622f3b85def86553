"""Decodes bare frames and bodies, without packets: a dump of a stream, a hex string from a log.

The rows are those of a capture with the same frames, but with `packet` 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import DecodeError, UnknownApiKey
from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.frame import SIZE, Body, decode_request_body, decode_response_body
from ..rows import Row, Status
from .apis import KAFKA_APIS, Apis, apis_of
from .decoding import InFlightRequest
from .detection import Confidence, check_response
from .framing import Mark, in_flight_request, request_row, response_row

if TYPE_CHECKING:
    from ...registry import Registry

NO_PACKET = Mark(0, 0, 0)


def decode_frames(
    data: bytes,
    *,
    response_to: tuple[int, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    registry: Registry | None = None,
) -> Iterator[Row]:
    """Decode size-delimited frames, one after another: requests, and responses to earlier requests.

    response_to: API key and version of the requests, if all frames are responses. `packet` is 0 in
    every row. registry: the package of the messages, if they are not Kafka's.
    """
    apis = _apis(registry)
    in_flight: dict[int, InFlightRequest] = {}
    position = 0
    while position < len(data):
        rest = len(data) - position - SIZE
        size = (
            int.from_bytes(data[position : position + SIZE], "big", signed=True)
            if rest >= 0
            else -1
        )
        if not 4 <= size <= min(rest, limits.max_frame_bytes):
            yield _leftover(data[position:], size, rest)
            return
        frame = data[position + SIZE : position + SIZE + size]
        if response_to is not None:
            yield response_row(frame, NO_PACKET, _request_of(frame, *response_to, apis), limits)
        elif _is_response(frame, in_flight.get(_id(frame))):
            yield response_row(frame, NO_PACKET, in_flight.pop(_id(frame)), limits)
        else:
            row = request_row(frame, NO_PACKET, limits, apis)
            request = in_flight_request(row, apis)
            if request is not None:
                in_flight[request.correlation_id] = request
            yield row
        position += SIZE + size


def _apis(registry: Registry | None) -> Apis:
    return KAFKA_APIS if registry is None else apis_of(registry.name)


def _id(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big", signed=True)


def _is_response(frame: bytes, request: InFlightRequest | None) -> bool:
    """Whether a frame decodes as the response to an earlier request.

    It may also look like a request.
    """
    if request is None:
        return False
    confidence = check_response(
        frame, len(frame), request.api_key, request.api_version, apis=request.apis
    )
    return confidence is Confidence.PROVEN


def _request_of(frame: bytes, api_key: int, api_version: int, apis: Apis) -> InFlightRequest:
    return InFlightRequest(api_key, api_version, _id(frame), None, 0, 0, apis)


def _leftover(data: bytes, size: int, rest: int) -> Row:
    if rest < 0:
        reason = f"truncated frame size: {len(data)} of {SIZE} bytes"
    elif size > rest >= 0:
        reason = f"truncated frame: {rest} of {size} bytes"
    else:
        reason = f"invalid frame size {size}"
    return Row(0, 0, "request", len(data), Status.TRUNCATED, reason, raw=data)


def decode_body(
    api_key: int,
    version: int,
    direction: str,
    data: bytes,
    limits: Limits = DEFAULT_LIMITS,
    registry: Registry | None = None,
) -> Row:
    """Decode a bare body, without size and header. Raises UnknownApiKey.

    registry: as in `decode_frames`.
    """
    apis = _apis(registry)
    package = apis.package
    info = package.index.find(direction, api_key)
    if info is None:
        raise UnknownApiKey(f"no API has the key {api_key}")
    name = apis.api(api_key).name
    row = Row(0, 0, direction, len(data), Status.OK, "", api_key, name, version)
    if not info.first <= version <= info.last:
        reason = f"{info.name} has versions {info.first}-{info.last}, not {version}"
        return row._replace(status=Status.UNKNOWN_VERSION, error=reason, raw=data)

    def body(lenient: bool) -> Body:
        if direction == "response":
            return decode_response_body(api_key, version, data, 0, lenient, limits, package)
        message = decode_request_body(api_key, version, data, 0, lenient, limits, package)
        return Body(message, version)

    try:
        decoded = body(lenient=False)
    except DecodeError as strict:
        row = row._replace(error=str(strict), status=Status.LENIENT)
    else:
        return row._replace(message=decoded.message, body_version=decoded.version)
    try:
        decoded = body(lenient=True)
    except DecodeError:
        return row._replace(status=Status.MALFORMED, raw=data)
    return row._replace(message=decoded.message, body_version=decoded.version)
