"""Splits the text of .proto files into tokens.

The work is linear in the text; an error names the line.
"""

from __future__ import annotations

import re
from typing import Final

from ...errors import UnusableSchema

TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<unfinished>/\*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<word>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(?P<number>[0-9.][0-9A-Za-z_.]*(?:(?<=[eE])[+-]?[0-9]+)?)"
    r"|(?P<symbol>[{}\[\]()<>=;,:+\-/])",
    re.DOTALL | re.ASCII,
)
ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
CLOSING: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
END: Final = ""


class Tokens:
    """The tokens of a text. next: the current token, empty at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0
        self.is_string = False
        self.next = END
        self.advance()

    def advance(self) -> str:
        """Return the current token and go to the next one."""
        token = self.next
        while True:
            self._start = self._at
            if self._at == len(self._text):
                self.next, self.is_string = END, False
                return token
            match = TOKEN.match(self._text, self._at)
            if match is None or match.lastgroup == "unfinished":
                raise self.error(f"unexpected {self._text[self._at]!r}")
            self._at = match.end()
            if match.lastgroup != "space":
                self.next, self.is_string = match[0], match.lastgroup == "string"
                return token

    def error(self, reason: str) -> UnusableSchema:
        """Make an error at the current token."""
        line = self._text.count("\n", 0, self._start) + 1
        return UnusableSchema(f"line {line}: {reason}")

    def take(self, token: str) -> bool:
        """Go past a token if it is the current one."""
        if self.next != token:
            return False
        self.advance()
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"expected {token!r}, got {self.next!r}")

    def word(self) -> str:
        """Return a name, which may have dots."""
        if not (self.next[:1].isalpha() or self.next[:1] in ("_", ".")):
            raise self.error(f"expected a name, got {self.next!r}")
        return self.advance()

    def integer(self) -> int:
        """Return an integer, in decimal, octal or hexadecimal digits."""
        sign = -1 if self.take("-") else 1
        text = self.next
        octal = len(text) > 1 and text[0] == "0" and text.isdigit()
        try:
            number = int(text, 8) if octal else int(text, 0)
        except ValueError:
            raise self.error(f"expected an integer, got {text!r}") from None
        self.advance()
        return sign * number

    def string(self) -> str:
        """Return the text of a string."""
        if not self.is_string:
            raise self.error(f"expected a string, got {self.next!r}")
        return ESCAPE.sub(r"\1", self.advance()[1:-1])

    def skip_statement(self) -> None:
        """Go past a statement: up to `;`, or the end of a block in braces."""
        while self.next not in (";", END, "}"):
            if self.next == "{":
                self.skip_block()
                self.take(";")
                return
            self.skip_value()
        self.expect(";")

    def skip_value(self) -> None:
        """Go past a token, or a list or block in brackets."""
        if self.next in CLOSING:
            self.skip_block()
        elif self.next == END:
            raise self.error("the text ends early")
        else:
            self.advance()

    def skip_block(self) -> None:
        """Go past brackets and all between them."""
        open_ones = [CLOSING[self.advance()]]
        while open_ones:
            token = self.next
            if token == END:
                raise self.error(f"expected {open_ones[-1]!r}, but the text ends")
            if not self.is_string and token == open_ones[-1]:
                open_ones.pop()
            elif not self.is_string and token in CLOSING:
                open_ones.append(CLOSING[token])
            self.advance()
