"""A frame's bytes -> a row: what the header says, the body where it decodes, the reason where it
does not.

Law: a row always has everything that could be read before the first doubt; content never raises.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import DecodeError, TrailingBytes, UnknownApiKey, UnsupportedVersion
from ..messages import REGISTRY
from ..primitives import DEFAULT_LIMITS, Limits, Message, MessageInfo, Reader
from ..protocol.frame import (
    decode_request_body,
    decode_response_body,
    response_body_versions,
)
from ..protocol.header import (
    REQUEST_PREFIX,
    decode_request_header,
    decode_response_header,
)
from .rows import Row, Status
from .stream import Mark


class Asked(NamedTuple):
    """A request that awaits its response; `silent` where none need come (a Produce with acks=0)."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    packet: int
    time_ns: int
    silent: bool


class _Verdict(NamedTuple):
    status: Status
    error: str
    message: Message | None
    body_version: int | None


def api_name(api_key: int) -> str | None:
    """Name an API; None for a key that none has."""
    info = REGISTRY.request(api_key)
    return None if info is None else info.name.removesuffix("Request")


def request_row(frame: bytes, mark: Mark, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Read a request frame (without its size)."""
    try:
        head = decode_request_header(frame, lenient=True, limits=limits)
    except DecodeError as error:
        row = Row(mark.packet, mark.time_ns, "request", len(frame), Status.MALFORMED, raw=frame)
        return _prefixed(row._replace(error=str(error)), frame)
    header = head.header
    key, version = header.request_api_key, header.request_api_version
    verdict = _request_verdict(key, version, frame, head.end, limits)
    if header.bent is not None and verdict.status is Status.OK:
        verdict = verdict._replace(status=Status.LENIENT, error=f"client id: {header.bent}")
    return Row(
        packet=mark.packet,
        time_ns=mark.time_ns,
        direction="request",
        length=len(frame),
        status=verdict.status,
        error=verdict.error,
        api_key=key,
        api_name=api_name(key),
        api_version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        body_version=verdict.body_version,
        message=verdict.message,
        raw=b"" if verdict.message is not None else frame[head.end :],
    )


def _prefixed(row: Row, frame: bytes) -> Row:
    """Add what every request begins with to a row whose header fails behind it."""
    if len(frame) < REQUEST_PREFIX:
        return row
    key = int.from_bytes(frame[:2], "big", signed=True)
    return row._replace(
        api_key=key,
        api_name=api_name(key),
        api_version=int.from_bytes(frame[2:4], "big", signed=True),
        correlation_id=int.from_bytes(frame[4:8], "big", signed=True),
    )


def response_row(frame: bytes, mark: Mark, asked: Asked, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Read a response frame (without its size) as the answer to a request."""
    verdict, end = _response_verdict(asked, frame, limits)
    return Row(
        packet=mark.packet,
        time_ns=mark.time_ns,
        direction="response",
        length=len(frame),
        status=verdict.status,
        error=verdict.error,
        api_key=asked.api_key,
        api_name=api_name(asked.api_key),
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
        client_id=asked.client_id,
        body_version=verdict.body_version,
        message=verdict.message,
        raw=b"" if verdict.message is not None else frame[end:],
        request_packet=asked.packet,
        request_time_ns=asked.time_ns,
    )


def asked_by(row: Row) -> Asked | None:
    """Say what response a request row lets expect; None where its header could not be read."""
    if row.api_key is None or row.api_version is None or row.correlation_id is None:
        return None
    silent = row.api_key == 0 and getattr(row.message, "acks", None) == 0
    return Asked(
        row.api_key,
        row.api_version,
        row.correlation_id,
        row.client_id,
        row.packet,
        row.time_ns,
        silent,
    )


def _request_verdict(key: int, version: int, frame: bytes, end: int, limits: Limits) -> _Verdict:
    info = REGISTRY.request(key)
    if info is None:
        return _Verdict(Status.UNKNOWN_API, f"no API has the key {key}", None, None)
    if not info.first <= version <= info.last:
        return _guess(info, version, frame, end, limits)
    try:
        return _Verdict(
            Status.OK, "", decode_request_body(key, version, frame, end, False, limits), version
        )
    except DecodeError as strict:
        error = str(strict)
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
    try:
        body = decode_response_body(key, version, frame, end, False, limits)
        return _Verdict(Status.OK, "", body.message, body.version), end
    except DecodeError as strict:
        error = str(strict)
    versions = response_body_versions(key, version, frame, end)
    return _bent(info, versions, frame, end, limits, error), end


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


def partial_request(frame: bytes, size: int, mark: Mark) -> Row:
    """Say what a request whose end is missing tells; `frame` holds what there is of its `size`
    bytes.
    """
    row = Row(mark.packet, mark.time_ns, "request", size, Status.TRUNCATED, raw=frame)
    error = f"only the first {len(frame)} of {size} bytes are there"
    try:
        header = decode_request_header(frame, lenient=True).header
    except (DecodeError, UnknownApiKey, UnsupportedVersion):
        return _prefixed(row._replace(error=error), frame)
    return row._replace(
        error=error,
        api_key=header.request_api_key,
        api_name=api_name(header.request_api_key),
        api_version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )


def partial_response(frame: bytes, size: int, mark: Mark, asked: Asked | None) -> Row:
    """Say what a response whose end is missing tells."""
    row = Row(
        mark.packet,
        mark.time_ns,
        "response",
        size,
        Status.TRUNCATED,
        f"only the first {len(frame)} of {size} bytes are there",
        raw=frame,
    )
    if asked is None:
        return row
    return row._replace(
        api_key=asked.api_key,
        api_name=api_name(asked.api_key),
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
        client_id=asked.client_id,
        request_packet=asked.packet,
        request_time_ns=asked.time_ns,
    )
