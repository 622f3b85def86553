"""Reads bytes from text, in the notations of common tools.

- hex digits, with spaces, newlines, `:`, `,`, `_`, `-`, `0x` and `\\x` between bytes
- dumps with offsets: `xxd`, `hexdump -C`, `od -A x -t x1`, `tcpdump -X`, Wireshark, `tshark -x`
- string literals with escapes: Python's `b'\\x00me'`, C's `"\\x00" "me"`, Wireshark's
- lists of numbers: arrays in C, Rust, Go and Python, Java's `Arrays.toString`

A dump of words (`hexdump`, `od`) depends on the byte order of its machine, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

SEPARATOR: Final = re.compile(r"[\s:,_-]|\\x|(?<![0-9a-fA-F])0[xX]")
"""Separators and prefixes between hex digits."""

_BYTES: Final = r"[0-9a-fA-F]{2}(?: ?[0-9a-fA-F]{2})*(?![^\s|])"
_OFFSET: Final = r"\s*(?:0[xX])?(?P<offset>[0-9a-fA-F]{4,16})"
_HALVES: Final = rf"(?P<left>{_BYTES})(?:  (?P<right>{_BYTES}))?"
ROW: Final = re.compile(rf"{_OFFSET}(?:(?P<gap>:?\s{{1,4}}){_HALVES}(?P<text>\s.*)?)?\s*")
"""A line of a dump: the offset, bytes (in two halves, as `hexdump -C` has them), the text."""
HALF: Final = 8
"""Bytes before the gap in the middle of a line."""
REPEATED: Final = "*"
"""A line of a dump that stands for more lines like the one before."""

LARGEST_REPEAT: Final = 1 << 24
"""Bytes that one such line may stand for."""
WORDS: Final = re.compile(r"0{7} (?:[0-9a-fA-F]{4}|[0-7]{6})(?: |\s*$)")
"""The first line of a dump of words, with its offset of seven digits."""

NUMBER: Final = r"(?:0[xX][0-9a-fA-F]{1,2}|-?[0-9]{1,3})(?:[uU]?8)?"
LIST_START: Final = re.compile(
    rf"[^\"'{{\[]{{0,200}}+(?:\[[\w\s;]{{0,40}}+\][\w\s=]{{0,80}}+)?[{{\[]\s*+{NUMBER}[\s,}}\]]"
)
LIST: Final = re.compile(rf"[{{\[]\s*+({NUMBER}(?:[\s,]++{NUMBER})*+)[\s,]*+[}}\]]")
COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|//[^\n]*")

LITERAL_START: Final = re.compile(r"""\s*(?:[bB]?["']|\$'|\\x[0-9a-fA-F]{2})""")
LITERAL: Final = re.compile(r"""[bB$]?(["'])((?:\\.|(?!\1)[^\\])*+)\1""", re.DOTALL)
BETWEEN: Final = re.compile(r"[\s\\+,;()]*")
"""What may be between string literals: line continuations, operators."""
ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27}

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
    if _is_dump(text):
        return _dump(text)
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


class Row(NamedTuple):
    """A line of a dump. has_text: whether more than its offset and bytes shows that it is one."""

    offset: int
    data: bytes
    has_text: bool


def _row(line: str) -> Row | None:
    match = ROW.fullmatch(line)
    if match is None:
        return None
    offset, gap, right = int(match["offset"], 16), match["gap"] or "", match["right"]
    data = bytes.fromhex(match["left"] or "")
    is_first = offset == 0 and gap.isspace() and len(gap) > 1
    has_text = bool((match["text"] or "").strip()) or ":" in gap or is_first
    if right is not None and len(data) == HALF:
        data += bytes.fromhex(right)
    elif right is not None:
        has_text = True
    return Row(offset, data, has_text)


def _is_dump(text: str, *, cut: bool = False) -> bool:
    """Return whether text is lines with offsets. cut: only its beginning is there.

    Digits without offsets look alike; in a dump the second offset follows from the first line.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [_row(line) for line in lines[:2]]
    if not rows or rows[0] is None or not rows[0].data:
        return False
    first = rows[0]
    if len(rows) == 1 or rows[1] is None:
        return first.has_text and (cut or len(rows) == 1 or lines[1].strip() == REPEATED)
    follows = first.offset < rows[1].offset <= first.offset + len(first.data)
    return follows or (cut and len(lines) == 2 and first.has_text)


def _dump(text: str) -> bytes:
    """Join the bytes of the lines; offsets say how many bytes each has."""
    data, last, repeated = bytearray(), b"", False
    rows = list(_rows(text))
    start = rows[0].offset if isinstance(rows[0], Row) else 0
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


def _rows(text: str) -> Iterator[Row | None]:
    """Split a dump into lines; None where lines are left out that repeat the one before."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row = _row(line)
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
    text = text.strip()
    data, position = bytearray(), 0
    while position < len(text):
        match = LITERAL.match(text, position)
        if match is None:
            rest = text[position : position + 16]
            raise HexError(f"not a string literal at character {position + 1}: {rest}")
        content = match[2]
        data += _digits(content) if _is_digits(content) else _unescaped(content)
        between = BETWEEN.match(text, match.end())
        assert between is not None  # it matches nothing, too
        position = between.end()
    return bytes(data)


def _is_digits(text: str) -> bool:
    return "\\" not in text and _bad_digit(text) is None


def _unescaped(text: str) -> bytes:
    """Replace escapes as C, Python, Rust and the shell's $'...' have them."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code.isdigit():
            return chr(int(code, 8) & 0xFF)
        return chr(ESCAPES[code]) if code in ESCAPES else code

    try:
        return ESCAPE.sub(character, text).encode("latin-1")
    except UnicodeEncodeError as error:
        raise HexError(f"not a byte: {text[error.start]!r}") from None
