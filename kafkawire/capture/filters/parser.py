"""Parses a filter expression into a tree, by recursive descent.

Each token is read once; nesting deeper than MAX_DEPTH is an error, not a stack overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

from ...errors import FilterError
from ...protocol.packages import OURS
from .fields import Field, Type, fields_of
from .tokens import Kind, Token, tokens
from .tree import And, Comparison, Expression, Not, Or
from .values import EQUAL, GLOB, ORDER, suggestion, test_of

MAX_DEPTH: Final = 100
"""Parentheses and `not` inside each other, at most."""

NEGATED: Final = {"!=": EQUAL, "!~": GLOB}
OPERATORS: Final = (EQUAL, "!=", *ORDER, GLOB, "!~")

INSTEAD: Final = {"=": "==", "<>": "!=", "=~": "~", "&&": "and", "&": "and", "||": "or", "|": "or"}
"""Operators of other languages -> those of this one."""

FIELDS_ELSEWHERE: Final = {
    **dict.fromkeys(("api_name", "api_key"), "api"),
    **dict.fromkeys(("client_id", "clientid"), "client"),
    **dict.fromkeys(("ip.addr", "ip.src", "ip.dst", "host"), "client_address"),
    "tcp.stream": "connection",
    **dict.fromkeys(("error_code", "errorcode"), "error"),
    **dict.fromkeys(("topic_name", "topicname"), "topic"),
    **dict.fromkeys(("partition_id", "partition_index"), "partition"),
    **dict.fromkeys(("group_id", "groupid", "consumer_group"), "group"),
    **dict.fromkeys(("len", "length", "frame.len"), "size"),
    **dict.fromkeys(("frame.time", "timestamp"), "time"),
    "frame.number": "packet",
    **dict.fromkeys(("api_version", "apiversion"), "version"),
}
"""Names in tables, in Kafka's schemas and in Wireshark, without `kafka.` -> fields here."""

KEYWORDS: Final = ("and", "or", "not", "in")

PATTERNS: Final = frozenset({Type.NAME, Type.TEXT})
"""Types of fields that can be matched with `~`, and have no order."""


def parse_tree(text: str, package: str = OURS) -> Expression:
    """Parse an expression about messages of a package, by its import name. Raises FilterError."""
    parser = _Parser(text, fields_of(package))
    expression = parser.alternatives(0)
    if parser.next.kind is not Kind.END:
        parser.fail_after_comparison()
    return expression


class _Parser:
    def __init__(self, text: str, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._text = text
        self._tokens = tokens(text)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def alternatives(self, depth: int) -> Expression:
        """Parse parts with `or` between them."""
        parts = [self._conjunction(depth)]
        while self._keyword("or"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def fail_after_comparison(self) -> NoReturn:
        """Report what follows a complete comparison."""
        token = self.next
        if token.kind is Kind.CLOSE:
            self._fail("no opening parenthesis for this one")
        instead = INSTEAD.get(token.text)
        hint = f"; use {instead}" if instead else ""
        self._fail(f"expected `and`, `or` or the end before {token.text!r}{hint}")

    def _conjunction(self, depth: int) -> Expression:
        parts = [self._negation(depth)]
        while self._keyword("and"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep")
        if self._keyword("not"):
            return Not(self._negation(depth + 1))
        if self._take(Kind.OPEN) is None:
            return self._comparison()
        inner = self.alternatives(depth + 1)
        self._closed()
        return inner

    def _comparison(self) -> Expression:
        position, field = self.next.at, self._field()
        if self._keyword("not"):
            if not self._keyword("in"):
                self._fail(f"expected `in` after `{field.name} not`")
            return Not(self._membership(field, position))
        if self._keyword("in"):
            return self._membership(field, position)
        operator = self._operator(field)
        positive = NEGATED.get(operator, operator)
        test = test_of(field, positive, [self._value(operator)], self._text)
        comparison = Comparison(field, test, position)
        return Not(comparison) if operator in NEGATED else comparison

    def _membership(self, field: Field, position: int) -> Comparison:
        if self._take(Kind.OPEN) is None:
            self._fail("expected ( after `in`")
        values = [self._value("(")]
        while self._take(Kind.COMMA) is not None:
            values.append(self._value(","))
        self._closed()
        return Comparison(field, test_of(field, EQUAL, values, self._text), position)

    def _field(self) -> Field:
        token = self.next
        if token.kind is Kind.END:
            empty = len(self._tokens) == 1
            self._fail("empty filter" if empty else "expected a field, but the filter ends")
        names = ", ".join(self._fields)
        if token.kind is not Kind.WORD or token.text.lower() in KEYWORDS:
            self._fail(f"expected a field before {token.text!r}; fields: {names}")
        field = self._fields.get(token.text.lower())
        if field is None:
            named = FIELDS_ELSEWHERE.get(token.text.lower().removeprefix("kafka."))
            hint = (
                suggestion(token.text, {name: name for name in self._fields})
                if named not in self._fields
                else f"; did you mean {named}?"
            )
            self._fail(f"unknown field {token.text!r}; fields: {names}{hint}")
        self._at += 1
        return field

    def _operator(self, field: Field) -> str:
        token = self.next
        if token.kind is not Kind.OPERATOR or token.text not in OPERATORS:
            instead = INSTEAD.get(token.text)
            hint = f"; use {instead}" if instead else ""
            instead_of = f", not {token.text!r}" if token.text else ", but the filter ends"
            expected = ", ".join(OPERATORS)
            self._fail(f"expected one of {expected}, in after {field.name}{instead_of}{hint}")
        if token.text in ORDER and field.type in PATTERNS:
            self._fail(f"{field.name} has no order; use ==, !=, ~, !~ or in")
        if token.text in (GLOB, "!~") and field.type not in PATTERNS:
            self._fail(f"{field.name} is not text; use ==, !=, <, <=, >, >= or in")
        self._at += 1
        return token.text

    def _value(self, after: str) -> Token:
        token = self.next
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            instead_of = f", not {token.text!r}" if token.text else ", but the filter ends"
            self._fail(f"expected a value after {after}{instead_of}")
        self._at += 1
        return token

    def _closed(self) -> None:
        if self._take(Kind.CLOSE) is None:
            if self.next.kind is Kind.END:
                self._fail("missing )")
            self._fail(f"expected ) before {self.next.text!r}")

    def _keyword(self, word: str) -> bool:
        is_next = self.next.is_keyword(word)
        self._at += is_next
        return is_next

    def _take(self, kind: Kind) -> Token | None:
        token = self.next
        if token.kind is not kind:
            return None
        self._at += 1
        return token

    def _fail(self, reason: str) -> NoReturn:
        token = self.next
        raise FilterError(reason, self._text, token.at, token.length)
