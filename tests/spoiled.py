"""Spoils text as it is spoiled on its way: lines lost, repeated, cut, typed over."""

from __future__ import annotations

from typing import Final, NamedTuple

from hypothesis import strategies as st


class Edit(NamedTuple):
    """A change of the line at a share of all lines, from a share of its bytes on."""

    kind: str
    line: float
    byte: float
    new: bytes


SHARES: Final = st.floats(0, 1, exclude_max=True)
KINDS: Final = ("lose", "repeat", "cut", "type over", "insert", "strip")
TYPED: Final = (
    *(b"8", b"g", b"\xff", b"\xb2", b"\x00", b"\\", b'"', b"\\x", b"\n", b"\r", b"\t", b"  "),
    b"9" * 5000,  # more digits than Python converts
    b"<unfinished ...>",
)
EDITS: Final = st.lists(
    st.builds(Edit, st.sampled_from(KINDS), SHARES, SHARES, st.sampled_from(TYPED)), max_size=6
)


def edited(lines: list[bytes], edit: Edit) -> list[bytes]:
    """Change a line, or lose it."""
    at = int(edit.line * len(lines))
    if at >= len(lines):
        return lines
    line = lines[at]
    byte = int(edit.byte * len(line))
    kinds: dict[str, list[bytes]] = {
        "lose": [],
        "repeat": [line, line],
        "cut": [line[:byte]],
        "type over": [line[:byte] + edit.new + line[byte + len(edit.new) :]],
        "insert": [line[:byte] + edit.new + line[byte:]],
        "strip": [line.strip() + b"\n"],
    }
    return [*lines[:at], *kinds[edit.kind], *lines[at + 1 :]]


def spoiled(text: bytes, first: float, edits: list[Edit]) -> bytes:
    """Lose the lines before a share of them, then make the edits."""
    lines = text.splitlines(keepends=True)
    lines = lines[int(first * len(lines)) :]
    for edit in edits:
        lines = edited(lines, edit)
    return b"".join(lines)
