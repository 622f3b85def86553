"""Generates the statements that decode a struct.

plain    acks: int = r.read_int16()  # 0+
tagged   if tag == 0: ...
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from .lines import INDENT, fitted, indented
from .model import Field, Struct
from .naming import snake
from .spelling import WITH_FLEXIBLE, Naming
from .versions import Versions, condition

MOST_BRANCHES: Final = 64
"""The most tagged fields in one chain of `elif`."""

NOTE_DEFAULT: Final = "r.note_default_tag()"


class Reading(Naming):
    """The bodies of the decoding functions."""

    @abstractmethod
    def equals(self, f: Field, owner: str) -> str:
        """The test that a field is at its default."""

    def decode_body(self, s: Struct) -> list[str]:
        return fitted(self.read_plain(s) + self.read_tagged(s), 1)

    def read_expression(self, f: Field, nullable: bool, flag: str, tagged: bool) -> str:
        one = f"_decode_{snake(f.element)}(r, version)"
        if f.is_struct_value:
            if not nullable:
                return one
            return f"{one} if r.{'read_tagged_marker' if tagged else 'read_marker'}() else None"
        if f.is_array:
            if f.struct is not None:
                loop = "[" + one + " for _ in r.slots({})]"
            else:
                more = f", {flag}" if f.element in WITH_FLEXIBLE else ""
                loop = f"r.read_{f.element}_items({{}}{more})"
            if nullable:
                test = f"(n := r.read_nullable_array_length({flag})) < 0"
                return f"None if {test} else {loop.format('n')}"
            return loop.format(f"r.read_array_length({flag})")
        kind = "bytes" if f.element == "records" else f.element
        if kind not in WITH_FLEXIBLE:
            return f"r.read_{kind}()"
        return f"r.read_{'nullable_' if nullable else ''}{kind}({flag})"

    def read_value(self, s: Struct, f: Field, where: Versions, tagged: bool) -> list[str]:
        """Expressions for a field read at versions `where`; two where nullability depends on the
        version.
        """
        flag = "True" if tagged else self.flag(s, f)
        null = condition(f.nullable, where)
        if null in ("True", "False"):
            return [self.read_expression(f, null == "True", flag, tagged)]
        return [
            self.read_expression(f, True, flag, tagged),
            null,
            self.read_expression(f, False, flag, tagged),
        ]

    def assignment(self, target: str, value: list[str], comment: str) -> list[str]:
        if len(value) == 1:
            return [f"{target} = {value[0]}{comment}"]
        yes, test, no = value
        name = target.split(":")[0]
        declared = [] if name == target else [target]
        return [
            *declared,
            f"if {test}:{comment}",
            f"    {name} = {yes}",
            "else:",
            f"    {name} = {no}",
        ]

    def read_plain(self, s: Struct) -> list[str]:
        lines: list[str] = []
        if self.flexible_name(s) == "flexible":
            lines.append(f"flexible = {s.when(s.flexible)}")
        for f in s.plain_fields:
            comment = f"  # {self.versions(f)}"
            typed = f"{f.local}: {self.annotation(f)}"
            value = self.read_value(s, f, f.plain, tagged=False)
            present = s.when(f.plain)
            if present == "True":
                lines += self.assignment(typed, value, comment)
            else:
                lines += [f"{typed} = {self.default(f)}", f"if {present}:"]
                lines += indented(self.assignment(f.local, value, comment))
        return lines

    def read_tagged(self, s: Struct) -> list[str]:
        if not s.has_tags:
            return []
        flexible = self.flexible_name(s)
        if not s.tagged_fields:
            if flexible == "True":
                return ["unknown_tags = r.read_tags()"]
            return [f"unknown_tags: Tags = r.read_tags() if {flexible} else None"]
        lines = [
            f"{f.local}: {self.annotation(f)} = {self.default(f)}"
            for f in s.tagged_fields
            if not f.plain
        ]
        lines.append("unknown_tags: Tags = None")
        body = [
            "tag: i64 = -1",
            "for _ in range(r.read_uvarint()):",
            "    tag = r.read_tag(tag)",
            "    size = r.read_uvarint()",
            "    start = r.pos",
            *indented(self.tag_branches(s, s.tagged_fields)),
        ]
        if flexible == "True":
            return lines + body
        return [*lines, f"if {flexible}:", *indented(body)]

    def tag_branches(self, s: Struct, fields: list[Field]) -> list[str]:
        """Statements that read the value of `tag`; many are halved, as Python nests each `elif`."""
        if len(fields) > MOST_BRANCHES:
            half = len(fields) // 2
            return [
                f"if tag < {fields[half].tag}:",
                *indented(self.tag_branches(s, fields[:half])),
                "else:",
                *indented(self.tag_branches(s, fields[half:])),
            ]
        lines: list[str] = []
        word = "if"
        keep = "unknown_tags = r.keep_{}tag(unknown_tags, tag, size)"
        for f in fields:
            lines.append(f"{word} tag == {f.tag}:")
            value = self.read_value(s, f, f.tagged, tagged=True)
            body = [
                *self.assignment(f.local, value, f"  # {self.versions(f)}"),
                "r.end_tag(start, size)",
                *self.note_default(f),
            ]
            test = condition(f.tagged, s.flexible)
            if test != "True":
                body = [
                    f"if {test}:",
                    *indented(body),
                    "else:",
                    INDENT + keep.format("misplaced_"),
                ]
            lines += indented(body)
            word = "elif"
        return [*lines, "else:", INDENT + keep.format("")]

    def note_default(self, f: Field) -> list[str]:
        """Statements that count a tagged field with its default value."""
        test = self.equals(f, "")
        composite = f"not ({f.local} is None or "
        if not test.startswith(composite):
            return [f"if {test}:", INDENT + NOTE_DEFAULT]
        differs = test.removeprefix(composite).removesuffix(")")
        inner = differs.replace("!=", "==").removeprefix("not ")
        lines = [f"if {inner}:", INDENT + NOTE_DEFAULT]
        return [f"if {f.local} is not None:", *indented(lines)]
