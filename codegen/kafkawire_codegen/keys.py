"""Reads the keys of a JSON object of a schema, each once and in the dialect's form.

An ill-formed value is reported once, then treated as absent, and its key is in `unread`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from .dialect import Form, HeaderVersions
from .source import Location, Node, SchemaError
from .versions import NONE, Versions

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}\Z")
_FLAGS: Final = {"true": True, "false": False}

LONGEST_COMPARED: Final = 100
MOST_COMPARED: Final = 100
"""The longest word and list to compare: beyond this there is no suggestion."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the most similar known word: "; did you mean X?", or ""."""
    by_lower_case = {k.lower(): k for k in known}
    if len(word) > LONGEST_COMPARED or len(by_lower_case) > MOST_COMPARED:
        return ""
    close = get_close_matches(word.lower(), by_lower_case, n=1)
    return f"; did you mean {by_lower_case[close[0]]}?" if close else ""


class Keys:
    """The keys of one object, each read once; faults are added to `errors`, once."""

    def __init__(
        self, node: Node, forms: Mapping[str, Form], path: str, errors: list[SchemaError]
    ) -> None:
        self.node = node
        self.forms = forms
        self.path = path
        self.errors = errors
        self.unread: set[str] = set()

    def check(self, required: Iterable[str]) -> None:
        """Report unknown, repeated and missing keys."""
        for key, member in self.node.members.items():
            if key not in self.forms:
                reason = f'unknown key "{key}"{did_you_mean(key, self.forms)}'
                self.report(member.key_location, "unknown-key", reason)
        for repeat in self.node.repeated:
            rule, value = ("repeated-key", "this") if repeat.same else ("duplicate-key", "another")
            reason = (
                f'"{repeat.key}" has {value} value at line {repeat.first.line} already; keep one'
            )
            self.report(repeat.again, rule, reason)
        for key in required:
            if self.member(key) is None:
                self.unread.add(key)
                self.report(
                    self.node.location, "missing-key", f'"{key}" is missing: {self.must(key)}'
                )

    def must(self, key: str) -> str:
        return f"it must be {self.forms[key].value}"

    def report(self, location: Location, rule: str, reason: str) -> None:
        self.errors.append(SchemaError.at(location, self.path, rule, reason))

    def refuse(self, key: str, node: Node, reason: str, rule: str = "wrong-kind") -> None:
        if key not in self.unread:
            self.unread.add(key)
            self.report(node.location, rule, reason)

    def member(self, key: str) -> Node | None:
        """The value of a key; JSON's null is the same as an absent key (as in Kafka)."""
        if key not in self.forms:
            return None
        member = self.node.members.get(key)
        return member.node if member and member.node.value is not None else None

    def wrong(self, key: str, node: Node) -> None:
        self.refuse(key, node, f'"{key}": {self.must(key)}, not {node.kind}')

    def name(self, key: str) -> str:
        node = self.member(key)
        if node is None:
            return ""
        if isinstance(node.value, str):
            return node.value
        self.wrong(key, node)
        return ""

    def text(self, key: str) -> str | None:
        node = self.member(key)
        if node is None:
            return None
        if isinstance(node.value, bool):
            return str(node.value).lower()
        if isinstance(node.value, str | int | float):
            return str(node.value)
        self.wrong(key, node)
        return None

    def integer(self, key: str) -> int | None:
        node = self.member(key)
        if node is None:
            return None
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node.value, str) and _INTEGER.match(node.value):
            return int(node.value)
        self.wrong(key, node)
        return None

    def flag(self, key: str) -> bool:
        node = self.member(key)
        if node is None:
            return False
        if isinstance(node.value, bool):
            return node.value
        if isinstance(node.value, str) and node.value in _FLAGS:
            return _FLAGS[node.value]
        self.wrong(key, node)
        return False

    def versions(self, key: str, otherwise: Versions) -> Versions:
        node = self.member(key)
        return otherwise if node is None else self.range(key, node, otherwise)

    def own_flexible(self) -> Versions | None:
        """The field's own flexible versions; empty text is the same as an absent key."""
        text = self.name("flexibleVersions")
        return self.versions("flexibleVersions", NONE) if text else None

    def range(self, key: str, node: Node, otherwise: Versions) -> Versions:
        if isinstance(node.value, bool) or not isinstance(node.value, str | int):
            self.wrong(key, node)
            return otherwise
        try:
            return Versions.parse(str(node.value))
        except ValueError as error:
            self.refuse(key, node, f'"{key}": {error}', "ill-formed-versions")
            return otherwise

    def header_versions(self, key: str) -> HeaderVersions:
        """Read a map of message versions to header version, `{"0-1": "1", "2+": "2"}`."""
        node = self.member(key)
        if node is None:
            return ()
        read: list[tuple[Versions, int]] = []
        if not isinstance(node.value, dict):
            self.wrong(key, node)
        for text, member in node.members.items():
            try:
                versions = Versions.parse(text)
            except ValueError as error:
                reason = f'"{key}": {error}'
                self.refuse(key, Node(text, member.key_location), reason, "ill-formed-versions")
                continue
            number = str(member.node.value)
            if not _INTEGER.match(number) or int(number) < 0:
                self.refuse(key, member.node, f'"{key}": a header version is a number from 0')
                continue
            read.append((versions, int(number)))
        return tuple(sorted(read, key=lambda pair: pair[0].low))

    def names(self, key: str) -> tuple[str, ...]:
        node = self.member(key)
        if node is None:
            return ()
        if not isinstance(node.value, list):
            self.wrong(key, node)
        texts = [item.value for item in node.items if isinstance(item.value, str)]
        if len(texts) < len(node.items):
            self.wrong(key, node)
        return tuple(texts)

    def objects(self, key: str) -> list[Node]:
        node = self.member(key)
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.wrong(key, node)
        for item in node.items:
            if not isinstance(item.value, dict):
                self.refuse(key, item, f'"{key}": each is an object, not {item.kind}')
        return [item for item in node.items if isinstance(item.value, dict)]
