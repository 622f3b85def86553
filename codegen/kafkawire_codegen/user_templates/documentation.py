"""Writes the reference part of docs/templates.md: every variable, attribute and filter.

python -m kafkawire_codegen.user_templates.documentation
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Final

from .exposed import MODEL, NAMES, SHARED, VARIABLES
from .filters import FILTERS

BEGIN: Final = "<!-- begin of python -m kafkawire_codegen.user_templates.documentation -->"
END: Final = "<!-- end of python -m kafkawire_codegen.user_templates.documentation -->"


def page() -> str:
    """Write the tables."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from _table("Variables", "", "name | type", _variables())
    for cls in MODEL:
        yield from _table(cls.__name__, _about(cls), "attribute | type", _attributes(cls))
    for of, names in SHARED.items():
        rows = [(f"`{_name(of, name)}`", _type(of, name), text) for name, text in names.items()]
        yield from _table(of.__name__, _about(of), "attribute | type", rows)
    yield from _table("Filters", "", "filter | arguments", _filters())


def _table(title: str, about: str, head: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    yield from ("", f"### {title}", "")
    if about:
        yield from (about, "")
    yield f"| {head} | description |"
    yield "| --- | --- | --- |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _variables() -> list[tuple[str, str, str]]:
    return [(f"`{name}`", f"`{type_}`", text) for name, (type_, text) in VARIABLES.items()]


def _attributes(cls: type) -> list[tuple[str, str, str]]:
    """List the attributes that a class defines; those of the class that it extends are there."""
    names = [name for name in vars(cls) if name in NAMES[cls]]
    return [(f"`{_name(cls, name)}`", _type(cls, name), _doc(vars(cls)[name])) for name in names]


def _filters() -> list[tuple[str, str, str]]:
    return [
        (f"`{name}`", _arguments(function, 1) or "", _doc(function))
        for name, function in FILTERS.items()
    ]


def _about(cls: type) -> str:
    first, _, _ = _doc(cls).partition(". ")
    return f"{first.rstrip('.')}."


def _doc(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").split())


def _name(cls: type, name: str) -> str:
    """Name an attribute, a method with its arguments."""
    value = inspect.getattr_static(cls, name)
    if not inspect.isfunction(value):
        return name
    arguments = [each for each in inspect.signature(value).parameters if each != "self"]
    return f"{name}({', '.join(arguments)})"


def _type(cls: type, name: str) -> str:
    value = inspect.getattr_static(cls, name)
    if isinstance(value, property):
        value = value.fget
    if inspect.isfunction(value):
        return f"`{inspect.signature(value).return_annotation}`"
    annotation = next(c.__annotations__[name] for c in cls.__mro__ if name in c.__annotations__)
    return f"`{annotation}`"


def _arguments(function: Callable[..., str], skipped: int) -> str:
    """Write the arguments of a filter beside the value that it is applied to."""
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    return ", ".join(
        f"`{each.name}`" if each.default is each.empty else f"`{each.name}={each.default!r}`"
        for each in parameters
    )


if __name__ == "__main__":
    sys.stdout.write(page())
