"""Makes the statements that encode a struct, and the test that it is all defaults.

at = "acks";
w.int16(m.acks);
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Field, Struct
from ...versions import VersionCondition, Versions
from .names import prop
from .parts import Lines, assign, block, choice, if_else, indented
from .reading import method
from .spelling import SIZED, Spelling
from .text import condition, literal


@dataclass(frozen=True, slots=True)
class Writing:
    """The bodies of the encoding functions."""

    spelling: Spelling

    def body(self, s: Struct) -> Lines:
        """Write all fields; a failure gets the name of the field."""
        test = block('if (m === null || typeof m !== "object")', ["throw w.notAnObject(m);"])
        if not s.fields and not s.has_tags:
            return test
        inner = [*self.plain(s), *self.tagged(s)]
        index = "i" if any(f.is_array for f in s.fields) else "-1"
        return [
            *test,
            *self.spelling.declared_flexible(s),
            'let at = "";',
            *(["let i = -1;", "let n = 0;"] if index == "i" else []),
            "try {",
            *indented(inner),
            "} catch (failure) {",
            *indented([f"throw failed(failure, at, {index});"]),
            "}",
        ]

    # -- one field

    def field(self, s: Struct, f: Field, where: Versions, *, tagged: bool) -> Lines:
        """Write a field in versions `where`; null raises where it is not allowed."""
        compact = "true" if tagged else self.spelling.compact(s, f)
        nullable = self.spelling.nullable(f, where)
        if f.is_array:
            return self.array(f, nullable, compact)
        value = f"m.{prop(f)}"
        if f.struct is not None:
            return self.struct(f, f.struct, nullable, tagged=tagged)
        if f.element not in SIZED:
            return [f"w.{f.element}({value});"]
        kind = "String" if f.element == "string" else "Bytes"
        by_compact = (self.by_compact(kind, null, compact, value) for null in (True, False))
        return if_else(nullable, *by_compact)

    def by_compact(self, kind: str, nullable: bool, compact: str, value: str) -> Lines:
        """Write what has a length."""
        return if_else(
            compact,
            [f"w.{method(kind, nullable, compact=True)}({value});"],
            [f"w.{method(kind, nullable, compact=False)}({value});"],
        )

    def struct(self, f: Field, child: Struct, nullable: str, *, tagged: bool) -> Lines:
        written = f"{self.spelling.names.encode(child)}(w, m.{prop(f)}, version);"
        if nullable == "false":
            return [written]
        marker = "w.taggedMarker" if tagged else "w.marker"
        with_marker = if_else(
            f"m.{prop(f)} === null", [f"{marker}(false);"], [f"{marker}(true);", written]
        )
        return if_else(nullable, with_marker, [written])

    def array(self, f: Field, nullable: str, compact: str) -> Lines:
        """Write an array: its count, then each element."""
        local = self.spelling.names.local(f)
        count = choice(compact, f"w.compactCount({local})", f"w.count({local})")
        loop = [
            *assign("n", count),
            *block("for (i = 0; i < n; i++)", self.element(f, f"{local}[i]", compact)),
            "i = -1;",
        ]
        declared = f"const {local} = m.{prop(f)};"
        if not f.may_be_none:
            return [declared, *loop]
        refused = ["throw w.notNullable();"]
        null = if_else(compact, ["w.nullCompactCount();"], ["w.nullCount();"])
        return [
            declared,
            *if_else(f"{local} === null", if_else(nullable, null, refused), loop),
        ]

    def element(self, f: Field, value: str, compact: str) -> Lines:
        if f.struct is not None:
            return [f"{self.spelling.names.encode(f.struct)}(w, {value}, version);"]
        if f.element not in SIZED:
            return [f"w.{f.element}({value});"]
        kind = "String" if f.element == "string" else "Bytes"
        return self.by_compact(kind, False, compact, value)

    # -- all fields

    def at(self, f: Field) -> str:
        return f"at = {literal(prop(f))};"

    def refuse_if_set(self, f: Field) -> Lines:
        """Raise for a value that the version does not have."""
        value = f"m.{prop(f)}"
        test = self.spelling.differs(f, value)
        if ".length" in test or "isDefault" in test:  # undefined has neither
            test = f"{value} !== undefined && {test}"
        return block(f"if ({test})", [f"w.refuse({value}, version);"])

    def plain(self, s: Struct) -> Lines:
        """Write the fields before the tagged ones."""
        lines: Lines = []
        for f in s.plain_fields:
            lines.append(self.at(f))
            body = self.field(s, f, f.plain, tagged=False)
            refuse = [] if f.ignorable or f.tagged else self.refuse_if_set(f)
            lines += if_else(self.spelling.when(s, f.plain), body, refuse)
        return lines

    def tagged(self, s: Struct) -> Lines:
        """Write the tagged fields that are set, and the unknown ones."""
        if not s.has_tags:
            return []
        flexible = self.spelling.flexible(s)
        position = 'at = "unknownTags";'
        refuse = [] if flexible == "true" else [position, "w.refuseTags(m.unknownTags, version);"]
        if not s.tagged_fields:
            if flexible == "true":
                return [position, "w.tags(m.unknownTags);"]
            return [position, *if_else(flexible, ["w.tags(m.unknownTags);"], refuse[1:])]
        every = [
            "const block = w.openBlock();",
            "let known = 0;",
            *(line for f in s.tagged_fields for line in self.tagged_field(s, f)),
            position,
            "w.closeBlock(block, known, m.unknownTags);",
        ]
        return [*self.late(s), *if_else(flexible, every, refuse)]

    def late(self, s: Struct) -> Lines:
        """Raise for fields that are tagged wherever they are, in versions without them."""
        lines: Lines = []
        for f in s.tagged_fields:
            if not f.ignorable and not f.plain:
                for run in s.versions.without(f.versions):
                    body = [self.at(f), *self.refuse_if_set(f)]
                    lines += if_else(self.spelling.when(s, run), body)
        return lines

    def tagged_field(self, s: Struct, f: Field) -> Lines:
        """Write one tagged field if it is set; it is inside the test of flexible versions."""
        body = [
            f"const place = w.openTag({f.tag});",
            *self.field(s, f, f.tagged, tagged=True),
            "w.closeTag(place);",
            "known++;",
        ]
        written = block(f"if ({self.spelling.differs(f, f'm.{prop(f)}')})", body)
        test = condition(VersionCondition(f.tagged, s.flexible))
        return [self.at(f), *if_else(test, written)]

    def is_default(self, s: Struct) -> Lines:
        """Return whether a struct is all defaults."""
        tests = [self.spelling.differs(f, f"m.{prop(f)}") for f in s.fields]
        tests += ["m.unknownTags !== null"] if s.has_tags else []
        if not tests:
            return ["return true;"]
        first, *others = tests
        return [
            "return !(",
            f"  {first}",
            *(f"  || {test}" for test in others),
            ");",
        ]
