"""Model -> the statements of generated code, one list of lines for each place a template leaves
open.

Law: a field is one line where it can be, in wire order, its versions behind it; a version is tested
only where the struct's own range does not decide.

    read_plain   acks = r.read_int16()  # 0+
    read_tagged  if tag == 0: ...
    write_plain  w.write_int16(m.acks)
    write_tagged if m.cluster_id is not None: ...
"""

from __future__ import annotations

from textwrap import wrap

from .model import EMPTY_STRUCT, Field, Message, Struct, literal, shown
from .naming import snake
from .versions import Versions, condition

INDENT = "    "
WITH_FLEXIBLE = ("string", "bytes", "records")


LINE = 100
QUOTES = '"' * 3


def indented(lines: list[str]) -> list[str]:
    return [INDENT + line for line in lines]


def fitted(lines: list[str], depth: int) -> list[str]:
    """Indent lines by `depth` levels and break those that do not fit, as a formatter would."""
    made: list[str] = []
    for line in indented(lines) if depth == 1 else indented(indented(lines)):
        made += [line] if len(line) <= LINE else _broken(line)
    return made


def _broken(line: str) -> list[str]:
    """Break one long line inside its outermost brackets, or put a long right-hand side into
    parentheses.
    """
    code, mark, comment = line.partition("  # ")
    indent = code[: len(code) - len(code.lstrip())]
    target, equals, value = code.partition(" = ")
    if not equals and code.endswith(")"):  # a call
        head, _, arguments = code.partition("(")
        return [f"{head}(", f"{indent}{INDENT}{arguments[:-1]}", f"{indent}){mark}{comment}"]
    if not equals:  # a test: if (a or b):
        left, _, right = code.removesuffix("):").partition(" or ")
        first = left.replace("(", "", 1).lstrip().removeprefix("if ")
        return [f"{indent}if (", f"{indent}    {first}", f"{indent}    or {right}", f"{indent}):"]
    if value.startswith("[_decode"):
        parts, around = _split(value[1:-1], indent, (" for _ in ",)), "[]"
    else:
        parts, around = _split(value, indent, (" if ", " else ")), "()"
    return [f"{target} = {around[0]}", *parts, f"{indent}{around[1]}{mark}{comment}"]


def _split(inner: str, indent: str, words: tuple[str, ...]) -> list[str]:
    """Put what stands inside brackets on one line, or on one line for each of the words."""
    whole = f"{indent}{INDENT}{inner}"
    if len(whole) <= LINE:
        return [whole]
    parts = [inner]
    for word in words:
        before, _, after = parts.pop().partition(word)
        parts += [before, word.lstrip() + after]
    return [f"{indent}{INDENT}{part}" for part in parts]


class Statements:
    """Renders the statements of one message."""

    def __init__(self, message: Message) -> None:
        self.newest = message.versions.high

    # -- names, types, defaults

    def docstring(self, about: str) -> list[str]:
        """Write a schema's words as a docstring: whatever they hold, they stay words."""
        text = about.replace("\\", "\\\\").replace('"', "'")
        lines = wrap(text, LINE - len(INDENT) - 2 * len(QUOTES)) or [""]
        if len(lines) == 1:
            return [f"{INDENT}{QUOTES}{lines[0]}{QUOTES}"]
        return [f"{INDENT}{QUOTES}{lines[0]}", *indented(lines[1:]), f"{INDENT}{QUOTES}"]

    def versions(self, f: Field) -> str:
        return shown(f.versions, self.newest)

    def annotation(self, f: Field) -> str:
        element = f.struct.name if f.struct is not None else f.wire.annotation if f.wire else ""
        whole = f"list[{element}]" if f.is_array else element
        return f"{whole} | None" if f.may_be_none else whole

    def default(self, f: Field) -> str:
        """The default as an expression that makes a fresh value."""
        if f.default is EMPTY_STRUCT:
            return f"{f.element}()"
        if f.wire is not None and f.wire.name == "uuid" and not f.is_array:
            return "ZERO_UUID"
        return literal(f.default)

    def sentinel(self, f: Field) -> str:
        """The constant that a parameter defaults to where its own default must be made afresh."""
        return "EMPTY" if f.is_array else f"_NO_{snake(f.element).upper()}"

    def needs_sentinel(self, f: Field) -> bool:
        return f.default is EMPTY_STRUCT or f.default == []

    def parameter(self, f: Field) -> str:
        return self.sentinel(f) if self.needs_sentinel(f) else self.default(f)

    def stored(self, f: Field) -> str:
        if not self.needs_sentinel(f):
            return f.attribute
        return f"{self.default(f)} if {f.attribute} is {self.sentinel(f)} else {f.attribute}"

    def struct_sentinels(self, message: Message) -> set[str]:
        """Names of the structs that some parameter defaults to."""
        return {f.element for s in message.structs for f in s.fields if f.default is EMPTY_STRUCT}

    def row(self, f: Field) -> list[str]:
        """The row of `__fields__` for one field."""
        tag = -1 if f.tag is None else f.tag
        names = [f'"{f.attribute}"', f'"{f.json_name}"', f'"{f.type}"']
        values = [*names, str(f.versions.low), str(f.versions.high), str(tag)]
        whole = f"{INDENT * 2}FieldRow({', '.join(values)}),"
        if len(whole) <= LINE:
            return [whole]
        return [f"{INDENT * 2}FieldRow(", *(f"{INDENT * 3}{v}," for v in values), f"{INDENT * 2}),"]

    def store(self, f: Field) -> list[str]:
        return fitted([f"self.{f.attribute}: {self.annotation(f)} = {self.stored(f)}"], 2)

    # -- reading

    def signature(self, name: str, parameters: str, result: str) -> list[str]:
        whole = f"def {name}({parameters}) -> {result}:"
        if len(whole) <= LINE:
            return [whole]
        return [f"def {name}(", f"{INDENT}{parameters}", f") -> {result}:"]

    def decode_body(self, s: Struct) -> list[str]:
        return fitted(self.read_plain(s) + self.read_tagged(s), 1)

    def flag(self, s: Struct, f: Field) -> str:
        """The expression that says whether the field's length is compact."""
        if f.flexible == s.flexible or f.flexible & f.versions == s.flexible & f.versions:
            return self.flexible_name(s)
        return condition(f.flexible, f.versions)

    def flexible_name(self, s: Struct) -> str:
        test = s.when(s.flexible)
        return test if test in ("True", "False") else "flexible"

    def read_expression(self, f: Field, nullable: bool, flag: str, tagged: bool) -> str:
        one = f"_decode_{snake(f.element)}(r, version)"
        if f.is_struct_value:
            if not nullable:
                return one
            return f"{one} if r.{'read_bool' if tagged else 'read_marker'}() else None"
        if f.is_array:
            if f.struct is not None:
                loop = "[" + one + " for _ in range({})]"
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
            "for _ in range(r.read_uvarint()):",
            "    tag = r.read_uvarint()",
            "    size = r.read_uvarint()",
            "    start = r.pos",
            *indented(self.tag_branches(s)),
        ]
        if flexible == "True":
            return lines + body
        return [*lines, f"if {flexible}:", *indented(body)]

    def tag_branches(self, s: Struct) -> list[str]:
        lines: list[str] = []
        word = "if"
        keep = "unknown_tags = r.keep_{}tag(unknown_tags, tag, size)"
        for f in s.tagged_fields:
            lines.append(f"{word} tag == {f.tag}:")
            value = self.read_value(s, f, f.tagged, tagged=True)
            body = [
                *self.assignment(f.local, value, f"  # {self.versions(f)}"),
                "r.end_tag(start, size)",
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

    # -- writing

    def encode_body(self, s: Struct) -> list[str]:
        return fitted(self.write_plain(s) + self.write_untaggable(s) + self.write_tagged(s), 1)

    def write_one(
        self, s: Struct, f: Field, w: str, nullable: bool, flag: str, tagged: bool
    ) -> list[str]:
        """Statements that write `m.<field>`; a None that is not allowed raises."""
        value = f"m.{f.attribute}"
        if f.is_array or f.is_struct_value:
            null, body = self.write_composite(f, w, flag, tagged)
            return self.guarded(s, f, nullable, null, body)
        kind = "bytes" if f.element == "records" else f.element
        if kind not in WITH_FLEXIBLE:
            return [f"{w}.write_{kind}({value})"]
        if nullable:
            return [f"{w}.write_nullable_{kind}({value}, {flag})"]
        if not f.may_be_none:
            return [f"{w}.write_{kind}({value}, {flag})"]
        return self.guarded(s, f, False, "", [f"{w}.write_{kind}({f.local}, {flag})"])

    def write_composite(self, f: Field, w: str, flag: str, tagged: bool) -> tuple[str, list[str]]:
        """What writes null, and what writes a value held in the field's local variable."""
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
        item = f"{f.attribute}_item"
        return null, [
            f"{w}.write_length(len({f.local}), {flag})",
            f"for {item} in {f.local}:",
            f"    _encode_{kind}({item}, {w}, version)",
        ]

    def guarded(self, s: Struct, f: Field, nullable: bool, null: str, body: list[str]) -> list[str]:
        lines = [f"{f.local} = m.{f.attribute}"]
        if not f.may_be_none:
            return lines + body
        if not nullable:
            # only a struct writes its marker inside `body`; where null is not allowed there is none
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

    def differs(self, f: Field) -> str:
        """The test that a field is not at its default."""
        value = f"m.{f.attribute}"
        if f.default is None:
            return f"{value} is not None"
        or_none = f"{value} is None or " if f.may_be_none else ""
        if f.default is EMPTY_STRUCT:
            test = f"{or_none}not _is_default_{snake(f.element)}({value})"
        elif f.default == []:
            test = f"{or_none}len({value}) != 0"
        elif f.default is True:
            return f"not {value}"
        elif f.default is False:
            return value
        else:
            return f"{value} != {self.default(f)}"
        return f"({test})" if or_none else test

    def refuse_if_set(self, s: Struct, f: Field) -> list[str]:
        return [f"if {self.differs(f)}:", f'    raise not_in_version("{s.name}.{f.attribute}")']

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
            body = [
                f"{f.attribute}_w = Writer(lenient=w.lenient)",
                *self.write_field(s, f, f"{f.attribute}_w", f.tagged, tagged=True),
                f"tags = add_tag(tags, {f.tag}, {f.attribute}_w)",
            ]
            absent = s.versions - f.tagged if f.tagged.high == s.versions.high else s.versions
            test = s.when(f.tagged)
            set_body = [f"if {self.differs(f)}:", *indented(body)]
            if test in ("True", self.flexible_name(s)) or condition(f.tagged, s.flexible) == "True":
                lines += set_body
            else:
                lines += [f"if {test}:", *indented(set_body)]
            if not f.ignorable and not f.plain and absent:
                refuse = self.refuse_if_set(s, f)
                late += [f"if {condition(absent, s.versions)}:", *indented(refuse)]
        lines.append(f"w.write_tags({'tags' if s.tagged_fields else 'None'}, m.unknown_tags)")
        flexible = self.flexible_name(s)
        if flexible == "True":
            return late + lines
        return [*late, f"if {flexible}:", *indented(lines)]

    def write_untaggable(self, s: Struct) -> list[str]:
        """Refuse unknown tagged fields in versions that cannot carry them."""
        flexible = self.flexible_name(s)
        if flexible != "flexible":
            return []
        refuse = f'raise not_in_version("{s.name}.unknown_tags")'
        return ["if not flexible and m.unknown_tags is not None:", INDENT + refuse]

    def default_body(self, s: Struct) -> list[str]:
        """Return whether an instance is all defaults: one line, or an operand a line."""
        tests = [self.equals(f) for f in s.fields]
        if s.has_tags:
            tests.append("m.unknown_tags is None")
        whole = f"{INDENT}return {' and '.join(tests) or 'True'}"
        if len(whole) <= LINE:
            return [whole]
        rest = [f"{INDENT * 2}and {test}" for test in tests[1:]]
        return [f"{INDENT}return (", f"{INDENT * 2}{tests[0]}", *rest, f"{INDENT})"]

    def equals(self, f: Field) -> str:
        test = self.differs(f)
        if " is not None" in test:
            return test.replace(" is not None", " is None")
        if " != " in test and not test.startswith("("):
            return test.replace(" != ", " == ")
        return test.removeprefix("not ") if test.startswith("not ") else f"not {test}"
