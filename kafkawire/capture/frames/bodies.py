"""Decodes bodies: strictly, then leniently, then as the nearest known version.

Content never raises; the result depends only on the bytes, the package, the API key and the
version.

    strict --fails--> lenient --fails--> malformed
    unknown version --as the nearest known version--> guessed, or unknown
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from ...errors import DecodeError, TrailingBytes
from ...primitives import Limits, Message, MessageInfo
from ...primitives.reader import Reader
from ...protocol.frame import decode_request_body, decode_response_body, response_body_versions
from ...protocol.header import decode_response_header
from ..rows import Status
from .apis import Apis

MAX_REFUSED: Final = 1 << 8
MAX_REFUSED_BYTES: Final = 1 << 10
"""Bodies whose decoding error is cached, and the size of the longest."""


class Verdict(NamedTuple):
    """The result of decoding a body. body_version: the version in which its message is written."""

    status: Status
    error: str
    message: Message | None
    body_version: int | None


def request_verdict(
    apis: Apis, key: int, version: int, frame: bytes, end: int, limits: Limits
) -> Verdict:
    """Decode the body of a request frame (without its size), which begins at `end`."""
    package = apis.package
    info = package.index.request(key)
    if info is None:
        return Verdict(Status.UNKNOWN_API, f"unknown API key {key}", None, None)
    if not info.first <= version <= info.last:
        return _guess(apis, info, version, frame, end, limits)
    refusal = _refusal_key(apis, info, version, frame, end, limits)
    error = _refused.get(refusal)
    if error is None:
        try:
            body = decode_request_body(key, version, frame, end, False, limits, package)
            return Verdict(Status.OK, "", body, version)
        except DecodeError as strict:
            error = _cache_refusal(refusal, str(strict))
    cls = package.index.load(info.name)
    return _decode_leniently(cls, (version,), frame, end, limits, error)


def response_verdict(
    apis: Apis, key: int, version: int, frame: bytes, limits: Limits
) -> tuple[Verdict, int]:
    """Decode the body of a response frame (without its size); also return its offset."""
    package = apis.package
    info = package.index.response(key)
    if info is None:
        return Verdict(Status.UNKNOWN_API, f"unknown API key {key}", None, None), 4
    try:
        end = decode_response_header(frame, key, version, package=package).end
    except DecodeError as strict:
        return Verdict(Status.MALFORMED, str(strict), None, None), 4
    if not info.first <= version <= info.last:
        return _guess(apis, info, version, frame, end, limits), end
    refusal = _refusal_key(apis, info, version, frame, end, limits)
    error = _refused.get(refusal)
    if error is None:
        try:
            body = decode_response_body(key, version, frame, end, False, limits, package)
            return Verdict(Status.OK, "", body.message, body.version), end
        except DecodeError as strict:
            error = _cache_refusal(refusal, str(strict))
    versions = response_body_versions(key, version, frame, end, package)
    cls = package.index.load(info.name)
    return _decode_leniently(cls, versions, frame, end, limits, error), end


# -- cached errors: a client or broker that sends an invalid body sends it repeatedly


RefusalKey: TypeAlias = tuple[str, str, int, int, int, bytes]

_refused: Final[dict[RefusalKey, str]] = {}


def _refusal_key(
    apis: Apis, info: MessageInfo, version: int, frame: bytes, end: int, limits: Limits
) -> RefusalKey:
    """Return the cache key of a body."""
    package, elements = apis.package.name, limits.max_elements
    return package, info.name, version, end, elements, frame[end : end + MAX_REFUSED_BYTES + 1]


def _cache_refusal(refusal: RefusalKey, error: str) -> str:
    """Cache the error of a short body; finding the error is slow."""
    if len(refusal[-1]) <= MAX_REFUSED_BYTES:
        if len(_refused) >= MAX_REFUSED:
            _refused.clear()
        _refused[refusal] = error
    return error


def _decode_leniently(
    cls: Any,
    versions: tuple[int, ...],
    frame: bytes,
    end: int,
    limits: Limits,
    error: str,
) -> Verdict:
    """Decode leniently a body that does not decode strictly; its error is known already."""
    for version in versions:
        reader = Reader(frame, end, lenient=True, limits=limits)
        try:
            message: Message = cls.decode_from(reader, version)
            message.deviations = reader.finish()
        except (DecodeError, IndexError):
            continue
        return Verdict(Status.LENIENT, error, message, version)
    return Verdict(Status.MALFORMED, error, None, None)


def _guess(
    apis: Apis, info: MessageInfo, version: int, frame: bytes, end: int, limits: Limits
) -> Verdict:
    """Decode a body of an unknown version as the nearest known one.

    A newer version mostly adds fields at the end, so trailing bytes are accepted if they are the
    smaller part.
    """
    nearest = min(max(version, info.first), info.last)
    reason = f"{info.name} has versions {info.first}-{info.last}, not {version}"
    cls = apis.package.index.load(info.name)
    try:
        message = cls.decode(frame[end:], nearest, limits=limits)
    except TrailingBytes as left:
        error = f"{reason}; as version {nearest}: {left}"
        if 2 * (left.offset or 0) >= len(frame) - end:
            message = cls.decode(frame[end:], nearest, lenient=True, limits=limits)
            return Verdict(Status.GUESSED, error, message, nearest)
    except DecodeError as stopped:
        error = f"{reason}; as version {nearest}: {stopped}"
    else:
        return Verdict(Status.GUESSED, f"{reason}; it fits version {nearest}", message, nearest)
    return Verdict(Status.UNKNOWN_VERSION, error, None, None)
