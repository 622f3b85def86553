"""Makes the statements that encode a struct, and the test that it is all defaults.

plain    w.write_int16(m.acks)
tagged   if m.cluster_id is not None: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model import Field, Struct
from ..naming import snake
from ..versions import VersionCondition, Versions
from .parts import (
    INDENT,
    LINE,
    AnyOf,
    Assign,
    Block,
    Call,
    If,
    Statement,
    otherwise,
    rendered,
)
from .spelling import WITH_FLEXIBLE, Spelling


@dataclass(frozen=True, slots=True)
class Target:
    """Where a field is written to: a writer, whether lengths are compact, and a tag's value."""

    writer: str
    compact: str
    tagged: bool


@dataclass(frozen=True, slots=True)
class Writing:
    """The bodies of the encoding functions."""

    spelling: Spelling

    def body(self, s: Struct) -> list[str]:
        return rendered([*self.plain(s), *self.untaggable(s), *self.tagged(s)], INDENT)

    def field(self, s: Struct, f: Field, w: str, where: Versions, tagged: bool) -> list[Statement]:
        """Write a field at versions `where`; nullability may depend on the version."""
        to = Target(w, "True" if tagged else self.spelling.compact(s, f), tagged)
        null = VersionCondition(f.nullable, where)
        if not null.depends:
            return self.one(s, f, to, null.always)
        return [If(null, self.one(s, f, to, True)), otherwise(self.one(s, f, to, False))]

    def one(self, s: Struct, f: Field, to: Target, nullable: bool) -> list[Statement]:
        """Write `m.<field>`; None raises if it is not allowed."""
        value = f"m.{f.attribute}"
        if f.is_struct_value:
            return self.guarded(s, f, self.null(f, to, nullable), self.struct(f, to, nullable))
        if f.is_array:
            return self.guarded(s, f, self.null(f, to, nullable), self.array(s, f, to))
        kind = "bytes" if f.element == "records" else f.element
        if kind not in WITH_FLEXIBLE:
            return [Call(f"{to.writer}.write_{kind}", value)]
        if nullable:
            return [Call(f"{to.writer}.write_nullable_{kind}", f"{value}, {to.compact}")]
        if not f.may_be_none:
            return [Call(f"{to.writer}.write_{kind}", f"{value}, {to.compact}")]
        written = Call(f"{to.writer}.write_{kind}", f"{f.local}, {to.compact}")
        return self.guarded(s, f, None, [written])

    def null(self, f: Field, to: Target, nullable: bool) -> Statement | None:
        """Write null; None where it is not allowed."""
        if not nullable:
            return None
        if f.is_array:
            return Call(f"{to.writer}.write_length", f"-1, {to.compact}")
        return self.marker(to, "False")

    def marker(self, to: Target, value: str) -> Statement:
        """Write whether a nullable struct follows."""
        return Call(f"{to.writer}.{'write_bool' if to.tagged else 'write_marker'}", value)

    def struct(self, f: Field, to: Target, nullable: bool) -> list[Statement]:
        """Write the struct in the field's local variable."""
        written = Call(f"_encode_{snake(f.element)}", f"{f.local}, {to.writer}, version")
        return [self.marker(to, "True"), written] if nullable else [written]

    def array(self, s: Struct, f: Field, to: Target) -> list[Statement]:
        """Write the array in the field's local variable."""
        if f.struct is None:
            call = f"{to.writer}.write_{f.element}_array"
            return [Call(call, f"{f.local}, {to.compact}")]
        item = self.spelling.spare(s, f"{f.attribute}_item")
        written = Call(f"_encode_{snake(f.element)}", f"{item}, {to.writer}, version")
        return [
            Call(f"{to.writer}.write_count", f"{f.local}, {to.compact}"),
            Block(f"for {item} in {f.local}", [written]),
        ]

    def guarded(
        self, s: Struct, f: Field, null: Statement | None, body: Sequence[Statement]
    ) -> list[Statement]:
        """Write null or a value; without a statement for null, None raises."""
        local = Assign(f.local, f"m.{f.attribute}")
        if not f.may_be_none:
            return [local, *body]
        test = f"{f.local} is None"
        if null is None:
            path = f'"{s.name}.{f.attribute}"'
            refuse = Call(f"raise {self.spelling.use('null_not_allowed')}", path)
            return [local, If(test, [refuse]), *body]
        return [local, If(test, [null]), otherwise(body)]

    def is_set(self, f: Field) -> AnyOf | str:
        """The test that a field is not at its default; the writer rejects anything but a list."""
        value = f"m.{f.attribute}"
        return self.spelling.default_test(f, value, f"w.has_items({value})").different

    def refuse(self, s: Struct, name: str) -> Statement:
        """Raise for a value that the version does not have."""
        return Call(f"raise {self.spelling.use('not_in_version')}", f'"{s.name}.{name}"')

    def refuse_if_set(self, s: Struct, f: Field, word: str = "if") -> Statement:
        return If(self.is_set(f), [self.refuse(s, f.attribute)], word=word)

    def plain(self, s: Struct) -> list[Statement]:
        """Write the fields before the tagged ones."""
        statements: list[Statement] = [*self.spelling.declared_flexible(s)]
        for f in s.plain_fields:
            body = self.field(s, f, "w", f.plain, tagged=False)
            present = s.when(f.plain)
            if present.always:
                statements += body
                continue
            statements.append(If(present, body))
            if not f.ignorable and not f.tagged:
                statements.append(self.refuse_if_set(s, f, "elif"))
        return statements

    def tagged(self, s: Struct) -> list[Statement]:
        """Write the tagged fields that are set, and the unknown ones."""
        if not s.has_tags:
            return []
        statements: list[Statement] = []
        late: list[Statement] = []
        if s.tagged_fields:
            statements.append(Assign(f"tags: {self.spelling.use('Tags')}", "None"))
        for f in s.tagged_fields:
            statements.append(self.tagged_field(s, f))
            if not f.ignorable and not f.plain:
                absent = [s.when(run) for run in s.versions.without(f.versions)]
                late += [If(when, [self.refuse_if_set(s, f)]) for when in absent]
        statements.append(
            Call("w.write_tags", f"{'tags' if s.tagged_fields else 'None'}, m.unknown_tags")
        )
        if s.when(s.flexible).always:
            return late + statements
        return [*late, If(self.spelling.flexible(s), statements)]

    def tagged_field(self, s: Struct, f: Field) -> Statement:
        """Write one tagged field if it is set; it is inside the test of flexible versions."""
        w = self.spelling.spare(s, f"{f.attribute}_w")
        body = [
            Assign(w, "Writer(lenient=w.lenient)"),
            *self.field(s, f, w, f.tagged, tagged=True),
            Assign("tags", f"{self.spelling.use('add_tag')}(tags, {f.tag}, {w})"),
        ]
        written = If(self.is_set(f), body)
        if s.when(f.tagged).always or VersionCondition(f.tagged, s.flexible).always:
            return written
        return If(s.when(f.tagged), [written])

    def untaggable(self, s: Struct) -> list[Statement]:
        """Raise for unknown tagged fields in versions without tagged fields."""
        if not s.when(s.flexible).depends:
            return []
        test = "not flexible and m.unknown_tags is not None"
        return [If(test, [self.refuse(s, "unknown_tags")])]

    def is_default(self, s: Struct) -> list[str]:
        """Return whether an instance is all defaults: one line, or one line per operand."""
        tests = [self.spelling.default_test(f, f"m.{f.attribute}").equal for f in s.fields]
        if s.has_tags:
            tests.append("m.unknown_tags is None")
        whole = f"{INDENT}return {' and '.join(tests) or 'True'}"
        if len(whole) <= LINE:
            return [whole]
        rest = [f"{INDENT * 2}and {test}" for test in tests[1:]]
        return [f"{INDENT}return (", f"{INDENT * 2}{tests[0]}", *rest, f"{INDENT})"]
