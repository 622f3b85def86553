"""Numbers and text as JSON, written byte by byte.

Law: character for character what `json` writes in ASCII.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

SHORT: Final = 64
"""Bytes of text that are looked at one by one."""


def put_int(out: BytesWriter, value: i64) -> None:
    """Write a number."""
    if value < 0:
        if value < -(1 << 62):
            out.write(str(value).encode())
            return
        out.append(45)
        value = -value
    if value < 10:
        out.append(48 + value)
        return
    left = len(out)
    while value > 0:
        rest = value // 10
        out.append(48 + value - rest * 10)
        value = rest
    right = len(out) - 1
    while left < right:
        digit = out[left]
        out[left] = out[right]
        out[right] = digit
        left += 1
        right -= 1


def put_text(out: BytesWriter, data: bytes, start: i64, size: i64) -> None:
    """Write UTF-8 as a JSON string in ASCII; UnicodeDecodeError if it is none."""
    if size <= SHORT:
        begin = len(out)
        out.append(34)
        p = start
        stop = start + size
        while p < stop:
            c: i64 = data[p]
            if c < 32 or c > 126 or c == 34 or c == 92:
                break
            out.append(c)
            p += 1
        if p == stop:
            out.append(34)
            return
        out.truncate(begin)
    text = data[start : start + size].decode("utf-8")
    out.write(encode_basestring_ascii(text).encode())
