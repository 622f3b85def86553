"""Writes fields, defaults and signatures of generated code."""

from __future__ import annotations

import math
import re
from textwrap import wrap
from typing import Final

from .lines import INDENT, LINE, QUOTES, fitted, indented
from .model import EMPTY_STRUCT, Field, Message, Struct, literal, shown
from .naming import snake
from .versions import condition

ROW_AROUND: Final = 2 * len(INDENT) + len('"\\n"')
"""The text around a field's row."""

WITH_FLEXIBLE: Final = ("string", "bytes", "records")
"""Primitives with a compact length in flexible versions."""


PLAIN: Final = re.compile(r"[ -!#-\[\]-~]{0,40}\Z")
"""Text that is written in a line of code unchanged: short, printable, no quotes or backslashes."""

PIECE: Final = 60
"""Characters of a long constant on one line."""


class Naming:
    """Names, types and defaults of one message's generated code."""

    def __init__(self, message: Message) -> None:
        self.message = message.name
        self.newest = message.versions.high
        fields = [f for s in message.structs for f in s.fields]
        # the structs that are defaults of parameters
        self.struct_sentinels = {f.element for f in fields if f.default is EMPTY_STRUCT}
        named = (f for f in fields if _needs_name(f.default))
        self.constants = {f: f"_DEFAULT_{number}" for number, f in enumerate(named)}

    def constant_lines(self) -> list[str]:
        """Write the defaults that are constants of the module, so that no other line depends on a
        schema's text.
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
        return shown(f.versions, self.newest)

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
            return "ZERO_UUID"
        return literal(f.default)

    def sentinel(self, f: Field) -> str:
        """The placeholder that a parameter defaults to if its default must be created anew."""
        return "EMPTY" if f.is_array else f"_NO_{snake(f.element).upper()}"

    def needs_sentinel(self, f: Field) -> bool:
        return f.default is EMPTY_STRUCT or f.default == []

    def parameter(self, f: Field) -> str:
        return self.sentinel(f) if self.needs_sentinel(f) else self.default(f)

    def stored(self, f: Field) -> str:
        if not self.needs_sentinel(f):
            return f.attribute
        return f"{self.default(f)} if {f.attribute} is {self.sentinel(f)} else {f.attribute}"

    def row(self, f: Field) -> list[str]:
        """The row of `__fields__` for one field, as `field_rows` reads it; in two lines if it is
        long.
        """
        names = f"{f.attribute} {f.json_name} "
        words = [f.type, str(f.versions.low), str(f.versions.high)]
        words += [] if f.tag is None else [str(f.tag)]
        words += [] if f.entity_type is None else [f.entity_type]
        rest = " ".join(words)
        if len(names) + len(rest) + ROW_AROUND <= LINE:
            return [f'"{names}{rest}\\n"']
        return [f'"{names}"', f'"{rest}\\n"']

    def store(self, f: Field) -> list[str]:
        return fitted([f"self.{f.attribute}: {self.annotation(f)} = {self.stored(f)}"], 2)

    def signature(self, name: str, parameters: str, result: str) -> list[str]:
        whole = f"def {name}({parameters}) -> {result}:"
        if len(whole) <= LINE:
            return [whole]
        return [f"def {name}(", f"{INDENT}{parameters}", f") -> {result}:"]

    def flag(self, s: Struct, f: Field) -> str:
        """The expression that says whether the field's length is compact."""
        if f.flexible == s.flexible or f.flexible & f.versions == s.flexible & f.versions:
            return self.flexible_name(s)
        return condition(f.flexible, f.versions)

    def flexible_name(self, s: Struct) -> str:
        test = s.when(s.flexible)
        return test if test in ("True", "False") else "flexible"


def _wrapped(text: str, hanging: str) -> list[str]:
    """Break a schema's text into lines of a docstring, with any content escaped."""
    width = LINE - len(INDENT) - 2 * len(QUOTES)
    lines = wrap(text.replace('"', "'"), width, subsequent_indent=hanging) or [""]
    return [literal(line)[1:-1] for line in lines]


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
    pieces = [value[start : start + PIECE] for start in range(0, len(value), PIECE)]
    return [f"{name}: Final = (", *indented([literal(piece) for piece in pieces]), ")"]
