"""Parses JSON with comments to a tree with the location of every key and value.

Anything but JSON, `//` and `/* */` is an error at its character; a file is read completely or
not at all.

    text --tokens--> Node { value, location }
    an object's value is { key: Member { key_location, node } }
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

DEEPEST: Final = 64
"""The deepest nesting of objects and lists; Kafka's deepest schema has a dozen."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Location:
    """A location: file as given, line and column from 1."""

    file: str
    line: int
    column: int

    @property
    def stem(self) -> str:
        """The name of the file, also inside an archive, without folders and suffix."""
        return PurePath(self.file.rpartition("!")[2]).stem


@dataclass(frozen=True, slots=True)
class SchemaError:
    """One error at one location, and the expected value.

    path: the schema path of the error, `FetchRequest.Topics[].Partitions[]`; empty if unknown.
    rule: the id of the broken rule, as in `rules.RULES` and `form.RULES`.
    """

    file: str
    line: int
    column: int
    path: str
    reason: str
    rule: str

    @classmethod
    def at(cls, location: Location, path: str, rule: str, reason: str) -> SchemaError:
        return cls(location.file, location.line, location.column, path, reason, rule)

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {path}{self.reason} [{self.rule}]"


class SchemaErrors(ValueError):
    """Invalid schemas: `errors` has every error, in text order."""

    def __init__(self, errors: tuple[SchemaError, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the text and its start; `repeated` are the repeated keys of an object."""

    value: Scalar | list[Node] | dict[str, Member]
    location: Location
    repeated: tuple[Repeat, ...] = ()

    @property
    def members(self) -> dict[str, Member]:
        """The members of an object; none for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The elements of a list; none for anything else."""
        return self.value if isinstance(self.value, list) else []

    def at(self, key: str) -> Location:
        """The start of the value of `key`, or of the object if it has no such key."""
        member = self.members.get(key)
        return member.node.location if member else self.location

    @property
    def kind(self) -> str:
        """Its JSON type."""
        return _KINDS[type(self.value)]


@dataclass(frozen=True, slots=True)
class Member:
    """One `"key": value` of an object."""

    key_location: Location
    node: Node


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated key of an object, with the same value or another."""

    key: str
    same: bool
    first: Location
    again: Location


_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+ | //[^\n]* | /\*.*?\*/)
  | (?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")
  | (?P<number>-?(?:0|[1-9][0-9]{0,99})(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9A-Za-z.]))
  | (?P<word>true|false|null)(?![0-9A-Za-z_])
  | (?P<mark>[{}\[\]:,])
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {"true": True, "false": False, "null": None}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def parse(text: str, file: str) -> tuple[Node, Location | None]:
    """Read one document.

    Returns also the places of surplus closing brackets after it. SchemaErrors if it is not JSON.
    """
    return _Parser(text, file).document()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    value: Scalar
    position: int


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self.tokens = self.scan()
        self.token = next(self.tokens)

    def document(self) -> tuple[Node, Location | None]:
        node = self.value(0)
        stray = self.location(self.token.position) if self.token.kind in ("}", "]") else None
        while self.token.kind in ("}", "]"):
            self.take()
        if self.token.kind != "end":
            raise self.refusal(self.token.position, "unexpected text after the document")
        return node, stray

    def location(self, position: int) -> Location:
        line = bisect_right(self.lines, position)
        return Location(self.file, line, position - self.lines[line - 1] + 1)

    def refusal(self, position: int, reason: str) -> SchemaErrors:
        return SchemaErrors((SchemaError.at(self.location(position), "", "syntax", reason),))

    def scan(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.refusal(position, self.unreadable(position))
            if match.lastgroup != "space":
                yield self.read(match)
            position = match.end()
        yield _Token("end", None, position)

    def read(self, match: re.Match[str]) -> _Token:
        position = match.start()
        if match["string"]:
            return _Token("value", _unescaped(match["string"][1:-1]), position)
        if match["number"]:
            number = float(match["number"]) if match["real"] else int(match["number"])
            if number in (math.inf, -math.inf):
                raise self.refusal(position, "the number is out of the range of a float64")
            return _Token("value", number, position)
        if match["word"]:
            return _Token("value", _WORDS[match["word"]], position)
        return _Token(match["mark"], match["mark"], position)

    def unreadable(self, position: int) -> str:
        if self.text.startswith("/*", position):
            return "unclosed comment: */ is missing"
        if self.text[position] == '"':
            return "the string is not closed on its line, or has an invalid escape"
        if self.text[position] == "'":
            return "strings need double quotes"
        return f"{self.text[position]!r} is not the start of a JSON value"

    def take(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self.token = next(self.tokens)
        return token

    def expect(self, marks: str, after: str) -> _Token:
        if self.token.kind not in marks:
            ended = "the text ends; " if self.token.kind == "end" else ""
            raise self.refusal(self.token.position, f"{ended}expected {_either(marks)} {after}")
        return self.take()

    def value(self, depth: int) -> Node:
        token = self.take()
        location = self.location(token.position)
        if depth > DEEPEST:
            raise self.refusal(token.position, f"more than {DEEPEST} levels of nesting")
        match token.kind:
            case "value":
                return Node(token.value, location)
            case "{":
                members, repeated = self.members(depth)
                return Node(members, location, tuple(repeated))
            case "[":
                return Node(self.elements(depth), location)
            case "end":
                raise self.refusal(token.position, "the text ends; expected a value")
            case _:
                raise self.refusal(token.position, f"expected a value, not {token.value!r}")

    def members(self, depth: int) -> tuple[dict[str, Member], list[Repeat]]:
        members: dict[str, Member] = {}
        repeated: list[Repeat] = []
        if self.token.kind == "}":
            self.take()
            return members, repeated
        while True:
            key = self.take()
            if not isinstance(key.value, str) or key.kind != "value":
                raise self.refusal(key.position, "expected a key in double quotes")
            self.expect(":", "after a key")
            member = Member(self.location(key.position), self.value(depth + 1))
            first = members.setdefault(key.value, member)
            if first is not member:
                same = _same(first.node, member.node)
                repeated.append(Repeat(key.value, same, first.key_location, member.key_location))
            if self.ends("}", "after a value"):
                return members, repeated

    def elements(self, depth: int) -> list[Node]:
        if self.token.kind == "]":
            self.take()
            return []
        elements = [self.value(depth + 1)]
        while not self.ends("]", "after an element"):
            elements.append(self.value(depth + 1))
        return elements

    def ends(self, bracket: str, after: str) -> bool:
        """Take a comma or the closing bracket; return whether it was the bracket."""
        mark = self.expect(f",{bracket}", after)
        if mark.kind == "," and self.token.kind == bracket:
            raise self.refusal(mark.position, f"trailing comma before '{bracket}'")
        return mark.kind == bracket


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body
    body = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), body)
    return body.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _same(one: Node, other: Node) -> bool:
    """Whether two values are the same scalar, at any place."""
    if isinstance(one.value, dict | list) or isinstance(other.value, dict | list):
        return False
    return type(one.value) is type(other.value) and one.value == other.value


def _either(marks: str) -> str:
    return " or ".join(f"'{mark}'" for mark in marks)
