"""Detects the Kafka protocol in a stream, and where frames begin (resynchronisation).

A single plausible number proves nothing. At the beginning of a stream, a request is detected
by its size, API key, version, correlation id and client id together; in the middle of a stream, and
where the client id is not ordinary text, its body must decode as well.
"""

# over 300 lines: requests and responses, by one set of limits and confidences, hot

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from ...errors import LimitExceeded, WireError
from ...primitives import DEFAULT_LIMITS, Reader
from ...primitives.limits import NO_LIMITS
from ...protocol.header import decode_request_header, decode_response_header
from .apis import CLIENT_ID, KAFKA_APIS, Apis
from .decoding import InFlightRequest
from .effort import Effort

SIZE: Final = 4
MIN_REQUEST: Final = 8
"""Bytes of the smallest request: a ControlledShutdown header."""

MAX_CLIENT_ID: Final = 1024
"""Bytes of an ordinary client id; others are accepted only where the body decodes."""

MAX_TRAILING: Final = 4
"""Trailing bytes that known clients send behind their last field, at most."""

MAX_INCOMPLETE: Final = 1 << 20
"""The largest incomplete frame that may become proven by more bytes."""


class RequestCandidate(NamedTuple):
    """A plausible request: its size, API key and version."""

    size: int
    api_key: int
    api_version: int


def request_at(
    data: bytes, start: int, max_frame_bytes: int, apis: Apis = KAFKA_APIS
) -> RequestCandidate | None:
    """Return the plausible request at `start`.

    Returns None if the available bytes rule it out, or are too few for a first check.
    """
    if not _may_be_request(data, start, max_frame_bytes, apis):
        return None
    key, version = int(read_i16_be(data, start + 4)), int(read_i16_be(data, start + 6))
    return RequestCandidate(int(read_i32_be(data, start)), key, version)


def looks_like_request(
    data: bytes, start: i64, max_frame_bytes: i64, apis: Apis = KAFKA_APIS
) -> bool:
    """Whether `request_at` finds a request at `start` that has no client id, or an ordinary one."""
    if not _may_be_request(data, start, max_frame_bytes, apis):
        return False
    return _is_ordinary(data, start, apis)


def _may_be_request(data: bytes, start: i64, max_frame_bytes: i64, apis: Apis) -> bool:
    """Whether the fixed fields and the length of the client id are those of a request."""
    if len(data) - start < apis.head_bytes:
        return False
    size = i64(read_i32_be(data, start))
    if size < MIN_REQUEST or size > max_frame_bytes or data[start + 8] > 0x7F:
        return False
    version = i64(read_i16_be(data, start + 6))
    api = apis.api(int(read_i16_be(data, start + 4)))
    request = api.request
    if request is None or version < 0 or version > request.last:
        return False
    if version < api.ordinary and not apis.is_kafka:
        return True  # a header without a client id, or of the package's own
    if len(data) - start < CLIENT_ID:
        return False
    length = i64(read_i16_be(data, start + 12))
    return length == -1 or size < CLIENT_ID - SIZE or 0 <= length <= size - (CLIENT_ID - SIZE)


def _is_ordinary(data: bytes, start: i64, apis: Apis) -> bool:
    """Whether a plausible request has no client id, or short text without controls."""
    if not apis.is_kafka:
        api = apis.api(int(read_i16_be(data, start + 4)))
        if i64(read_i16_be(data, start + 6)) < api.ordinary:
            return True
    size = i64(read_i32_be(data, start))
    length = i64(read_i16_be(data, start + 12))
    if length == -1 or size < CLIENT_ID - SIZE:
        return True
    if length > MAX_CLIENT_ID:
        return False
    position = start + CLIENT_ID
    end = min(position + length, i64(len(data)))
    while position < end:
        if data[position] < 0x20 or data[position] == 0x7F:
            return False
        position += 1
    return True


class Confidence(IntEnum):
    """How certain it is that a frame begins at a position."""

    NO = 0
    POSSIBLE = 1
    """The frame is incomplete; its available bytes are valid."""
    PROVEN = 2
    """The frame is complete, and its body decodes."""


class Found(NamedTuple):
    """The first position where a frame may begin; if not proven, retry with more bytes."""

    at: int
    proven: bool


class Scan(NamedTuple):
    """The result of a search for a request.

    resume: where to continue with more bytes; all positions before are ruled out.
    """

    found: Found | None
    resume: int


def find_request(data: bytes, max_frame_bytes: int, apis: Apis = KAFKA_APIS) -> Found | None:
    """Find the first request in a stream that may begin inside a frame."""
    return scan_request(data, max_frame_bytes, apis=apis).found


def scan_request(
    data: bytes, max_frame_bytes: int, start: int = 0, apis: Apis = KAFKA_APIS
) -> Scan:
    """Find the first request from `start` on, in time linear in the bytes.

    An incomplete one whose client id is not ordinary text is returned if there is no other.
    """
    effort = Effort(len(data) - start)
    doubtful: Found | None = None
    resume = max(start, len(data) - apis.head_bytes + 1)
    for match in apis.ahead.finditer(data, start):
        position = match.start()
        confidence = check_request(data, position, max_frame_bytes, effort, apis)
        if confidence is Confidence.POSSIBLE and not _is_ordinary(data, position, apis):
            doubtful = doubtful or Found(position, False)
        elif confidence is not Confidence.NO:
            return Scan(Found(position, confidence is Confidence.PROVEN), min(resume, position))
        if 0 < len(data) - position - SIZE - int(read_i32_be(data, position)) < apis.head_bytes:
            resume = min(resume, position)  # the frame behind it may still prove it
        if effort.left < 0:
            break
    return Scan(doubtful, resume if doubtful is None else min(resume, doubtful.at))


def check_request(
    data: bytes,
    position: int,
    max_frame_bytes: int,
    effort: Effort | None = None,
    apis: Apis = KAFKA_APIS,
) -> Confidence:
    """Check whether a request begins at a position: whether its body decodes.

    It decodes strictly, or it decodes leniently and another request follows immediately.

    Behind a client id that is empty or not ordinary text another request must follow, if anything
    does: small responses look like Produce requests without a client id.

    Some clients send trailing bytes, so a body that decodes leniently is accepted if the next frame
    begins at its end and the header has a client id.
    """
    candidate = request_at(data, position, max_frame_bytes, apis)
    if candidate is None:
        return Confidence.NO
    side = apis.api(candidate.api_key).request
    assert side is not None
    cls, version = side.load(), candidate.api_version
    end = position + SIZE + candidate.size
    if end > len(data) and candidate.size > MAX_INCOMPLETE:
        return Confidence.NO
    frame = data[position + SIZE : end]
    try:
        header = decode_request_header(frame, lenient=True, package=apis.package)
    except WireError:
        if effort is not None:
            effort.spend(0, len(frame))
        return Confidence.POSSIBLE if end > len(data) else Confidence.NO
    body = header.end
    if effort is not None and body > MAX_CLIENT_ID:
        effort.spend(body, 0)
    confidence = _check_body(cls, version, frame, body, candidate.size, effort)
    client_id = getattr(header.header, "client_id", None)
    if confidence is Confidence.PROVEN and not (client_id and _is_ordinary(data, position, apis)):
        follows = request_at(data, end, max_frame_bytes, apis) is not None
        return confidence if follows or len(data) - end < apis.head_bytes else Confidence.NO
    if confidence is Confidence.NO and end <= len(data) and client_id:
        follows = end == len(data) or request_at(data, end, max_frame_bytes, apis) is not None
        if follows and _decodes(cls, version, frame, body, True, effort):
            return Confidence.PROVEN
    return confidence


def names_client(data: bytes, max_frame_bytes: int, apis: Apis = KAFKA_APIS) -> bool:
    """Whether data begins with a request, as far as it goes, whose client id is ordinary text."""
    candidate = request_at(data, 0, max_frame_bytes, apis)
    if candidate is None or len(data) <= CLIENT_ID:
        return False
    if candidate.api_version < apis.api(candidate.api_key).ordinary:
        return False  # a header without a client id, or of the package's own
    if i64(read_i16_be(data, CLIENT_ID - 2)) <= 0 or not _is_ordinary(data, 0, apis):
        return False
    return check_request(data, 0, max_frame_bytes, apis=apis) is not Confidence.NO


def find_response(
    data: bytes,
    in_flight: Callable[[int], InFlightRequest | None],
    max_frame_bytes: int,
    apis: Apis = KAFKA_APIS,
) -> Found | None:
    """Find the first response to one of the in-flight requests; None if there is none.

    in_flight: returns the request with a correlation id.
    """
    effort = Effort(len(data))
    for position in _response_positions(data, max_frame_bytes):
        request = in_flight(int(read_i32_be(data, position + SIZE)))
        if request is None:
            continue
        size = int(read_i32_be(data, position))
        key, version = request.api_key, request.api_version
        frame = data[position + SIZE : position + SIZE + size]
        confidence = check_response(frame, size, key, version, effort, apis)
        if confidence is not Confidence.NO:
            return Found(position, confidence is Confidence.PROVEN)
        if effort.left < 0:
            break
    return None


def check_response(
    frame: bytes,
    size: int,
    api_key: int,
    api_version: int,
    effort: Effort | None = None,
    apis: Apis = KAFKA_APIS,
) -> Confidence:
    """Check whether the available bytes of a frame of `size` bytes are a response.

    api_key, api_version: those of the request.
    """
    side = apis.api(api_key).response
    if side is None or not side.first <= api_version <= side.last:
        return Confidence.NO
    try:
        body = decode_response_header(frame, api_key, api_version, package=apis.package).end
    except WireError:
        return Confidence.POSSIBLE if len(frame) < size else Confidence.NO
    return _check_body(side.load(), api_version, frame, body, size, effort)


def _check_body(
    cls: Any, version: int, frame: bytes, position: int, size: int, effort: Effort | None
) -> Confidence:
    if len(frame) == size:
        return (
            Confidence.PROVEN
            if _decodes(cls, version, frame, position, False, effort)
            else Confidence.NO
        )
    if size > MAX_INCOMPLETE:
        return Confidence.NO
    # missing bytes are taken as zeros: a body that fails before them can never be valid
    # (an array of more elements than available bytes is not decoded: it would be again each time)
    limits = NO_LIMITS._replace(max_elements=len(frame))
    reader = Reader(frame + bytes(size - len(frame)), position, limits=limits)
    try:
        cls.decode_from(reader, version)
    except LimitExceeded:
        return Confidence.POSSIBLE
    except (WireError, IndexError, UnicodeDecodeError):
        return Confidence.POSSIBLE if reader.pos >= len(frame) else Confidence.NO
    finally:
        if effort is not None:
            effort.spend(int(reader.pos) - position, size)
    return Confidence.POSSIBLE


def _decodes(
    cls: Any, version: int, frame: bytes, position: int, lenient: bool, effort: Effort | None
) -> bool:
    """Whether a body decodes; failures are common, so the error is not looked for."""
    reader = Reader(frame, position, lenient=lenient, limits=DEFAULT_LIMITS)
    try:
        cls.decode_from(reader, version)
        if len(frame) - reader.pos > MAX_TRAILING:
            return False
        reader.finish()
    except (WireError, IndexError, UnicodeDecodeError):
        return False
    finally:
        if effort is not None:
            effort.spend(int(reader.pos) - position, len(frame))
    return True


def _response_positions(data: bytes, max_frame_bytes: int) -> list[int]:
    """List the positions of a plausible size followed by four bytes."""
    import numpy as np

    starts: list[int] = []
    for phase in range(SIZE):
        count = (len(data) - phase) // SIZE
        if count < 2:
            break
        words: Any = np.frombuffer(data, ">i4", count, phase)
        sizes = words[:-1]
        plausible = (sizes >= SIZE) & (sizes <= max_frame_bytes)
        rows = np.flatnonzero(plausible)
        starts += (rows * SIZE + phase).tolist()
    starts.sort()
    return starts
