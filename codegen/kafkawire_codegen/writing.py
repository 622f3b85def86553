"""Generates the statements that encode a struct, and test whether it is all defaults.

plain    w.write_int16(m.acks)
tagged   if m.cluster_id is not None: ...
"""

from __future__ import annotations

import math
from collections.abc import Collection

from .lines import INDENT, LINE, fitted, indented
from .model import EMPTY_STRUCT, Field, Struct
from .naming import snake
from .spelling import WITH_FLEXIBLE, Naming
from .versions import Versions, condition


class Writing(Naming):
    """The bodies of the encoding functions."""

    locals_of: str = ""
    locals: Collection[str] = ()

    def encode_body(self, s: Struct) -> list[str]:
        return fitted(self.write_plain(s) + self.write_untaggable(s) + self.write_tagged(s), 1)

    def write_one(
        self, s: Struct, f: Field, w: str, nullable: bool, flag: str, tagged: bool
    ) -> list[str]:
        """Statements that write `m.<field>`; None raises if it is not allowed."""
        value = f"m.{f.attribute}"
        if f.is_array or f.is_struct_value:
            null, body = self.write_composite(s, f, w, flag, tagged)
            return self.guarded(s, f, nullable, null, body)
        kind = "bytes" if f.element == "records" else f.element
        if kind not in WITH_FLEXIBLE:
            return [f"{w}.write_{kind}({value})"]
        if nullable:
            return [f"{w}.write_nullable_{kind}({value}, {flag})"]
        if not f.may_be_none:
            return [f"{w}.write_{kind}({value}, {flag})"]
        return self.guarded(s, f, False, "", [f"{w}.write_{kind}({f.local}, {flag})"])

    def spare(self, s: Struct, name: str) -> str:
        """Name a local variable that is not a field's."""
        if self.locals_of != s.name:
            self.locals_of, self.locals = s.name, {f.local for f in s.fields}
        while name in self.locals:
            name += "_"
        return name

    def write_composite(
        self, s: Struct, f: Field, w: str, flag: str, tagged: bool
    ) -> tuple[str, list[str]]:
        """The statements that write null, and a value in the field's local variable."""
        kind = snake(f.element)
        if f.is_struct_value:
            write = "write_bool" if tagged else "write_marker"
            body = [f"_encode_{kind}({f.local}, {w}, version)"]
            if f.nullable:
                body.insert(0, f"{w}.{write}(True)")
            return f"{w}.{write}(False)", body
        null = f"{w}.write_length(-1, {flag})"
        if f.struct is None:
            return null, [f"{w}.write_{f.element}_array({f.local}, {flag})"]
        item = self.spare(s, f"{f.attribute}_item")
        return null, [
            f"{w}.write_count({f.local}, {flag})",
            f"for {item} in {f.local}:",
            f"    _encode_{kind}({item}, {w}, version)",
        ]

    def guarded(self, s: Struct, f: Field, nullable: bool, null: str, body: list[str]) -> list[str]:
        lines = [f"{f.local} = m.{f.attribute}"]
        if not f.may_be_none:
            return lines + body
        if not nullable:
            # only a struct writes its marker inside `body`; a field that is not nullable has none
            body = [
                line
                for line in body
                if "write_marker" not in line and "write_bool(True)" not in line
            ]
            refuse = f'raise null_not_allowed("{s.name}.{f.attribute}")'
            return [*lines, f"if {f.local} is None:", INDENT + refuse, *body]
        return [*lines, f"if {f.local} is None:", INDENT + null, "else:", *indented(body)]

    def write_field(self, s: Struct, f: Field, w: str, where: Versions, tagged: bool) -> list[str]:
        flag = "True" if tagged else self.flag(s, f)
        null = condition(f.nullable, where)
        if null in ("True", "False"):
            return self.write_one(s, f, w, null == "True", flag, tagged)
        return [
            f"if {null}:",
            *indented(self.write_one(s, f, w, True, flag, tagged)),
            "else:",
            *indented(self.write_one(s, f, w, False, flag, tagged)),
        ]

    def differs(self, f: Field, owner: str = "m.") -> str:
        """The test that a field is not at its default; owner "": a local variable."""
        return self.comparison(f, owner)[0]

    def equals(self, f: Field, owner: str = "m.") -> str:
        """The test that a field is at its default."""
        return self.comparison(f, owner)[1]

    def comparison(self, f: Field, owner: str) -> tuple[str, str]:
        """The tests that a field is not at its default, and that it is."""
        value, default = f"{owner}{f.attribute if owner else f.local}", f.default
        if default is None:
            return f"{value} is not None", f"{value} is None"
        if isinstance(default, bool):
            return f"{value} is not {default}", f"{value} is {default}"
        if isinstance(default, float) and math.isnan(default):  # equal only to itself
            return f"{value} == {value}", f"{value} != {value}"
        if default is EMPTY_STRUCT:
            same = f"_is_default_{snake(f.element)}({value})"
            tests = (f"not {same}", same)
        elif default == []:
            tests = (f"len({value}) != 0", f"len({value}) == 0")
        else:
            return f"{value} != {self.default(f)}", f"{value} == {self.default(f)}"
        if not f.may_be_none:
            return tests
        test = f"({value} is None or {tests[0]})"
        return test, f"not {test}"

    def is_set(self, f: Field) -> str:
        """The same with a writer, which rejects anything but a list."""
        value = f"m.{f.attribute}"
        return self.differs(f).replace(f"len({value}) != 0", f"w.has_items({value})")

    def refuse_if_set(self, s: Struct, f: Field) -> list[str]:
        return [f"if {self.is_set(f)}:", f'    raise not_in_version("{s.name}.{f.attribute}")']

    def write_plain(self, s: Struct) -> list[str]:
        lines: list[str] = []
        if self.flexible_name(s) == "flexible":
            lines.append(f"flexible = {s.when(s.flexible)}")
        for f in s.plain_fields:
            body = self.write_field(s, f, "w", f.plain, tagged=False)
            present = s.when(f.plain)
            if present == "True":
                lines += body
                continue
            lines += [f"if {present}:", *indented(body)]
            if not f.ignorable and not f.tagged:
                refuse = self.refuse_if_set(s, f)
                lines += ["el" + refuse[0], *refuse[1:]]
        return lines

    def write_tagged(self, s: Struct) -> list[str]:
        if not s.has_tags:
            return []
        lines: list[str] = []
        late: list[str] = []
        if s.tagged_fields:
            lines.append("tags: Tags = None")
        for f in s.tagged_fields:
            w = self.spare(s, f"{f.attribute}_w")
            body = [
                f"{w} = Writer(lenient=w.lenient)",
                *self.write_field(s, f, w, f.tagged, tagged=True),
                f"tags = add_tag(tags, {f.tag}, {w})",
            ]
            test = s.when(f.tagged)
            set_body = [f"if {self.is_set(f)}:", *indented(body)]
            if test in ("True", self.flexible_name(s)) or condition(f.tagged, s.flexible) == "True":
                lines += set_body
            else:
                lines += [f"if {test}:", *indented(set_body)]
            if not f.ignorable and not f.plain:
                for absent in s.versions.without(f.versions):
                    late += [f"if {s.when(absent)}:", *indented(self.refuse_if_set(s, f))]
        lines.append(f"w.write_tags({'tags' if s.tagged_fields else 'None'}, m.unknown_tags)")
        flexible = self.flexible_name(s)
        if flexible == "True":
            return late + lines
        return [*late, f"if {flexible}:", *indented(lines)]

    def write_untaggable(self, s: Struct) -> list[str]:
        """Raise for unknown tagged fields in versions without tagged fields."""
        flexible = self.flexible_name(s)
        if flexible != "flexible":
            return []
        refuse = f'raise not_in_version("{s.name}.unknown_tags")'
        return ["if not flexible and m.unknown_tags is not None:", INDENT + refuse]

    def default_body(self, s: Struct) -> list[str]:
        """Return whether an instance is all defaults: one line, or one line per operand."""
        tests = [self.equals(f) for f in s.fields]
        if s.has_tags:
            tests.append("m.unknown_tags is None")
        whole = f"{INDENT}return {' and '.join(tests) or 'True'}"
        if len(whole) <= LINE:
            return [whole]
        rest = [f"{INDENT * 2}and {test}" for test in tests[1:]]
        return [f"{INDENT}return (", f"{INDENT * 2}{tests[0]}", *rest, f"{INDENT})"]
