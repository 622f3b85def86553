"""Makes the statements that decode a struct.

at = "acks";
const acks = r.int16();
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Field, Struct
from ...versions import VersionCondition, Versions
from .names import prop
from .parts import Lines, assign, block, choice, if_else, indented
from .spelling import SIZED, Spelling
from .text import condition, literal


def method(kind: str, nullable: bool, compact: bool) -> str:
    """Name the method that reads or writes a length or what has one: `nullableCompactString`."""
    name = f"{'nullable' * nullable}{'Compact' * compact}{kind}"
    return name[:1].lower() + name[1:]


@dataclass(frozen=True, slots=True)
class Reading:
    """The bodies of the decoding functions."""

    spelling: Spelling

    def body(self, s: Struct) -> Lines:
        """Read all fields, and give the struct; a failure gets the name of the field."""
        if not s.fields and not s.has_tags:
            return ["return {};"]
        inner = [*self.plain(s), *self.tagged(s), *self.result(s)]
        index = "i" if any(f.is_array for f in s.fields) else "-1"
        first = next((prop(f) for f in s.plain_fields), "unknownTags")
        return [
            *self.spelling.declared_flexible(s),
            f"let at = {literal(first)};",
            *(["let i = -1;", "let n = 0;"] if index == "i" else []),
            "try {",
            *indented(inner),
            "} catch (failure) {",
            *indented([f"throw failed(failure, at, {index});"]),
            "}",
        ]

    def result(self, s: Struct) -> Lines:
        parts = []
        for f in s.fields:
            name, local = prop(f), self.spelling.names.local(f)
            parts.append(name if name == local else f"{name}: {local}")
        parts += ["unknownTags"] if s.has_tags else []
        return ["return {", *(f"  {part}," for part in parts), "};"]

    # -- expressions

    def one(self, f: Field, nullable: str, compact: str) -> str:
        """The expression that reads one value or element."""
        if f.struct is not None:
            return f"{self.spelling.names.decode(f.struct)}(r, version)"
        if f.element not in SIZED:
            return f"r.{f.element}()"
        kind = "String" if f.element == "string" else "Bytes"
        return self.sized(kind, nullable, compact, "")

    def sized(self, kind: str, nullable: str, compact: str, argument: str) -> str:
        """The choice of the method that reads a length, or what has one."""
        by_compact = (
            choice(
                compact,
                f"r.{method(kind, null, compact=True)}({argument})",
                f"r.{method(kind, null, compact=False)}({argument})",
            )
            for null in (True, False)
        )
        return choice(nullable, *by_compact)

    # -- statements

    def assignment(
        self, s: Struct, f: Field, where: Versions, *, tagged: bool = False, declare: bool = False
    ) -> Lines:
        """Read a field in versions `where`; declare: its variable is declared here."""
        compact = "true" if tagged else self.spelling.compact(s, f)
        nullable = self.spelling.nullable(f, where)
        if f.is_array:
            return self.array(f, nullable, compact, declare=declare)
        local = self.spelling.names.local(f)
        typed = f": {self.spelling.type(f)}" if f.may_be_none else ""
        target = f"const {local}{typed}" if declare else local
        value = self.one(f, nullable, compact)
        if f.is_struct_value and nullable != "false":
            marker = "r.taggedMarker()" if tagged else "r.marker()"
            value = choice(nullable, choice(marker, value, "null"), value)
        return assign(target, value)

    def array(self, f: Field, nullable: str, compact: str, *, declare: bool) -> Lines:
        """Read an array: its count, then each element."""
        spelling = self.spelling
        local = spelling.names.local(f)
        count = self.sized("Count", nullable, compact, str(spelling.element_least(f)))
        if nullable == "false":
            target = f"const {local}: {spelling.element(f)}[]" if declare else local
            return [*assign("n", count), *self.items(f, target, compact)]
        declared = [f"let {local}: {spelling.type(f)} = null;"] if declare else []
        no = [] if declare else [f"{local} = null;"]
        items = self.items(f, local, compact)
        return [*declared, *assign("n", count), *if_else("n >= 0", items, no)]

    def items(self, f: Field, target: str, compact: str) -> Lines:
        """Read `n` elements. Those of int32, such as replicas, are mostly few, for a method."""
        if f.element == "int32":
            return [f"{target} = r.int32s(n);"]
        local = self.spelling.names.local(f)
        read = assign(f"{local}[i]", self.one(f, "false", compact))
        allocation = f"{target} = new Array<{self.spelling.element(f)}>(n);"
        return [allocation, *block("for (i = 0; i < n; i++)", read), "i = -1;"]

    def declaration(self, f: Field) -> str:
        """Declare a field's variable, with its default."""
        local = self.spelling.names.local(f)
        return f"let {local}: {self.spelling.type(f)} = {self.spelling.default(f)};"

    def plain(self, s: Struct) -> Lines:
        """Read the fields before the tagged ones."""
        lines: Lines = []
        for f in s.plain_fields:
            if lines:
                lines.append(f"at = {literal(prop(f))};")
            present = s.when(f.plain)
            if present.always and not f.tagged:
                lines += self.assignment(s, f, f.plain, declare=True)
                continue
            lines.append(self.declaration(f))
            lines += if_else(condition(present), self.assignment(s, f, f.plain))
        return lines

    def tagged(self, s: Struct) -> Lines:
        """Read the tagged fields."""
        if not s.has_tags:
            return []
        flexible = self.spelling.flexible(s)
        position = ['at = "unknownTags";'] if s.plain_fields else []
        if not s.tagged_fields:
            return [*position, *assign("const unknownTags", choice(flexible, "r.tags()", "null"))]
        one = [
            "const tag = r.uvarint();",
            "const size = r.uvarint();",
            "const start = r.pos;",
            *block("switch (tag)", self.cases(s)),
            'at = "unknownTags";',
        ]
        every = block("for (let tags = r.tagCount(); tags > 0; tags--)", one)
        declared = [self.declaration(f) for f in s.tagged_fields if not f.plain]
        return [
            *position,
            *declared,
            "let unknownTags: UnknownTag[] | null = null;",
            *if_else(flexible, every),
        ]

    def cases(self, s: Struct) -> Lines:
        """Read the value of `tag`."""
        kept = block("default:", ["unknownTags = r.keepTag(unknownTags, tag, size);"])
        return [*(line for f in s.tagged_fields for line in self.case(s, f)), *kept]

    def case(self, s: Struct, f: Field) -> Lines:
        """Read the value of one known tag."""
        body = [
            f"at = {literal(prop(f))};",
            *self.assignment(s, f, f.tagged, tagged=True),
            "r.endTag(start, size);",
        ]
        is_tagged = condition(VersionCondition(f.tagged, s.flexible))
        body = if_else(is_tagged, body, ["throw r.misplacedTag(tag);"])
        return block(f"case {f.tag}:", [*body, "break;"])
