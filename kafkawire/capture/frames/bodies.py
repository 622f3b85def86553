"""A body's bytes -> a message, or as much of one as there is, and the reason.

Law: content never raises; what is said of a body depends on its bytes, its API and version alone.

    strict --refused--> lenient --refused--> malformed
    a version that is not known --as the nearest known--> guessed, or unknown
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ...errors import DecodeError, TrailingBytes
from ...messages import REGISTRY
from ...primitives import Limits, Message, MessageInfo
from ...primitives.reader import Reader
from ...protocol.frame import decode_request_body, decode_response_body, response_body_versions
from ...protocol.header import decode_response_header
from ..rows import Status

KEPT: Final = 1 << 8
KEPT_BYTES: Final = 1 << 10
"""Refused bodies that are remembered, and the longest of them."""


class Verdict(NamedTuple):
    """What a body is. body_version: the version that its message is written in."""

    status: Status
    error: str
    message: Message | None
    body_version: int | None


def read_body(cls: Any, version: int, frame: bytes, body: int, limits: Limits) -> Message | None:
    """Read a body that is as it should be; None where anything is not, which is then asked for."""
    reader = Reader(frame, body, limits=limits)
    try:
        message: Message = cls.decode_from(reader, version)
        message.bent = reader.finish()
    except (IndexError, ValueError):
        return None
    return message


def request_verdict(key: int, version: int, frame: bytes, end: int, limits: Limits) -> Verdict:
    """Read the body of a request frame (without its size), which begins at `end`."""
    info = REGISTRY.request(key)
    if info is None:
        return Verdict(Status.UNKNOWN_API, f"no API has the key {key}", None, None)
    if not info.first <= version <= info.last:
        return _guess(info, version, frame, end, limits)
    known = _as_known(info, version, frame, end, limits)
    error = _refused.get(known)
    if error is None:
        try:
            body = decode_request_body(key, version, frame, end, False, limits)
            return Verdict(Status.OK, "", body, version)
        except DecodeError as strict:
            error = _refuse(known, str(strict))
    return _bent(info, (version,), frame, end, limits, error)


def response_verdict(key: int, version: int, frame: bytes, limits: Limits) -> tuple[Verdict, int]:
    """Read the body of a response frame (without its size); and say where it begins."""
    info = REGISTRY.response(key)
    if info is None:
        return Verdict(Status.UNKNOWN_API, f"no API has the key {key}", None, None), 4
    try:
        end = decode_response_header(frame, key, version).end
    except DecodeError as strict:
        return Verdict(Status.MALFORMED, str(strict), None, None), 4
    if not info.first <= version <= info.last:
        return _guess(info, version, frame, end, limits), end
    known = _as_known(info, version, frame, end, limits)
    error = _refused.get(known)
    if error is None:
        try:
            body = decode_response_body(key, version, frame, end, False, limits)
            return Verdict(Status.OK, "", body.message, body.version), end
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
) -> Verdict:
    """Try leniently what a strict reader refused. Where it fails was searched for once already, so
    this reads without asking again.
    """
    for version in versions:
        reader = Reader(frame, end, lenient=True, limits=limits)
        try:
            message: Message = REGISTRY.load(info.name).decode_from(reader, version)
            message.bent = reader.finish()
        except (DecodeError, IndexError):
            continue
        return Verdict(Status.LENIENT, error, message, version)
    return Verdict(Status.MALFORMED, error, None, None)


def _guess(info: MessageInfo, version: int, frame: bytes, end: int, limits: Limits) -> Verdict:
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
            return Verdict(Status.GUESSED, error, message, nearest)
    except DecodeError as stopped:
        error = f"{reason}; as version {nearest}: {stopped}"
    else:
        return Verdict(Status.GUESSED, f"{reason}; it fits version {nearest}", message, nearest)
    return Verdict(Status.UNKNOWN_VERSION, error, None, None)
