"""Which header travels with which message, and reading it.

Law: the header's version follows from the API key and the API version alone. The two exceptions:
ControlledShutdown version 0 has no client id, and an ApiVersions response never has tagged fields,
since its reader does not know yet whether the broker speaks them (KIP-511).

    request header 0  api key, api version, correlation id
                   1  + client id
                   2  + tagged fields (the client id keeps its int16 length)
    response header 0  correlation id       1  + tagged fields
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..errors import InvalidText, Truncated, UnknownApiKey
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..messages.request_header import RequestHeader
from ..messages.response_header import ResponseHeader
from ..primitives import Reader, Writer

REQUEST_PREFIX: Final = 8
"""Bytes of a request header that every version begins with: api key, api version, correlation id.
"""


class RequestHead(NamedTuple):
    """A request header where it was found; `end` is the index of the first byte of the body."""

    header: RequestHeader
    header_version: int
    end: int


class ResponseHead(NamedTuple):
    """A response header where it was found; `end` is the index of the first byte of the body."""

    header: ResponseHeader
    header_version: int
    end: int


def request_header_version(api_key: int, api_version: int) -> int:
    """Say which request header travels with that request; UnknownApiKey for a key that no message
    has.
    """
    info = REGISTRY.request(api_key)
    if info is None:
        raise UnknownApiKey(f"no API has the key {api_key}")
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if info.is_flexible(api_version) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Say which response header travels with that response; UnknownApiKey for a key that no message
    has.
    """
    info = REGISTRY.response(api_key)
    if info is None:
        raise UnknownApiKey(f"no API has the key {api_key}")
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if info.is_flexible(api_version) else 0


def decode_request_header(data: bytes, start: int = 0) -> RequestHead:
    """Read the request header at `start` (behind the size); of an unknown API key, as header
    version 1.

    Raises DecodeError whose offset counts from the beginning of `data`.
    """
    if len(data) - start < REQUEST_PREFIX:
        raise Truncated("the data ends inside the request header", "RequestHeader", len(data))
    api_key = int.from_bytes(data[start : start + 2], "big", signed=True)
    api_version = int.from_bytes(data[start + 2 : start + 4], "big", signed=True)
    known = REGISTRY.request(api_key) is not None
    header_version = request_header_version(api_key, api_version) if known else 1
    reader = Reader(data, start)
    try:
        header = RequestHeader.decode_from(reader, header_version)
    except IndexError:
        raise Truncated(
            "the data ends inside the request header", "RequestHeader", len(data)
        ) from None
    except UnicodeDecodeError:
        raise InvalidText("the client id is not UTF-8", "RequestHeader", reader.pos) from None
    return RequestHead(header, header_version, reader.pos)


def decode_response_header(
    data: bytes, api_key: int, api_version: int, start: int = 0
) -> ResponseHead:
    """Read the response header at `start` (behind the size) of the answer to a request of that key
    and version.

    Raises DecodeError whose offset counts from the beginning of `data`.
    """
    header_version = response_header_version(api_key, api_version)
    reader = Reader(data, start)
    try:
        header = ResponseHeader.decode_from(reader, header_version)
    except IndexError:
        raise Truncated(
            "the data ends inside the response header", "ResponseHeader", len(data)
        ) from None
    return ResponseHead(header, header_version, reader.pos)


def encode_request_header(header: RequestHeader, header_version: int) -> bytes:
    """Write a request header of that version."""
    writer = Writer()
    header.encode_to(writer, header_version)
    return writer.getvalue()


def encode_response_header(header: ResponseHeader, header_version: int) -> bytes:
    """Write a response header of that version."""
    writer = Writer()
    header.encode_to(writer, header_version)
    return writer.getvalue()
