"""Makes the statements that decode a struct.

plain    acks: int = r.read_int16()  # 0+
tagged   if tag == 0: ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..model import Field, Struct
from ..naming import snake
from ..versions import VersionCondition, Versions
from .parts import (
    INDENT,
    Assign,
    Block,
    Choice,
    Expression,
    If,
    Items,
    Line,
    Statement,
    otherwise,
    rendered,
)
from .spelling import WITH_FLEXIBLE, Spelling

MOST_BRANCHES: Final = 64
"""The most tagged fields in one chain of `elif`."""

NOTE_DEFAULT: Final = Line("r.note_default_tag()")


@dataclass(frozen=True, slots=True)
class Reading:
    """The bodies of the decoding functions."""

    spelling: Spelling

    def body(self, s: Struct) -> list[str]:
        return rendered([*self.plain(s), *self.tagged(s)], INDENT)

    def value(self, f: Field, nullable: bool, compact: str, tagged: bool) -> Expression:
        """The expression that reads one field."""
        one = f"_decode_{snake(f.element)}(r, version)"
        if f.is_struct_value:
            marker = "r.read_tagged_marker()" if tagged else "r.read_marker()"
            return Choice(one, marker, "None") if nullable else one
        if not f.is_array:
            kind = "bytes" if f.element == "records" else f.element
            if kind not in WITH_FLEXIBLE:
                return f"r.read_{kind}()"
            return f"r.read_{'nullable_' if nullable else ''}{kind}({compact})"
        if nullable:
            test = f"(n := r.read_nullable_array_length({compact})) < 0"
            return Choice("None", test, str(self.items(f, one, "n", compact)))
        return self.items(f, one, f"r.read_array_length({compact})", compact)

    def items(self, f: Field, one: str, length: str, compact: str) -> Expression:
        """The expression that reads the items of an array."""
        if f.struct is not None:
            return Items(one, f"r.slots({length})")
        more = f", {compact}" if f.element in WITH_FLEXIBLE else ""
        return f"r.read_{f.element}_items({length}{more})"

    def assignment(
        self, s: Struct, f: Field, where: Versions, *, tagged: bool = False, declare: bool = False
    ) -> list[Statement]:
        """Read a field at versions `where`; nullability may depend on the version."""
        compact = "True" if tagged else self.spelling.compact(s, f)
        declared = f"{f.local}: {self.spelling.annotation(f)}"
        comment = self.spelling.comment(f)
        null = VersionCondition(f.nullable, where)
        if not null.depends:
            target = declared if declare else f.local
            return [Assign(target, self.value(f, null.always, compact, tagged), comment)]
        yes, no = (
            Assign(f.local, self.value(f, nullable, compact, tagged)) for nullable in (True, False)
        )
        return [*([Line(declared)] if declare else []), If(null, [yes], comment), otherwise([no])]

    def plain(self, s: Struct) -> list[Statement]:
        """Read the fields before the tagged ones."""
        statements: list[Statement] = [*self.spelling.declared_flexible(s)]
        for f in s.plain_fields:
            present = s.when(f.plain)
            if present.always:
                statements += self.assignment(s, f, f.plain, declare=True)
            else:
                statements += [self.declaration(f), If(present, self.assignment(s, f, f.plain))]
        return statements

    def declaration(self, f: Field) -> Statement:
        """Declare a field's variable, at its default."""
        return Assign(f"{f.local}: {self.spelling.annotation(f)}", self.spelling.default(f))

    def tagged(self, s: Struct) -> list[Statement]:
        """Read the tagged fields."""
        if not s.has_tags:
            return []
        flexible = s.when(s.flexible)
        if not s.tagged_fields:
            if flexible.always:
                return [Assign("unknown_tags", "r.read_tags()")]
            value = Choice("r.read_tags()", self.spelling.flexible(s), "None")
            return [Assign(f"unknown_tags: {self.spelling.use('Tags')}", value)]
        declared = [self.declaration(f) for f in s.tagged_fields if not f.plain]
        declared.append(Assign(f"unknown_tags: {self.spelling.use('Tags')}", "None"))
        one = [
            Line("tag = r.read_tag(tag)"),
            Line("size = r.read_uvarint()"),
            Line("start = r.pos"),
            *self.branches(s, s.tagged_fields),
        ]
        every: list[Statement] = [
            Line("tag: i64 = -1"),
            Block("for _ in range(r.read_tag_count())", one),
        ]
        if flexible.always:
            return [*declared, *every]
        return [*declared, If(self.spelling.flexible(s), every)]

    def branches(self, s: Struct, fields: list[Field]) -> list[Statement]:
        """Read the value of `tag`; many are halved, as Python nests each `elif`."""
        if len(fields) > MOST_BRANCHES:
            half = len(fields) // 2
            return [
                If(f"tag < {fields[half].tag}", self.branches(s, fields[:half])),
                otherwise(self.branches(s, fields[half:])),
            ]
        statements: list[Statement] = []
        for f in fields:
            body = [
                *self.assignment(s, f, f.tagged, tagged=True),
                Line("r.end_tag(start, size)"),
                self.note_default(f),
            ]
            is_tagged = VersionCondition(f.tagged, s.flexible)
            if not is_tagged.always:
                body = [If(is_tagged, body), otherwise([_keep("misplaced_tag")])]
            statements.append(If(f"tag == {f.tag}", body, word="elif" if statements else "if"))
        return [*statements, otherwise([_keep("tag")])]

    def note_default(self, f: Field) -> Statement:
        """Count a tagged field with its default value."""
        test = self.spelling.default_test(f, f.local)
        noted = If(test.same, [NOTE_DEFAULT])
        return If(f"{f.local} is not None", [noted]) if test.null else noted


def _keep(kind: str) -> Statement:
    """Keep the value of a tag that the version does not have."""
    return Assign("unknown_tags", f"r.keep_{kind}(unknown_tags, tag, size)")
