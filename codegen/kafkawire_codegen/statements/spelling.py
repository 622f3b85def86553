"""Spells the names, types, defaults, signatures and docstrings of generated code."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from ..model import EMPTY_STRUCT, Field, Message, Struct
from ..naming import snake
from ..versions import VersionCondition, Versions
from .parts import INDENT, LINE, QUOTES, AnyOf, Assign, Choice

ROW_AROUND: Final = 2 * len(INDENT) + len('"\\n"')
"""The text around a field's row."""

WITH_FLEXIBLE: Final = ("string", "bytes", "records")
"""Primitives with a compact length in flexible versions."""

PLAIN: Final = re.compile(r"[ -!#-\[\]-~]{0,40}\Z")
"""Text that is written in a line of code unchanged: short, printable, no quotes or backslashes."""

PIECE: Final = 60
"""Characters of a long constant on one line."""


@dataclass(frozen=True, slots=True)
class DefaultTest:
    """Whether a value is the default of its field.

    same, differs: the tests that it is, and that it is not. null: whether it may be None beside a
    default that is not: then `same` and `differs` hold for other values only.
    """

    value: str
    same: str
    differs: str
    null: bool = False

    @property
    def equal(self) -> str:
        """The test that it is the default, for any value."""
        return f"not {self.different}" if self.null else self.same

    @property
    def different(self) -> AnyOf | str:
        """The test that it is not the default, for any value."""
        return AnyOf((f"{self.value} is None", self.differs)) if self.null else self.differs


class Spelling:
    """Names, types and defaults of one message's generated code."""

    def __init__(self, message: Message) -> None:
        self.message = message.name
        self.newest = message.versions.high
        self.flexible_versions = message.flexible
        self.used: set[str] = set()
        """The names of the runtime that were used so far."""
        self._locals = {s.name: {f.local for f in s.fields} for s in message.structs}
        fields = [f for s in message.structs for f in s.fields]
        # the structs that are defaults of parameters
        self.struct_sentinels = {f.element for f in fields if f.default is EMPTY_STRUCT}
        named = (f for f in fields if _needs_name(f.default))
        self.constants = {f: f"_DEFAULT_{number}" for number, f in enumerate(named)}

    def use(self, name: str) -> str:
        """Spell a name that the runtime exports; the module imports it."""
        self.used.add(name)
        return name

    def constant_lines(self) -> list[str]:
        """Write the defaults that are constants of the module.

        So no other line depends on a schema's text.
        """
        return [line for f, name in self.constants.items() for line in constant(name, f.default)]

    def docstring(self, s: Struct) -> list[str]:
        """Write a struct's purpose, then each field with its versions and its own purpose."""
        lines = _wrapped(s.about or f"Part of {self.message}.", "")
        if s.fields:
            lines.append("")
        for f in s.fields:
            about = f": {f.about}" if f.about else ""
            lines += _wrapped(f"{f.attribute} ({self.versions(f)}){about}", INDENT)
        if len(lines) == 1:
            return [f"{INDENT}{QUOTES}{lines[0]}{QUOTES}"]
        inner = [line and INDENT + line for line in lines[1:]]
        return [f"{INDENT}{QUOTES}{lines[0]}", *inner, f"{INDENT}{QUOTES}"]

    def versions(self, f: Field) -> str:
        """The versions of a field; an end at the message's newest version is an open one."""
        return str(f.versions.open_from(self.newest))

    def comment(self, f: Field) -> str:
        return f"  # {self.versions(f)}"

    def annotation(self, f: Field) -> str:
        element = f.struct.name if f.struct is not None else f.wire.annotation if f.wire else ""
        whole = f"list[{element}]" if f.is_array else element
        return f"{whole} | None" if f.may_be_none else whole

    def default(self, f: Field) -> str:
        """The default as an expression that makes a fresh value."""
        if f.default is EMPTY_STRUCT:
            return f"{f.element}()"
        if f in self.constants:
            return self.constants[f]
        if f.wire is not None and f.wire.name == "uuid" and not f.is_array:
            return self.use("ZERO_UUID")
        return literal(f.default)

    def sentinel(self, f: Field) -> str:
        """The placeholder that a parameter defaults to if its default must be created anew."""
        return self.use("EMPTY") if f.is_array else f"_NO_{snake(f.element).upper()}"

    def needs_sentinel(self, f: Field) -> bool:
        return f.default is EMPTY_STRUCT or f.default == []

    def parameter(self, f: Field) -> str:
        return self.sentinel(f) if self.needs_sentinel(f) else self.default(f)

    def store(self, f: Field) -> list[str]:
        """The statement of the constructor that stores a field."""
        name = f.attribute
        value: Choice | str = name
        if self.needs_sentinel(f):
            value = Choice(self.default(f), f"{name} is {self.sentinel(f)}", name)
        return Assign(f"self.{name}: {self.annotation(f)}", value).lines(INDENT * 2)

    def row(self, f: Field) -> list[str]:
        """The row of `__fields__` for one field, as `field_rows` reads it: a line, or two."""
        names = f"{f.attribute} {f.json_name} "
        words = [f.type, str(f.versions.low), str(f.versions.high)]
        words += [] if f.tag is None else [str(f.tag)]
        words += [] if f.entity_type is None else [f.entity_type]
        words += _run("?", f.nullable) if f.nullable else []
        words += [] if f.tag is None or f.tagged == f.versions else _run("#", f.tagged)
        compact = f.flexible & f.versions
        words += [] if compact == self.flexible_versions & f.versions else _run("~", compact)
        rest = " ".join(words)
        if len(names) + len(rest) + ROW_AROUND <= LINE:
            return [f'"{names}{rest}\\n"']
        return [f'"{names}"', f'"{rest}\\n"']

    def signature(self, name: str, parameters: str, result: str) -> list[str]:
        whole = f"def {name}({parameters}) -> {result}:"
        if len(whole) <= LINE:
            return [whole]
        return [f"def {name}(", f"{INDENT}{parameters}", f") -> {result}:"]

    def spare(self, s: Struct, name: str) -> str:
        """Name a local variable that is not a field's."""
        taken: Collection[str] = self._locals[s.name]
        while name in taken:
            name += "_"
        return name

    def flexible(self, s: Struct) -> str:
        """The expression that says whether a struct's version is flexible."""
        condition = s.when(s.flexible)
        return "flexible" if condition.depends else str(condition)

    def declared_flexible(self, s: Struct) -> list[Assign]:
        """Declare the variable `flexible`, if the struct's versions differ."""
        condition = s.when(s.flexible)
        return [Assign("flexible", str(condition))] if condition.depends else []

    def compact(self, s: Struct, f: Field) -> str:
        """The expression that says whether a field's length is compact."""
        if f.flexible == s.flexible or f.flexible & f.versions == s.flexible & f.versions:
            return self.flexible(s)
        return str(VersionCondition(f.flexible, f.versions))

    def default_test(self, f: Field, value: str, has_items: str | None = None) -> DefaultTest:
        """The tests of a field's value; has_items: the one that a list is not empty."""
        default = f.default
        if default is None:
            return DefaultTest(value, f"{value} is None", f"{value} is not None")
        if isinstance(default, bool):
            return DefaultTest(value, f"{value} is {default}", f"{value} is not {default}")
        if isinstance(default, float) and math.isnan(default):  # equal only to itself
            return DefaultTest(value, f"{value} != {value}", f"{value} == {value}")
        if default is EMPTY_STRUCT:
            same = f"_is_default_{snake(f.element)}({value})"
            return DefaultTest(value, same, f"not {same}", f.may_be_none)
        if default == []:
            differs = has_items or f"len({value}) != 0"
            return DefaultTest(value, f"len({value}) == 0", differs, f.may_be_none)
        spelled = self.default(f)
        return DefaultTest(value, f"{value} == {spelled}", f"{value} != {spelled}")


def _run(mark: str, versions: Versions) -> list[str]:
    """Write versions as a word of a field's row; none is a run that ends before it begins."""
    return [f"{mark}{versions.low}-{versions.high}" if versions else f"{mark}1-0"]


def _wrapped(text: str, hanging: str) -> list[str]:
    """Break a schema's text into lines of a docstring, with any content escaped."""
    width = LINE - len(INDENT) - 2 * len(QUOTES)
    text = text.replace('"', "'")
    lines = wrap(text, width, subsequent_indent=hanging, break_on_hyphens=False)
    return [literal(line)[1:-1] for line in lines or [""]]


def _needs_name(default: object) -> bool:
    """Whether a default is a constant of the module instead of an expression in place."""
    match default:
        case str():
            return PLAIN.match(default) is None
        case float():
            return not math.isfinite(default)
        case bytes():
            return any(default)
        case _:
            return False


def constant(name: str, value: object) -> list[str]:
    """Write a constant, a long text in several pieces."""
    whole = f"{name}: Final = {literal(value)}"
    if not isinstance(value, str) or len(whole) <= LINE:
        return [whole]
    starts = range(0, len(value), PIECE)
    pieces = [INDENT + literal(value[start : start + PIECE]) for start in starts]
    return [f"{name}: Final = (", *pieces, ")"]


def literal(value: object) -> str:
    """Write a scalar default, with any content, as a Python expression."""
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _escaped(character: str) -> str:
    """Write one character of a string between double quotes, in ASCII."""
    if character in '"\\':
        return f"\\{character}"
    return character if " " <= character <= "~" else ascii(character)[1:-1]
