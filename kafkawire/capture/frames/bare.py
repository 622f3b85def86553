"""Frames and bodies without packets around them: a dump of a stream, a hex string from a log.

Law: the same rows as from a capture, with `packet` 0: what is known of a frame does not depend on
how it came here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import DecodeError, UnknownApiKey
from ...messages import REGISTRY
from ...primitives import DEFAULT_LIMITS, Limits
from ...protocol.frame import SIZE, Body, decode_request_body, decode_response_body
from ..rows import Row, Status
from .decoding import InFlightRequest, api_name, in_flight_request, request_row, response_row
from .detection import Sight, judge_response
from .stream import Mark

NOWHERE = Mark(0, 0, 0)


def decode_frames(
    data: bytes, *, response_to: tuple[int, int] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Row]:
    """Read size-delimited frames, one behind the other: requests, and the responses to those that
    came before.

    response_to: API key and version where every frame is a response to such a request. `packet` is
    0 in every row.
    """
    asked: dict[int, InFlightRequest] = {}
    at = 0
    while at < len(data):
        left = len(data) - at - SIZE
        size = int.from_bytes(data[at : at + SIZE], "big", signed=True) if left >= 0 else -1
        if not 4 <= size <= min(left, limits.max_frame_bytes):
            yield _leftover(data[at:], size, left)
            return
        frame = data[at + SIZE : at + SIZE + size]
        if response_to is not None:
            yield response_row(frame, NOWHERE, _one(frame, *response_to), limits)
        elif _answers(frame, asked.get(_id(frame))):
            yield response_row(frame, NOWHERE, asked.pop(_id(frame)), limits)
        else:
            row = request_row(frame, NOWHERE, limits)
            expected = in_flight_request(row)
            if expected is not None:
                asked[expected.correlation_id] = expected
            yield row
        at += SIZE + size


def _id(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big", signed=True)


def _answers(frame: bytes, asked: InFlightRequest | None) -> bool:
    """Whether a frame is the answer to a request before it: both kinds may look plausible."""
    if asked is None:
        return False
    sight = judge_response(frame, len(frame), asked.api_key, asked.api_version)
    return sight is Sight.PROVEN


def _one(frame: bytes, api_key: int, api_version: int) -> InFlightRequest:
    return InFlightRequest(api_key, api_version, _id(frame), None, 0, 0)


def _leftover(data: bytes, size: int, left: int) -> Row:
    if left < 0:
        reason = f"{len(data)} bytes, too few for the size of a frame"
    elif size > left >= 0:
        reason = f"a frame of {size} bytes, of which {left} are there"
    else:
        reason = f"{size} is no size of a frame"
    return Row(0, 0, "request", len(data), Status.TRUNCATED, reason, raw=data)


def decode_body(
    api_key: int, version: int, direction: str, data: bytes, limits: Limits = DEFAULT_LIMITS
) -> Row:
    """Read a bare body, without size and header; UnknownApiKey for a key that no API has."""
    known = REGISTRY.find(direction, api_key)
    if known is None:
        raise UnknownApiKey(f"no API has the key {api_key}")
    row = Row(0, 0, direction, len(data), Status.OK, "", api_key, api_name(api_key), version)
    if not known.first <= version <= known.last:
        reason = f"{known.name} has versions {known.first}-{known.last}, not {version}"
        return row._replace(status=Status.UNKNOWN_VERSION, error=reason, raw=data)

    def body(lenient: bool) -> Body:
        if direction == "response":
            return decode_response_body(api_key, version, data, 0, lenient, limits)
        return Body(decode_request_body(api_key, version, data, 0, lenient, limits), version)

    try:
        made = body(lenient=False)
    except DecodeError as strict:
        row = row._replace(error=str(strict), status=Status.LENIENT)
    else:
        return row._replace(message=made.message, body_version=made.version)
    try:
        made = body(lenient=True)
    except DecodeError:
        return row._replace(status=Status.MALFORMED, raw=data)
    return row._replace(message=made.message, body_version=made.version)
