"""Reads headers, and chooses the header version of a message.

The header's version follows from the API key and the API version alone, as the schemas say
(`headerVersions`). Kafka's two exceptions: ControlledShutdown version 0 has no client id, and an
ApiVersions response never has tagged fields, since its reader does not know yet whether the broker
supports them (KIP-511).

    request header 0  api key, api version, correlation id
                   1  + client id
                   2  + tagged fields (the client id keeps its int16 length)
    response header 0  correlation id       1  + tagged fields
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..errors import DecodeError, InvalidText, InvalidValue, Truncated, UnknownApiKey
from ..primitives import DEFAULT_LIMITS, Deviations, Limits, Reader, Tags
from .packages import KAFKA, Package

REQUEST_PREFIX: Final = 8
"""Bytes of a request header that every version begins with: api key, api version, correlation id.
"""


class RequestHead(NamedTuple):
    """A decoded request header; `end` is the index of the first byte of the body.

    header: a RequestHeader, Kafka's or the package's own.
    """

    header: Any
    header_version: int
    end: int


class ResponseHead(NamedTuple):
    """A decoded response header; `end` is the index of the first byte of the body.

    header: a ResponseHeader, Kafka's or the package's own.
    """

    header: Any
    header_version: int
    end: int


def request_header_version(api_key: int, api_version: int, package: Package = KAFKA) -> int:
    """Return the header version of a request; UnknownApiKey for an unknown key."""
    header_version = package.request_versions.get((api_key, api_version))
    if header_version is None:
        return package.find_header_version("request", api_key, api_version)
    return header_version


def response_header_version(api_key: int, api_version: int, package: Package = KAFKA) -> int:
    """Return the header version of a response; UnknownApiKey for an unknown key."""
    header_version = package.response_versions.get((api_key, api_version))
    if header_version is None:
        return package.find_header_version("response", api_key, api_version)
    return header_version


def decode_request_header(
    data: bytes,
    start: int = 0,
    *,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> RequestHead:
    """Read the request header at `start` (behind the size).

    The header of an unknown API key is read as header version 1 (or, of a package without that, as
    its lowest).
    lenient: keep a client id that is not UTF-8 (by surrogateescape), counted in the header's
    `deviations`.
    Raises DecodeError whose offset counts from the beginning of `data`.
    """
    if len(data) - start < REQUEST_PREFIX:
        raise Truncated("the data ends inside the header", "RequestHeader", len(data))
    api_key = int.from_bytes(data[start : start + 2], "big", signed=True)
    api_version = int.from_bytes(data[start + 2 : start + 4], "big", signed=True)
    try:
        header_version = request_header_version(api_key, api_version, package)
    except UnknownApiKey:
        header_version = package.usual_header_version
    reader = Reader(data, start, lenient=lenient, limits=limits)
    try:
        header: Any = package.request_header.decode_from(reader, header_version)
    except (IndexError, UnicodeDecodeError, DecodeError) as error:
        raise _located(error, "RequestHeader", reader) from None
    if reader.invalid_text:
        header.deviations = Deviations(invalid_text=reader.invalid_text)
    return RequestHead(header, header_version, reader.pos)


def decode_response_header(
    data: bytes,
    api_key: int,
    api_version: int,
    start: int = 0,
    *,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> ResponseHead:
    """Read the header at `start` (behind the size) of the response to a request.

    api_key, api_version: of the request. Raises DecodeError whose offset counts from the beginning
    of `data`.
    """
    header_version = response_header_version(api_key, api_version, package)
    reader = Reader(data, start, limits=limits)
    try:
        header: Any = package.response_header.decode_from(reader, header_version)
    except (IndexError, DecodeError) as error:
        raise _located(error, "ResponseHeader", reader) from None
    return ResponseHead(header, header_version, reader.pos)


def _located(error: Exception, name: str, reader: Reader) -> DecodeError:
    """Add the offset at which a header fails.

    Headers are decoded for many guesses, so they are not decoded again to find the field.
    """
    position = min(reader.pos, len(reader.data))
    if isinstance(error, DecodeError):
        return type(error)(error.reason, name, position)
    if isinstance(error, UnicodeDecodeError):
        return InvalidText(
            "the client id is not UTF-8", name, position - len(error.object) + error.start
        )
    return Truncated("the data ends inside the header", name, len(reader.data))


def own_fields(
    cls: Any, client_id: str | None, tags: Tags, more: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the fields of a header of a package's own, beside those that every header begins with.

    Raises InvalidValue for one that the header's class does not have.
    """
    fields: dict[str, object] = {}
    if client_id is not None:
        fields["client_id"] = client_id
    if tags is not None:
        fields["unknown_tags"] = tags
    fields.update(more or {})
    for name in fields:
        if name not in cls.__match_args__:
            raise InvalidValue(f"has no field {name!r}", cls.__name__)
    return fields
