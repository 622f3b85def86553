"""Whether bytes are Kafka, and where a frame begins.

Law: one plausible number proves nothing. A request counts as recognised when its size, key,
version, correlation id and client id fit together; in the middle of a stream its body must decode
as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, final

import numpy as np
from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from ...errors import LimitExceeded, WireError
from ...messages import REGISTRY
from ...primitives import DEFAULT_LIMITS, Reader
from ...primitives.limits import NO_LIMITS
from ...protocol.header import decode_request_header, decode_response_header

SIZE: Final = 4
LEAST_REQUEST: Final = 8
"""Bytes of the smallest request: a ControlledShutdown header."""

HEAD: Final = 14
"""Bytes from the size to the client id's length: enough for a first verdict."""

MAX_CLIENT_ID: Final = 1024

MOST_TRAILING: Final = 4
"""Bytes that clients are known to leave behind their last field, at most."""

MAX_WAITED: Final = 1 << 20
"""A frame larger than this is not waited for where its beginning is only a guess."""

_REQUEST_AHEAD: Final = re.compile(
    rb"(?=(?!\x00\x00\x00[\x00-\x07])[\x00-\x06].{3}\x00[\x00-\x7f]\x00[\x00-\x3f][\x00-\x7f].{3}(?:\xff\xff|[\x00-\x04].))",
    re.DOTALL,
)
"""A size from 8 to 112 MiB, a key and a version below 128 and 64, a correlation id that is not
negative, a client id length.
"""

_SIGNATURES: Final = (
    ("TLS", re.compile(rb"\x16\x03[\x00-\x04]")),
    ("HTTP", re.compile(rb"(?:GET|PUT|POST|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) |HTTP/[12]")),
    ("HTTP/2", re.compile(rb"PRI \* HTTP/2")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    (
        "PostgreSQL",
        re.compile(rb"\x00\x00\x00\x08\x04\xd2\x16\x2f|\x00\x00..\x00\x03\x00\x00", re.DOTALL),
    ),
    ("Redis", re.compile(rb"[*$][0-9]+\r\n|\+PONG\r\n|\+OK\r\n")),
    (
        "ZooKeeper",
        re.compile(rb"\x00\x00\x00[\x28-\x31]\x00\x00\x00\x00\x00\x00\x00\x00", re.DOTALL),
    ),
    ("DNS", re.compile(rb"..[^\x00]..[\x01\x81][\x00-\x83]\x00\x01", re.DOTALL)),
)


EFFORT: Final = 8
"""Bytes that a search decodes for each byte that it searches, at most."""

LEAST_EFFORT: Final = 1 << 21
"""Bytes that any search may decode: twice the largest frame that is waited for."""

JUDGED: Final = 64
"""What looking at one position costs at least, in bytes decoded; and of how many bytes copied one
costs as much as one decoded.
"""

_last_versions: Final[dict[int, int]] = {}


@final
class Effort:
    """What a search may still spend, in bytes decoded: hostile bytes may look like the beginning of
    a frame at every position, and each takes as long as the frame.
    """

    def __init__(self, searched: int) -> None:
        self.left: int = EFFORT * searched + LEAST_EFFORT

    def spend(self, decoded: int, copied: int) -> None:
        self.left -= JUDGED + decoded + copied // JUDGED


class RequestSight(NamedTuple):
    """A plausible request: its size prefix, key and version."""

    size: int
    api_key: int
    api_version: int


def signature(data: bytes) -> str | None:
    """Name the protocol that a stream begins with, where it is a known other one."""
    for name, pattern in _SIGNATURES:
        if pattern.match(data):
            return name
    return None


def sight_request(data: bytes, start: int, max_frame_bytes: int) -> RequestSight | None:
    """Look for a request at `start`: None where the bytes that are there rule it out, or are fewer
    than 14.
    """
    if not looks_like_request(data, start, max_frame_bytes):
        return None
    key, version = int(read_i16_be(data, start + 4)), int(read_i16_be(data, start + 6))
    return RequestSight(int(read_i32_be(data, start)), key, version)


def looks_like_request(data: bytes, start: i64, max_frame_bytes: i64) -> bool:
    """Whether there is a request at `start`, as `sight_request` sees it."""
    if len(data) - start < HEAD:
        return False
    size = i64(read_i32_be(data, start))
    if size < LEAST_REQUEST or size > max_frame_bytes or data[start + 8] > 0x7F:
        return False
    version = i64(read_i16_be(data, start + 6))
    if version < 0 or version > _last_version(int(read_i16_be(data, start + 4))):
        return False
    return _plausible_client_id(data, start, size)


def _last_version(api_key: int) -> int:
    """Tell the last version of a request; -1 of an API that there is not."""
    found = _last_versions.get(api_key)
    if found is None:
        info = REGISTRY.request(api_key)
        found = _last_versions[api_key] = -1 if info is None else info.last
    return found


def _plausible_client_id(data: bytes, start: i64, size: i64) -> bool:
    length = i64(read_i16_be(data, start + 12))
    if length == -1 or size < HEAD - SIZE:
        return True
    if length < 0 or length > MAX_CLIENT_ID or length > size - (HEAD - SIZE):
        return False
    at = start + HEAD
    end = min(at + length, i64(len(data)))
    while at < end:
        if data[at] < 0x20 or data[at] == 0x7F:
            return False
        at += 1
    return True


class Sight(IntEnum):
    """What the bytes at a position are worth as the beginning of a frame."""

    NO = 0
    POSSIBLE = 1
    """Nothing speaks against it in the bytes that are there, and the frame is not all there."""
    PROVEN = 2
    """The frame is there, and its body decodes."""


class Found(NamedTuple):
    """The first position that may be a frame's beginning; not proven: wait for more bytes, and ask
    again.
    """

    at: int
    proven: bool


class Scan(NamedTuple):
    """What a search for a request found. resume: where to go on when more bytes are there; every
    position before is ruled out.
    """

    found: Found | None
    resume: int


def find_request(data: bytes, max_frame_bytes: int) -> Found | None:
    """Find where a request begins in a stream without a known beginning; None where no position
    qualifies.
    """
    return scan_request(data, max_frame_bytes).found


def scan_request(data: bytes, max_frame_bytes: int, start: int = 0) -> Scan:
    """Find where a request begins from `start` on, with an effort that is linear in the bytes."""
    effort = Effort(len(data) - start)
    resume = max(start, len(data) - HEAD + 1)
    for match in _REQUEST_AHEAD.finditer(data, start):
        at = match.start()
        sight = judge_request(data, at, max_frame_bytes, effort)
        if sight is not Sight.NO:
            return Scan(Found(at, sight is Sight.PROVEN), min(resume, at))
        if 0 < len(data) - at - SIZE - int(read_i32_be(data, at)) < HEAD:
            resume = min(resume, at)  # what follows it may prove it yet
        if effort.left < 0:
            break
    return Scan(None, resume)


def judge_request(
    data: bytes, at: int, max_frame_bytes: int, effort: Effort | None = None
) -> Sight:
    """Judge a position as a request's: its body decodes, or bends and another request follows at
    once.

    Some clients leave bytes behind their last field, so a body that does not quite fit is believed
    where the next frame begins where this one says it ends, and it names a client: small responses
    look like Produce requests that lack one.
    """
    sight = sight_request(data, at, max_frame_bytes)
    if sight is None:
        return Sight.NO
    info = REGISTRY.request(sight.api_key)
    assert info is not None
    end = at + SIZE + sight.size
    frame = data[at + SIZE : end]
    try:
        head = decode_request_header(frame)
    except WireError:
        return Sight.POSSIBLE if end > len(data) else Sight.NO
    body = head.end
    verdict = _judge_body(info.name, sight.api_version, frame, body, sight.size, effort)
    if verdict is Sight.NO and end <= len(data) and head.header.client_id:
        follows = end == len(data) or sight_request(data, end, max_frame_bytes) is not None
        if follows and _decodes(info.name, sight.api_version, frame, body, True, effort):
            return Sight.PROVEN
    return verdict


def find_response(
    data: bytes, asked: Mapping[int, tuple[int, int]], max_frame_bytes: int
) -> Found | None:
    """Find where the response to one of these requests begins; None where no position qualifies.

    asked: correlation id -> API key and version of a request that awaits its response.
    """
    effort = Effort(len(data))
    for at in _places(data, asked, max_frame_bytes):
        size = int(read_i32_be(data, at))
        key, version = asked[int(read_i32_be(data, at + SIZE))]
        sight = judge_response(data[at + SIZE : at + SIZE + size], size, key, version, effort)
        if sight is not Sight.NO:
            return Found(at, sight is Sight.PROVEN)
        if effort.left < 0:
            break
    return None


def judge_response(
    frame: bytes, size: int, api_key: int, api_version: int, effort: Effort | None = None
) -> Sight:
    """Judge what there is of a frame of `size` bytes as the response to a request of that key and
    version.
    """
    info = REGISTRY.response(api_key)
    if info is None or not info.first <= api_version <= info.last:
        return Sight.NO
    try:
        body = decode_response_header(frame, api_key, api_version).end
    except WireError:
        return Sight.POSSIBLE if len(frame) < size else Sight.NO
    return _judge_body(info.name, api_version, frame, body, size, effort)


def _judge_body(
    name: str, version: int, frame: bytes, at: int, size: int, effort: Effort | None
) -> Sight:
    if len(frame) == size:
        return Sight.PROVEN if _decodes(name, version, frame, at, False, effort) else Sight.NO
    if size > MAX_WAITED:
        return Sight.NO
    # what is missing is taken as zeros: a body that fails before them cannot become right
    # (an array of more elements than bytes are there is not read now: that takes as long each time)
    limits = NO_LIMITS._replace(max_elements=len(frame))
    reader = Reader(frame + bytes(size - len(frame)), at, limits=limits)
    try:
        REGISTRY.load(name).decode_from(reader, version)
    except LimitExceeded:
        return Sight.POSSIBLE
    except (WireError, IndexError, UnicodeDecodeError):
        return Sight.POSSIBLE if reader.pos >= len(frame) else Sight.NO
    finally:
        if effort is not None:
            effort.spend(int(reader.pos) - at, size)
    return Sight.POSSIBLE


def _decodes(
    name: str, version: int, frame: bytes, at: int, lenient: bool, effort: Effort | None
) -> bool:
    """Try a body at a guess; a wrong guess is ordinary, so nobody asks where it fails."""
    reader = Reader(frame, at, lenient=lenient, limits=DEFAULT_LIMITS)
    try:
        REGISTRY.load(name).decode_from(reader, version)
        if len(frame) - reader.pos > MOST_TRAILING:
            return False
        reader.finish()
    except (WireError, IndexError, UnicodeDecodeError):
        return False
    finally:
        if effort is not None:
            effort.spend(int(reader.pos) - at, len(frame))
    return True


def _places(data: bytes, asked: Mapping[int, tuple[int, int]], max_frame_bytes: int) -> list[int]:
    """List the positions, in order, where a plausible size stands before one of these ids."""
    found: list[int] = []
    ids = np.array(list(asked), np.int32)
    for phase in range(SIZE):
        count = (len(data) - phase) // SIZE
        if count < 2:
            break
        words = np.frombuffer(data, ">i4", count, phase)
        sizes = words[:-1]
        plausible = (sizes >= SIZE) & (sizes <= max_frame_bytes)
        rows = np.flatnonzero(plausible)
        rows = rows[np.isin(words[rows + 1], ids)]
        found += (rows * SIZE + phase).tolist()
    found.sort()
    return found
