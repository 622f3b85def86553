"""Encodes and decodes frames: int32 size, header, body.

A size is compared with the limit first; offsets in errors count from the first byte of the
frame.

    request   size | api key, api version, correlation id, client id ... | body
    response  size | correlation id ...                                  | body
    SASL v0   size | raw token (no header: after a SaslHandshake of version 0)
"""

# over 300 lines: one format, decoded and encoded, with what may be wrong with a size

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from ..errors import (
    DecodeError,
    InvalidLength,
    LimitExceeded,
    TrailingBytes,
    Truncated,
    UnknownApiKey,
    WireError,
    counted,
)
from ..messages.api_key import ApiKey
from ..messages.request_header import RequestHeader
from ..messages.response_header import ResponseHeader
from ..primitives import DEFAULT_LIMITS, Limits, Message, Reader, Tags
from .error_code import ErrorCode
from .header import (
    decode_request_header,
    decode_response_header,
    own_fields,
    request_header_version,
    response_header_version,
)
from .packages import KAFKA, Package

SIZE: Final = 4
"""Bytes of the length prefix; it does not count itself."""
RESPONSE_HEAD: Final = Struct(">ii")
"""Size and correlation id."""
NO_TAGS: Final = b"\0"
"""The tagged fields of a flexible header, if it has none."""
LARGE: Final = 1 << 16
"""A frame beyond this size is decoded where it is: its body is not copied."""


class Frame(NamedTuple):
    """A decoded frame.

    size: the size field, without its own 4 bytes. api_version: the version of the request;
    body_version: the version of the body. They differ only if a broker responded to an ApiVersions
    request with error 35 and a version 0 body. header: of a package with headers of its own, an
    instance of its class.
    """

    size: int
    header_version: int
    header: RequestHeader | ResponseHeader
    api_key: int
    api_version: int
    body_version: int
    body: Message

    @property
    def is_request(self) -> bool:
        return hasattr(self.header, "request_api_key")

    @property
    def correlation_id(self) -> int:
        return self.header.correlation_id

    @property
    def client_id(self) -> str | None:
        """Of a request: None where it is null, "" where the header has none. None of a response."""
        client_id: str | None = getattr(self.header, "client_id", None)
        return client_id

    def encode(self, *, lenient: bool = False) -> bytes:
        """Encode it again, with its size, header and body as they are now.

        lenient: write what was decoded leniently as its original bytes. Raises EncodeError.
        """
        head = self.header.encode(self.header_version, lenient=lenient)
        body = self.body.encode_buffers(self.body_version, lenient=lenient)
        return b"".join(_with_size(head, body))


class Body(NamedTuple):
    """A decoded body and its version."""

    message: Message
    version: int


def decode_frame(
    data: bytes,
    *,
    response_to: tuple[int, int] | None = None,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> Frame:
    """Decode one frame; `data` begins with its size of 4 bytes.

    response_to: None for a request; for a response, the API key and version of its request.
    lenient: as for a message; deviations are in `header.deviations` and `body.deviations`.

    Raises DecodeError (Truncated, LimitExceeded, TrailingBytes, ...), UnknownApiKey,
    UnsupportedVersion.
    """
    try:
        size = _whole_size(data, limits)
    except DecodeError as error:
        if not _lacks_size(data, response_to, lenient, limits, package):
            raise
        hint = f"{error.reason}; the data are a frame without its size of {SIZE} bytes"
        raise type(error)(hint, error.path, error.offset) from None
    if response_to is None:
        try:
            return _request_frame(data, size, lenient, limits, package)
        except WireError as error:
            error.add_note(READ_AS_REQUEST)
            raise
    api_key, version = response_to
    head = decode_response_header(data, api_key, version, SIZE, limits=limits, package=package)
    decoded = decode_response_body(api_key, version, data, head.end, lenient, limits, package)
    return Frame(
        size, head.header_version, head.header, api_key, version, decoded.version, decoded.message
    )


READ_AS_REQUEST: Final = (
    "The frame was read as a request. For a response, pass response_to=(API key, version) of its "
    "request."
)


def _request_frame(
    data: bytes, size: int, lenient: bool, limits: Limits, package: Package
) -> Frame:
    """Decode the frame of a request."""
    request = decode_request_header(data, SIZE, lenient=lenient, limits=limits, package=package)
    api_key, version = request.header.request_api_key, request.header.request_api_version
    body = decode_request_body(api_key, version, data, request.end, lenient, limits, package)
    header_version, header = request.header_version, request.header
    return Frame(size, header_version, header, api_key, version, version, body)


def _whole_size(data: bytes, limits: Limits) -> int:
    """Read the size of a frame that `data` is. Raises DecodeError for less and for more."""
    size = read_size(data, limits)
    if len(data) - SIZE < size:
        raise Truncated(f"a frame of {size} bytes, {len(data) - SIZE} are there", "", len(data))
    if len(data) - SIZE > size:
        raise TrailingBytes(
            f"{counted(len(data) - SIZE - size, 'byte')} after the frame", "", SIZE + size
        )
    return size


def _lacks_size(
    data: bytes,
    response_to: tuple[int, int] | None,
    lenient: bool,
    limits: Limits,
    package: Package,
) -> bool:
    """Whether data can be decoded as a frame whose size is missing."""
    if not 0 < len(data) <= limits.max_frame_bytes:
        return False
    frame = len(data).to_bytes(SIZE, "big") + data
    try:
        decode_frame(
            frame, response_to=response_to, lenient=lenient, limits=limits, package=package
        )
    except WireError:
        return False
    return True


def read_size(data: bytes, limits: Limits = DEFAULT_LIMITS) -> int:
    """Read the length prefix of a frame; Truncated, InvalidLength (negative) or LimitExceeded."""
    if len(data) < SIZE:
        raise Truncated("the data ends inside the size of a frame", "", len(data))
    size = int.from_bytes(data[:SIZE], "big", signed=True)
    if size < 0:
        raise InvalidLength(f"a frame of {size} bytes", "", 0)
    if size > limits.max_frame_bytes:
        raise LimitExceeded(
            f"a frame of {size} bytes; max_frame_bytes is {limits.max_frame_bytes}", "", 0
        )
    return size


def decode_request_body(
    api_key: int,
    version: int,
    data: bytes,
    start: int = 0,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> Message:
    """Decode the body of a request that begins at `start` and fills the rest of `data`."""
    kind = package.index.request_class(api_key)
    if kind is None:
        raise UnknownApiKey(f"unknown API key {api_key}")
    return _decode(kind, version, data, start, lenient, limits)


def decode_response_body(
    api_key: int,
    version: int,
    data: bytes,
    start: int = 0,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> Body:
    """Decode the body of the response to a request of that version.

    It begins at `start` and fills the rest of `data`.
    A broker without the requested version of ApiVersions responds with error 35 and a version 0
    body (KIP-511), so the error code decides the version.
    """
    info = package.index.response(api_key)
    if info is None:
        raise UnknownApiKey(f"unknown API key {api_key}")
    cls = package.index.load(info.name)
    *others, last = response_body_versions(api_key, version, data, start, package)
    for other in others:
        try:
            return Body(_decode(cls, other, data, start, lenient, limits), other)
        except DecodeError:
            continue  # the error of the requested version is reported
    return Body(_decode(cls, last, data, start, lenient, limits), last)


def response_body_versions(
    api_key: int, version: int, data: bytes, start: int = 0, package: Package = KAFKA
) -> tuple[int, ...]:
    """Return the possible versions of the response body at `start`, the likeliest first.

    The last is the requested one.
    """
    if not package.is_kafka:
        return (version,)
    error = int.from_bytes(data[start : start + 2], "big", signed=True)
    if api_key == ApiKey.API_VERSIONS and version and error == ErrorCode.UNSUPPORTED_VERSION:
        return 0, version  # some brokers respond in the requested version nevertheless
    return (version,)


def _decode(
    kind: Any, version: int, data: bytes, start: int, lenient: bool, limits: Limits
) -> Message:
    if start and len(data) > LARGE:
        reader = Reader(data, start, lenient=lenient, limits=limits)
        try:
            decoded: Message = kind.decode_from(reader, version)
            decoded.deviations = reader.finish()
            return decoded
        except (IndexError, ValueError):
            pass  # it is decoded again, to name the field
    body = data[start:] if start else data
    try:
        message: Message = kind.decode(body, version, lenient=lenient, limits=limits)
    except DecodeError as error:
        offset = None if error.offset is None else error.offset + start
        raise type(error)(error.reason, error.path, offset) from None
    return message


def encode_frame(
    message: Message,
    version: int,
    correlation_id: int,
    *,
    client_id: str | None = None,
    header_tags: Tags = None,
    lenient: bool = False,
    package: Package = KAFKA,
    header: Mapping[str, object] | None = None,
) -> bytes:
    """Encode a request or response with its size and header.

    client_id: of a request; a response has none. header_tags: tagged fields of a flexible header.
    lenient: write a leniently decoded message as its original bytes. header: other fields of the
    header, where the package has headers of its own. Raises EncodeError, UnsupportedVersion, and
    UnknownApiKey for a message that is neither request nor response.
    """
    return b"".join(
        encode_frame_buffers(
            message,
            version,
            correlation_id,
            client_id=client_id,
            header_tags=header_tags,
            lenient=lenient,
            package=package,
            header=header,
        )
    )


def encode_frame_buffers(
    message: Message,
    version: int,
    correlation_id: int,
    *,
    client_id: str | None = None,
    header_tags: Tags = None,
    lenient: bool = False,
    package: Package = KAFKA,
    header: Mapping[str, object] | None = None,
) -> list[bytes]:
    """Encode a frame in pieces, for `writelines` or `socket.sendmsg`; arguments as `encode_frame`.

    Large bytes fields are pieces as they are, not copied.
    """
    info = package.index.get(type(message).__name__)
    if info.api_key is None or info.type not in ("request", "response"):
        raise UnknownApiKey(f"{info.name} is neither a request nor a response: it has no frame")
    body = message.encode_buffers(version, lenient=lenient)
    if info.type == "request":
        header_version = request_header_version(info.api_key, version, package)
        encoded_header = (
            package.request_header(
                request_api_key=info.api_key,
                request_api_version=version,
                correlation_id=correlation_id,
                **own_fields(package.request_header, client_id, header_tags, header),
            )
            if package.own_request_header or header
            else package.request_header(
                request_api_key=info.api_key,
                request_api_version=version,
                correlation_id=correlation_id,
                client_id=client_id if header_version else "",  # header 0 has none
                unknown_tags=header_tags,
            )
        )
        head = encoded_header.encode(header_version, lenient=lenient)
    else:
        header_version = response_header_version(info.api_key, version, package)
        encoded_header = (
            package.response_header(
                correlation_id=correlation_id,
                **own_fields(package.response_header, None, header_tags, header),
            )
            if package.own_response_header or header
            else package.response_header(correlation_id=correlation_id, unknown_tags=header_tags)
        )
        head = encoded_header.encode(header_version)
    return _with_size(head, body)


def _with_size(head: bytes, body: list[bytes]) -> list[bytes]:
    """Put the size of a frame and its header before its body."""
    size = len(head) + sum(map(len, body))
    body[0] = size.to_bytes(SIZE, "big") + head + body[0]
    return body


def encode_response_buffers(message: Message, version: int, correlation_id: int) -> list[bytes]:
    """Encode a response of Kafka's in pieces, without tagged fields in its header.

    Raises EncodeError, UnsupportedVersion, and UnknownApiKey for what is not a response.
    """
    body = message.encode_buffers(version)
    tags = _header_tags(type(message).__name__, version)
    size = SIZE + len(tags) + (len(body[0]) if len(body) == 1 else sum(map(len, body)))
    body[0] = RESPONSE_HEAD.pack(size, correlation_id) + tags + body[0]
    return body


@cache
def _header_tags(name: str, version: int) -> bytes:
    """Return the tagged fields in the header of a response, of which there are none."""
    info = KAFKA.index.get(name)
    if info.api_key is None or info.type != "response":
        raise UnknownApiKey(f"{info.name} is not a response")
    return NO_TAGS if response_header_version(info.api_key, version) else b""
