"""Encodes one record of magic 2, and computes its size.

`decoding` reads what is written here; every varint is as short as possible.
"""

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

from ..errors import InvalidValue, OutOfRange
from .record import Headers
from .replaced_text import text_bytes

LOGICAL_SHIFT_7: Final = 0x01FFFFFFFFFFFFFF
MAX_INT32: Final = 0x7FFFFFFF


def zigzag(value: i64) -> i64:
    """Fold the sign into bit 0."""
    return (value << 1) ^ (value >> 63)


def varint_size(value: i64) -> i64:
    """Count the bytes of a zigzag varint."""
    if -0x40 <= value < 0x40:
        return 1
    if -0x2000 <= value < 0x2000:
        return 2
    rest = zigzag(value)
    size: i64 = 1
    while rest & ~0x7F != 0:
        rest = rest >> 7 & LOGICAL_SHIFT_7
        size += 1
    return size


def write_varint(out: BytesWriter, value: i64) -> None:
    """Write a zigzag varint of up to 64 bits."""
    rest = zigzag(value)
    while rest & ~0x7F != 0:
        out.append(u8(rest & 0x7F | 0x80))
        rest = rest >> 7 & LOGICAL_SHIFT_7
    out.append(u8(rest))


def bytes_size(value: bytes | None) -> i64:
    """Count the bytes of a length and its bytes; None is the length -1."""
    if value is None:
        return 1
    length: i64 = len(value)
    return varint_size(length) + length


def write_bytes(out: BytesWriter, value: bytes | None) -> None:
    """Write a length and its bytes; None is the length -1."""
    if value is None:
        out.append(1)
        return
    write_varint(out, len(value))
    out.write(value)


def header_keys(headers: Headers) -> list[bytes]:
    """Encode the keys of headers."""
    try:
        return [key.encode("utf-8") if type(key) is str else text_bytes(key) for key, _ in headers]
    except UnicodeEncodeError as error:
        raise InvalidValue(f"the key of a header cannot be UTF-8: {error}") from None


def fields_size(
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    keys: list[bytes],
) -> i64:
    """Count the bytes of a record after its length; `keys` are those of the headers."""
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta)
    size += bytes_size(key) + bytes_size(value) + varint_size(len(keys))
    if keys:
        for header_key in keys:
            size += bytes_size(header_key)
        for _, header_value in headers:
            size += bytes_size(header_value)
    if size > MAX_INT32:
        raise OutOfRange(f"a record of {size} bytes")
    return size


def write_fields(
    out: BytesWriter,
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    keys: list[bytes],
) -> None:
    """Write a record after its length."""
    out.append(0)
    write_varint(out, timestamp_delta)
    write_varint(out, offset_delta)
    write_bytes(out, key)
    write_bytes(out, value)
    write_varint(out, len(keys))
    if keys:
        for header_key, (_, header_value) in zip(keys, headers, strict=True):
            write_bytes(out, header_key)
            write_bytes(out, header_value)
