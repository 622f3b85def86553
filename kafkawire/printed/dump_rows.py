"""Lines of dumps: an offset, bytes in hexadecimal, perhaps the text of the bytes.

0x0010:  4500 003c ...  E..<      tcpdump -X
00000010  45 00 00 3c  |E..<|     hexdump -C, xxd, Wireshark, tshark -x
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_BYTES: Final = r"[0-9a-fA-F]{2}(?: ?[0-9a-fA-F]{2})*(?![^\s|])"
_OFFSET: Final = r"\s*\|?(?:0[xX])?(?P<offset>[0-9a-fA-F]{4,16})"
_HALVES: Final = rf"(?P<left>{_BYTES})(?:  (?P<right>{_BYTES}))?"
ROW: Final = re.compile(rf"{_OFFSET}(?:(?P<gap>[:|]?\s{{1,4}}){_HALVES}(?P<text>\s.*)?)?\s*")
"""A line of a dump: the offset, bytes (in two halves, as `hexdump -C` has them), the text."""
HALF: Final = 8
"""Bytes before the gap in the middle of a line."""


class DumpRow(NamedTuple):
    """A line of a dump. has_text: whether more than its offset and bytes shows that it is one.

    digits: of the offset, which is in base 16 unless others show that it is not.
    """

    offset: int
    data: bytes
    has_text: bool
    digits: str

    def follows(self, before: DumpRow, base: int) -> bool:
        """Whether it is the line after another one, if offsets are in a base."""
        try:
            return int(self.digits, base) == int(before.digits, base) + len(before.data)
        except ValueError:
            return False


def dump_row(line: str) -> DumpRow | None:
    """Parse a line of a dump; None if it is something else."""
    match = ROW.fullmatch(line)
    if match is None:
        return None
    offset, gap, right = int(match["offset"], 16), match["gap"] or "", match["right"]
    data = bytes.fromhex(match["left"] or "")
    is_first = offset == 0 and gap.isspace() and len(gap) > 1
    has_text = bool((match["text"] or "").strip()) or gap[:1] in {":", "|"} or is_first
    if right is not None and len(data) == HALF:
        data += bytes.fromhex(right)
    elif right is not None:
        has_text = True
    return DumpRow(offset, data, has_text, match["offset"])
