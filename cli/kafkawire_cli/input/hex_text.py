"""Reads bytes from text, in the notations of common tools.

- hex digits, with spaces, newlines, `:`, `,`, `_`, `-`, `0x` and `\\x` between bytes
- dumps with offsets: `xxd`, `hexdump -C`, `od -t x1`, `tcpdump -X`, Wireshark, `tshark -x`, Netty;
  a line above is a heading
- string literals with escapes: Python's `b'\\x00me'`, C's `"\\x00" "me"`, SQL's `X'00'`
- lists of numbers: arrays in C, Rust, Go and Python, Java's `Arrays.toString`, Erlang's binaries
- buffers as Node.js prints them, `<Buffer 00 6d>` and as JSON

A dump of words (`hexdump`, `od`) depends on the byte order of its machine, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kafkawire.printed.dump_rows import DumpRow, dump_row
from kafkawire.printed.escapes import unescaped

SEPARATOR: Final = re.compile(r"[\s:,_-]|\\x|(?<![0-9a-fA-F])0[xX]")
"""Separators and prefixes between hex digits."""

BASES: Final = 16, 8, 10
"""Of the offsets of a dump: those of `od` are octal without `-A`."""
NETTY: Final = re.compile(r"(?:[^\n]*+\n){0,2}? *+\+-{49}\+\n *+\|(?:  [0-9a-f]){16} \|\n")
"""How Netty begins a dump: perhaps a line of a log, a border, the columns."""
REPEATED: Final = "*"
"""A line of a dump that stands for more lines like the one before."""

LARGEST_REPEAT: Final = 1 << 24
"""Bytes that one such line may stand for."""
WORDS: Final = re.compile(r"0{7} (?:[0-9a-fA-F]{4}|[0-7]{6})(?: |\s*$)")
"""The first line of a dump of words, with its offset of seven digits."""

NUMBER: Final = r"(?:0[xX][0-9a-fA-F]{1,2}|-?[0-9]{1,3})(?:[uU]?8)?"
LIST_START: Final = re.compile(
    rf"[^\"'{{\[]{{0,200}}+(?:\[[\w\s;]{{0,40}}+\][\w\s=]{{0,80}}+)?[{{\[]\s*+{NUMBER}[\s,}}\]]"
    rf"|[\w\s=]{{0,200}}+<<\s*+{NUMBER}[\s,>]"
    r"|\s*+\{\s*+\"type\"\s*+:\s*+\"Buffer\"\s*+,\s*+\"data\"\s*+:\s*+\["
)
LIST: Final = re.compile(rf"[{{\[<]\s*+({NUMBER}(?:[\s,]++{NUMBER})*+)[\s,]*+[}}\]>]")
COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|//[^\n]*")

CALL: Final = re.compile(r"\s*(?:bytearray|bytes|memoryview)\(")
LITERAL_START: Final = re.compile(
    rf"""(?:{CALL.pattern})?\s*(?:[bBxXhH]?["']|\$'|\\x[0-9a-fA-F]{{2}})"""
)
LITERAL: Final = re.compile(
    r"""(?P<kind>[bBxXhH$]?)(["'])(?P<content>(?:\\.|(?!\2)[^\\])*+)\2""", re.DOTALL
)
OF_DIGITS: Final = frozenset("xXhH")
"""Kinds of literals that have hex digits: X'00' in SQL, h'00' in CBOR."""
BUFFER: Final = re.compile(r"\s*<Buffer(?P<digits>(?: [0-9a-f]{2})*)(?P<rest> \.\.\. [^>]*)?>\s*")
BETWEEN: Final = re.compile(r"[\s\\+,;()]*")
"""What may be between string literals: line continuations, operators."""
BASE64: Final = re.compile(r"\s*+(?:[A-Za-z0-9+/_-]{4}\s*+){2,}+(?:[A-Za-z0-9+/_-]{2,3}={0,2})?\s*")


class HexError(ValueError):
    """Text in none of the notations; the message says where."""


def is_hex(head: bytes) -> bool:
    """Return whether data starts like bytes in one of the notations."""
    text = head.removesuffix(b"\\").decode("latin-1")
    if not text.strip():
        return bool(text)
    return (
        _bad_digit(text) is None
        or text.lstrip().startswith("<Buffer ")
        or NETTY.match(text) is not None
        or _is_dump(text, cut=True)
        or _is_list(text)
        or LITERAL_START.match(text) is not None
    )


def hex_bytes(text: str) -> bytes:
    """Parse bytes in any of the notations; HexError shows the first invalid character."""
    if WORDS.match(text):
        raise HexError(
            "a dump of words, in the byte order of its machine: use hexdump -C, xxd or od -t x1"
        )
    if buffer := BUFFER.fullmatch(text):
        if buffer["rest"]:
            raise HexError(f"Node.js has left out bytes:{buffer['rest']}; use toString('hex')")
        return _digits(buffer["digits"])
    if header := NETTY.match(text):
        rows = (line for line in text[header.end() :].splitlines() if line[:2] != "+-")
        return _dump("\n".join(rows))
    if _is_dump(text):
        return _dump(_without_heading(text))
    if _bad_digit(text) is None:
        return _digits(text)
    if _is_list(text):
        return _list(text)
    if LITERAL_START.match(text):
        return _literals(text)
    return _digits(text)


def is_base64(text: str) -> bool:
    """Return whether text is base64 of what may be a frame: its size begins with a zero byte."""
    return text.lstrip().startswith("AA") and BASE64.fullmatch(text) is not None


# -- digits


def _digits(text: str) -> bytes:
    position = _bad_digit(text)
    if position is not None:
        before, after = text[max(0, position - 8) : position], text[position + 1 : position + 9]
        around = f"{before}>{text[position]}<{after}"
        hint = "; base64 must be decoded first: base64 -d" if is_base64(text) else ""
        raise HexError(
            f"invalid hex digit {text[position]!r} at character {position + 1}: {around}{hint}"
        )
    plain = SEPARATOR.sub("", text)
    if len(plain) % 2:
        raise HexError(f"odd number of hex digits ({len(plain)}): the last byte is incomplete")
    return bytes.fromhex(plain)


def _bad_digit(text: str) -> int | None:
    """Find the first character that is neither a hex digit nor a separator."""
    blanked = SEPARATOR.sub(lambda matched: " " * len(matched[0]), text)
    bad = re.search(r"[^0-9a-fA-F ]", blanked)
    return None if bad is None else bad.start()


# -- dumps


def _without_heading(text: str) -> str:
    """Leave out a line above a dump that begins at offset 0."""
    first, _, rest = text.lstrip("\r\n").partition("\n")
    if dump_row(first) is not None or _bad_digit(first) is None:
        return text
    row = dump_row(rest.partition("\n")[0])
    begins = row is not None and row.data and row.has_text and not row.offset
    return rest if begins else text


def _is_dump(text: str, *, cut: bool = False) -> bool:
    """Return whether text is lines with offsets. cut: only its beginning is there.

    Digits without offsets look alike; in a dump the second offset follows from the first line.
    """
    lines = [line for line in _without_heading(text).splitlines() if line.strip()]
    rows = [dump_row(line) for line in lines[:2]]
    if not rows or rows[0] is None or not rows[0].data:
        return False
    first = rows[0]
    if len(rows) == 1 or rows[1] is None:
        return first.has_text and (cut or len(rows) == 1 or lines[1].strip() == REPEATED)
    follows = first.offset < rows[1].offset <= first.offset + len(first.data)
    follows |= any(rows[1].follows(first, base) for base in BASES)
    return follows or (cut and len(lines) == 2 and first.has_text)


def _dump(text: str) -> bytes:
    """Join the bytes of the lines; offsets say how many bytes each has."""
    data, last, repeated = bytearray(), b"", False
    rows = _in_base(list(_rows(text)))
    if not rows:
        raise HexError("a dump without a line of bytes")
    start = rows[0].offset if isinstance(rows[0], DumpRow) else 0
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row is None:
            repeated = True
            continue
        missing = row.offset - start - len(data)
        if missing < 0 or (missing and not (repeated and last)):
            raise HexError(f"offset {row.offset:#x} does not follow {start + len(data):#x}")
        if missing > LARGEST_REPEAT:
            raise HexError(f"offset {row.offset:#x}: {missing} bytes are left out")
        if missing:
            data += (last * (missing // len(last) + 1))[:missing]
        repeated = False
        last = row.data if after is None else row.data[: after.offset - row.offset]
        data += last
    return bytes(data)


def _in_base(rows: list[DumpRow | None]) -> list[DumpRow | None]:
    """Read the offsets of a dump in the base in which the second line follows the first."""
    pairs = ((one, after) for one, after in pairwise(rows) if one is not None and after is not None)
    first, second = next(pairs, (None, None))
    if first is None or second is None:
        return rows
    base = next((base for base in BASES if second.follows(first, base)), 16)
    try:
        return [row and row._replace(offset=int(row.digits, base)) for row in rows]
    except ValueError as error:
        raise HexError(f"offsets in base {base}: {error}") from None


def _rows(text: str) -> Iterator[DumpRow | None]:
    """Split a dump into lines; None where lines are left out that repeat the one before."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row = dump_row(line)
        if row is None and line.strip() != REPEATED:
            raise HexError(f"line {number} is not a line of a dump: {line.strip()[:40]}")
        yield row


# -- lists and string literals


def _is_list(text: str) -> bool:
    return LIST_START.match(COMMENT.sub(" ", text)) is not None


def _list(text: str) -> bytes:
    matches = LIST.findall(COMMENT.sub(" ", text))
    # the size in `name[35] = {...}` looks like a list of one number
    lists = [each for each in matches if len(each.split()) > 1 or "," in each] or matches
    if len(lists) != 1:
        raise HexError(f"expected one list of numbers, got {len(lists)}")
    return bytes(_byte(number) for number in re.split(r"[\s,]+", lists[0]))


def _byte(number: str) -> int:
    plain = re.sub(r"[uU]8$", "", number)
    value = int(plain, 16 if plain[:2].lower() == "0x" else 10)
    if not -128 <= value <= 255:
        raise HexError(f"{number} is not a byte")
    return value & 0xFF


def _literals(text: str) -> bytes:
    if text.lstrip().startswith("\\"):
        return _unescaped("".join(text.split()))
    text = CALL.sub("", text.strip(), count=1)
    data, position = bytearray(), 0
    while position < len(text):
        match = LITERAL.match(text, position)
        if match is None:
            rest = text[position : position + 16]
            raise HexError(f"not a string literal at character {position + 1}: {rest}")
        content = match["content"]
        is_digits = match["kind"] in OF_DIGITS or _is_digits(content)
        data += _digits(content) if is_digits else _unescaped(content)
        between = BETWEEN.match(text, match.end())
        assert between is not None  # it matches nothing, too
        position = between.end()
    return bytes(data)


def _is_digits(text: str) -> bool:
    return "\\" not in text and _bad_digit(text) is None


def _unescaped(text: str) -> bytes:
    try:
        return unescaped(text).encode("latin-1")
    except UnicodeEncodeError as error:
        raise HexError(f"not a byte: {text[error.start]!r}") from None
