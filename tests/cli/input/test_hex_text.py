"""Bytes in the notations of tools: dumps, arrays, string literals."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire_cli.input.hex_text import HexError, hex_bytes, is_hex
from tests.cli.reports import run
from tests.spoiled import EDITS, SHARES, Edit, spoiled

FRAME: Final = bytes.fromhex(
    "0000001f000c00040000000500026d65000862696c6c696e6700000007046d2d310000"
)

XXD = """\
00000000: 0000 001f 000c 0004 0000 0005 0002 6d65  ..............me
00000010: 0008 6269 6c6c 696e 6700 0000 0704 6d2d  ..billing.....m-
00000020: 3100 00                                  1..
"""
HEXDUMP = """\
00000000  00 00 00 1f 00 0c 00 04  00 00 00 05 00 02 6d 65  |..............me|
00000010  00 08 62 69 6c 6c 69 6e  67 00 00 00 07 04 6d 2d  |..billing.....m-|
00000020  31 00 00                                          |1..|
00000023
"""
OD = """\
000000 00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65
000010 00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d
000020 31 00 00
000023
"""
OD_TEXT = """\
000000 00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65  >..............me<
000010 00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d  >..billing.....m-<
000020 31 00 00                                         >1..<
000023
"""
TCPDUMP = """\
\t0x0000:  0000 001f 000c 0004 0000 0005 0002 6d65  ..............me
\t0x0010:  0008 6269 6c6c 696e 6700 0000 0704 6d2d  ..billing.....m-
\t0x0020:  3100 00                                  1..
"""
WIRESHARK = """\
0000   00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65   ..............me
0010   00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d   ..billing.....m-
0020   31 00 00                                          1..
"""
WIRESHARK_HEX = """\
0000   00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65
0010   00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d
0020   31 00 00
"""
WIRESHARK_STRING = r"""
"\x00\x00\x00\x1f\x00\x0c\x00\x04\x00\x00\x00\x05\x00\x02\x6d\x65" \
"\x00\x08\x62\x69\x6c\x6c\x69\x6e\x67\x00\x00\x00\x07\x04\x6d\x2d" \
"\x31\x00\x00"
"""
WIRESHARK_C = """\
/* Frame (35 bytes) */
static const unsigned char pkt4[35] = {
0x00, 0x00, 0x00, 0x1f, 0x00, 0x0c, 0x00, 0x04, /* ........ */
0x00, 0x00, 0x00, 0x05, 0x00, 0x02, 0x6d, 0x65, /* ......me */
0x00, 0x08, 0x62, 0x69, 0x6c, 0x6c, 0x69, 0x6e, /* ..billin */
0x67, 0x00, 0x00, 0x00, 0x07, 0x04, 0x6d, 0x2d, /* g.....m- */
0x31, 0x00, 0x00                                /* 1.. */
};
"""
XXD_C = """\
unsigned char frame_bin[] = {
  0x00, 0x00, 0x00, 0x1f, 0x00, 0x0c, 0x00, 0x04, 0x00, 0x00, 0x00, 0x05,
  0x00, 0x02, 0x6d, 0x65, 0x00, 0x08, 0x62, 0x69, 0x6c, 0x6c, 0x69, 0x6e,
  0x67, 0x00, 0x00, 0x00, 0x07, 0x04, 0x6d, 0x2d, 0x31, 0x00, 0x00
};
unsigned int frame_bin_len = 35;
"""
GO = "[]byte{" + ", ".join(f"0x{byte:x}" for byte in FRAME) + "}"
OD_OCTAL = """\
0000000 00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65
0000020 00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d
0000040 31 00 00
0000043
"""
OD_DECIMAL = OD_OCTAL.replace("20 ", "16 ", 1).replace("40 ", "32 ").replace("43", "35")
NETTY = """\
12:00:01.123 [io-1] DEBUG LoggingHandler - [id: 0x0a1b2c3d, L:/127.0.0.1:9092] READ: 35B
         +-------------------------------------------------+
         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
+--------+-------------------------------------------------+----------------+
|00000000| 00 00 00 1f 00 0c 00 04 00 00 00 05 00 02 6d 65 |..............me|
|00000010| 00 08 62 69 6c 6c 69 6e 67 00 00 00 07 04 6d 2d |..billing.....m-|
|00000020| 31 00 00                                        |1..             |
+--------+-------------------------------------------------+----------------+
"""
NOTATIONS: Final = {
    "xxd": XXD,
    "xxd, one line": "00000000: 0000 0004 0012 0000  ........\n",
    "hexdump -C": HEXDUMP,
    "od": OD,
    "od with text": OD_TEXT,
    "tcpdump -X": TCPDUMP,
    "Wireshark": WIRESHARK,
    "Wireshark, bytes alone": WIRESHARK_HEX,
    "Wireshark, escaped string": WIRESHARK_STRING,
    "Wireshark, C array": WIRESHARK_C,
    "xxd -i": XXD_C,
    "Go": GO,
    "Rust": "let frame: [u8; 35] = " + str([f"{byte}u8" for byte in FRAME]).replace("'", "") + ";",
    "Java": str([byte - 256 * (byte > 127) for byte in FRAME]),
    "Python": repr(FRAME),
    "Python's bytes()": f"bytes({list(FRAME)})",
    "Python's hexlify": repr(FRAME.hex().encode()),
    "shell": r"$'\0\0\0\x1f\0\f\0\4\0\0\0\5\0\2me\0\bbilling\0\0\0\a\4m-1\0\0'",
    "escapes without quotes": repr(FRAME)[2:-1],
    "JSON string": f'"{FRAME.hex()}"',
    "od -t x1": OD_OCTAL,
    "od -A d -t x1": OD_DECIMAL,
    "Netty": NETTY,
    "Netty, without the line of the log": NETTY.partition("\n")[2],
    "a dump with a heading": "RequestResponse hexdump (35 bytes):\n" + XXD,
    "Node.js": f"<Buffer {FRAME.hex(' ')}>",
    "JSON of Node.js": json.dumps({"type": "Buffer", "data": list(FRAME)}),
    "Erlang": f"Frame = <<{','.join(map(str, FRAME))}>>",
    "Python's bytearray": repr(bytearray(FRAME)),
    "SQL": f"X'{FRAME.hex()}'",
    "CBOR": f"h'{FRAME.hex()}'",
    "C++": f"std::array<uint8_t, 35> frame = {{{', '.join(map(str, FRAME))}}};",
}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_the_notations_of_tools_are_read(notation: str, tmp_path: Path) -> None:
    text = NOTATIONS[notation]
    expected = FRAME if notation != "xxd, one line" else bytes.fromhex("0000000400120000")
    assert hex_bytes(text) == expected
    assert is_hex(text.encode())
    path = tmp_path / "notes.txt"
    path.write_text(text)
    rows = [run("decode", given, "-f", "jsonl") for given in (path, text)]
    rows.append(run("decode", "-", "-f", "jsonl", stdin=text.encode()))
    assert {row.exit_code for row in rows} == {0}, rows[0].output
    if expected == FRAME:
        assert {json.loads(row.stdout)["body"]["groupId"] for row in rows} == {"billing"}
        explained = run("explain", "--frame", f"@{path}")
        assert (explained.exit_code, '"billing"' in explained.stdout) == (0, True)


def printable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


def lines(data: bytes, width: int = 16) -> Iterator[tuple[int, bytes]]:
    for offset in range(0, len(data), width):
        yield offset, data[offset : offset + width]


def xxd(data: bytes) -> str:
    return "".join(
        f"{start:08x}: {part.hex(' ', -2):<39}  {printable(part)}\n" for start, part in lines(data)
    )


def hexdump(data: bytes) -> str:
    """Format as `hexdump -C`, which leaves out lines like the one before."""
    text, before = "", b""
    for offset, part in lines(data):
        if part == before and len(part) == 16:
            text += "" if text.endswith("*\n") else "*\n"
            continue
        halves = f"{part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}"
        text += f"{offset:08x}  {halves}  |{printable(part)}|\n"
        before = part
    return text + f"{len(data):08x}\n"


def wireshark(data: bytes) -> str:
    return "".join(
        f"{start:04x}   {part.hex(' '):<47}   {printable(part)}\n" for start, part in lines(data)
    )


@given(
    data=st.binary(min_size=1, max_size=100)
    | st.text(alphabet="0123456789abcdef ", min_size=1, max_size=60).map(str.encode)
    | st.builds(
        lambda part, times: part * times + b"end",
        st.binary(min_size=16, max_size=16),
        st.integers(2, 5),
    ),
    dump=st.sampled_from([xxd, hexdump, wireshark]),
)
def test_text_beside_the_bytes_is_never_taken_for_bytes(
    data: bytes, dump: Callable[[bytes], str]
) -> None:
    assert hex_bytes(dump(data)) == data


@pytest.mark.parametrize("notation", NOTATIONS)
@given(first=SHARES, edits=EDITS)
def test_spoiled_text_is_read_or_refused(notation: str, first: float, edits: list[Edit]) -> None:
    text = spoiled(NOTATIONS[notation].encode(), first, edits)
    is_hex(text)
    with contextlib.suppress(HexError):
        assert isinstance(hex_bytes(text.decode("latin-1")), bytes)


@given(st.binary(max_size=60))
def test_literals_of_python_are_read(data: bytes) -> None:
    assert hex_bytes(f"b'{''.join(f'{chr(92)}x{byte:02x}' for byte in data)}'") == data


@pytest.mark.parametrize(
    "text",
    ["0000 0001 02", "0000001f 000c0004 00000005", "00000000\n11111111", "0862696c  6c696e67"],
)
def test_digits_in_groups_have_no_offsets(text: str) -> None:
    assert hex_bytes(text) == bytes.fromhex(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0000000 0000 1f00 0c00 0400\n0000008\n", "a dump of words"),
        ("0000000 000000 017400 006000\n0000006\n", "a dump of words"),
        (XXD.replace("00000010", "00000030"), "invalid hex digit"),
        (XXD.replace("00000020", "00000040"), "offset 0x40 does not follow 0x20"),
        (XXD + "and more\n", "line 4 is not a line of a dump: and more"),
        (XXD_C * 2, "expected one list of numbers, got 2"),
        ("[0, 300]", "300 is not a byte"),
        ("'\\x00' and '\\x01'", "not a string literal at character 8"),
        ("b'\u20ac'", "not a byte"),
        ("X'00zz'", "invalid hex digit 'z'"),
        ("<Buffer 00 00 ... 30 more bytes>", "left out bytes: ... 30 more bytes; use toString"),
        (OD_OCTAL.replace("0000040", "0000098"), "offsets in base 8"),
        (NETTY * 2, "offset 0x0 does not follow|is not a line of a dump"),
        ("AAAAHwAMAAQAAAAFAAJtZQAIYmls", "base64 must be decoded first: base64 -d"),
    ],
)
def test_other_text_is_refused(text: str, problem: str) -> None:
    with pytest.raises(HexError, match=problem):
        hex_bytes(text)


def test_files_of_base64_and_of_words_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "frame.txt"
    for text, problem in (
        ("AAAAHwAMAAQAAAAFAAJtZQAIYmlsbGluZwAAAAcEbS0xAAA=\n", "base64 -d | kafkawire decode -"),
        ("0000000 0000 1f00 0c00 0400\n0000008\n", "a dump of words"),
    ):
        path.write_text(text)
        for result in (run("decode", path), run("decode", "-", stdin=text.encode())):
            assert (result.exit_code, result.stdout) == (2, "")
            assert problem in result.stderr


HOSTILE: Final[dict[str, Callable[[int], str]]] = {
    "spaces after a size": lambda n: "[x]" + " " * n,
    "comments that do not end": lambda n: "/*" * n,
    "a list and such comments": lambda n: "{1, 2} " + "/*" * n,
    "a list that does not end": lambda n: "{" + "1, " * n,
    "lists that do not end": lambda n: "{1 " * n,
    "spaces in a list": lambda n: "{1," + " " * n + "x}",
    "a literal that does not end": lambda n: '"' + "\\x00" * n,
    "quotes": lambda n: '"' * n + "x",
    "spaces in base64": lambda n: "AAAA" + " " * n + "!",
    "a long line": lambda n: "00000000  " + "00 " * n + "g",
    "brackets": lambda n: "<" * n + "0>",
    "a buffer that does not end": lambda n: "<Buffer" + " 00" * n,
    "headings": lambda n: "heading\n" * n,
    "borders": lambda n: ("+" + "-" * 49 + "+\n") * (n // 50),
    "lines left out": lambda n: "00000000: 00 00\n" + "*\n" * n,
    "a far offset": lambda _: "00000000: 00 00\n*\nffffffffffffffff: 00\n",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_linear_time(text: Callable[[int], str]) -> None:
    """More than linear, it would take hours."""
    with contextlib.suppress(HexError):
        hex_bytes(text(200_000))
    is_hex(text(200_000).encode())


def test_long_dumps_are_read() -> None:
    lines = (f"{16 * n:08x}: {n:032x}  ................\n" for n in range(20_000))
    assert hex_bytes("".join(lines)) == b"".join(n.to_bytes(16, "big") for n in range(20_000))


@pytest.mark.parametrize("verb", ["decode", "explain --frame"])
def test_a_mistake_in_a_long_argument_is_shown(verb: str) -> None:
    """It is longer than the name of a file may be."""
    done = run(*verb.split(), "00 " * 200 + "zz")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "'z' at character 601" in done.stderr


@pytest.mark.parametrize(
    "verb", ["summary", "top", "log", "schema lint", "explain --packet 1", "sql SELECT_1"]
)
def test_an_argument_that_is_too_long_for_a_file_is_a_usage_error(verb: str) -> None:
    done = run(*(word.replace("_", " ") for word in verb.split()), "00 " * 200 + "zz")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr
