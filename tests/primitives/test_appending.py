"""Short texts and lists of int32 are written as any others: by the compiled writer in C, and by
`appending.py`.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from kafkawire.primitives import Writer, appending
from kafkawire.primitives.appending import LONGEST, append_int32s, append_text

LENGTHS = [0, 1, 2, LONGEST - 1, LONGEST, LONGEST + 1, 127, 128, 300]
EDGES = [-(1 << 31), -(1 << 30), -114, -113, -112, -1, 0, 1, 1 << 30, (1 << 31) - 1]
"""Of int32, of a digit of Python's integers, and around the value by which mypyc reports errors."""

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def length(size: int, plain: str, *, flexible: bool) -> bytes:
    return uvarint(size + 1) if flexible else struct.pack(plain, size)


def written(kind: str, value: Any, *, flexible: bool, before: int = 0) -> bytes:
    writer = Writer()
    for _ in range(before):
        writer.write_int8(7)
    getattr(writer, f"write_{kind}")(value, flexible)
    body = writer.getvalue()
    assert body[:before] == b"\x07" * before
    return body[before:]


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("size", LENGTHS)
def test_texts_of_each_length(size: int, flexible: bool) -> None:
    # the writer's buffer begins with 256 bytes and grows at any of the places before
    for text in ("x" * size, "é" * size):
        raw = text.encode()
        expected = length(len(raw), ">h", flexible=flexible) + raw
        for before in (0, 200, 255, 256):
            assert written("string", text, flexible=flexible, before=before) == expected


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("size", LENGTHS)
def test_lists_of_each_length(size: int, flexible: bool) -> None:
    items = [EDGES[i % len(EDGES)] for i in range(size)]
    expected = length(size, ">i", flexible=flexible) + struct.pack(f">{size}i", *items)
    for before in (0, 200, 255, 256):
        assert written("int32_array", items, flexible=flexible, before=before) == expected


@given(st.text(max_size=140), st.booleans())
def test_any_text(text: str, flexible: bool) -> None:
    raw = text.encode()
    assert written("string", text, flexible=flexible) == (
        length(len(raw), ">h", flexible=flexible) + raw
    )


@given(st.lists(INT32, max_size=140), st.booleans())
def test_any_list(items: list[int], flexible: bool) -> None:
    assert written("int32_array", items, flexible=flexible) == (
        length(len(items), ">i", flexible=flexible) + struct.pack(f">{len(items)}i", *items)
    )


@pytest.mark.parametrize("wrong", [1 << 31, -(1 << 31) - 1, 1 << 70, "1", None, 1.0])
@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_wrong_item_is_an_error(wrong: Any, at: int) -> None:
    items: list[Any] = [1, 2, 3, 4, 5]
    items.insert(at, wrong)
    with pytest.raises((OverflowError, TypeError, ValueError)):
        written("int32_array", items, flexible=True)


@given(st.text(max_size=140), st.lists(st.integers(-(1 << 32), 1 << 32), max_size=140))
def test_the_interpreted_version_appends_all_or_nothing(text: str, items: list[int]) -> None:
    assert str(appending.__file__).endswith(".py")
    for flexible in (False, True):
        texts, lists = BytesWriter(), BytesWriter()
        if append_text(texts, text, flexible):
            assert texts.getvalue() == written("string", text, flexible=flexible)
        else:
            assert len(texts) == 0
        if append_int32s(lists, items, flexible):
            assert lists.getvalue() == written("int32_array", items, flexible=flexible)
        else:
            assert len(lists) == 0
