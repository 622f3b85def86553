"""Renders models as source text; the only module that imports jinja2.

Law: the same schemas give the same bytes, on any machine, in any locale and order of files.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jinja2

from . import naming
from .model import Message
from .statements.parts import INDENT, LINE
from .statements.reading import Reading
from .statements.spelling import Spelling
from .statements.writing import Writing

_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("kafkawire_codegen"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)

_ALWAYS: Final = (
    "DEFAULT_LIMITS",
    "Bent",
    "FieldRow",
    "Limits",
    "Reader",
    "Writer",
    "decode_failure",
    "unsupported",
)
"""The names that every module imports from the runtime, all from one module: compiled code takes
256 bytes for each module that it imports from. The others are those that `Spelling.used` has.
"""

MARK: Final = "Generated: do not edit."
"""In the first line of every generated file: only such files are replaced or removed."""

RUNTIME: Final = "kafkawire"
"""The package that generated modules import their runtime (primitives, errors) from."""


@dataclass(frozen=True, slots=True)
class Module:
    """One generated file: its name inside the package, and its text."""

    file: str
    text: str


def render(messages: list[Message], package: str, runtime: str = RUNTIME) -> list[Module]:
    """Render a package: one module per message, the registry, the API keys."""
    linked = package.startswith(f"{runtime}.")
    made = [render_message(m, runtime, linked=linked) for m in messages]
    api_keys = sorted(
        (m.api_key, naming.constant(naming.api_name(m.name)))
        for m in messages
        if m.type == "request" and m.api_key is not None
    )
    return [
        _module("__init__.py", "index.py.j2", package=package, messages=messages, runtime=runtime),
        _module("api_key.py", "api_key.py.j2", package=package, api_keys=api_keys),
        *made,
    ]


def render_message(message: Message, runtime: str = RUNTIME, *, linked: bool = False) -> Module:
    """Render the module of one message; it imports only the names that it uses.

    linked: whether it is part of the runtime's own package, and compiled together with that.
    """
    spelling = Spelling(message)
    body = _text(
        "message.py.j2",
        message=message,
        base="LinkedMessage" if linked else "Message",
        spelling=spelling,
        reading=Reading(spelling),
        writing=Writing(spelling),
    )
    names = sorted({*_ALWAYS, *spelling.used}, key=_in_import)
    imports = import_lines(f"{runtime}.primitives.generated", names)
    header = _text("header.py.j2", message=message, imports=imports)
    return Module(f"{message.module}.py", header + body)


def _in_import(name: str) -> tuple[int, str]:
    """Order imported names: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def import_lines(module: str, names: list[str]) -> list[str]:
    """Write an import on one line, or one name per line if it is too long."""
    whole = f"from {module} import {', '.join(names)}"
    if len(whole) <= LINE:
        return [whole]
    return [f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"]


def _module(file: str, template: str, **values: object) -> Module:
    return Module(file, _text(template, **values))


def _text(template: str, **values: object) -> str:
    return _ENVIRONMENT.get_template(template).render(**values)


def write(modules: list[Module], out: Path) -> int:
    """Update a folder, and return the number of changed files.

    An unchanged file keeps its modification time, for incremental builds; a module that is no
    longer generated is removed. FileExistsError, before any change, if a file that was not
    generated would be overwritten.
    """
    out.mkdir(parents=True, exist_ok=True)
    wanted = {m.file: m.text for m in modules}
    present = {path.name: path.read_bytes() for path in out.glob("*.py")}
    for name in sorted(present.keys() & wanted.keys()):
        if present[name] and not _is_generated(present[name]):
            reason = "was not generated, and would be overwritten"
            raise FileExistsError(errno.EEXIST, reason, str(out / name))
    changed = 0
    for name in present.keys() - wanted.keys():
        if _is_generated(present[name]):
            (out / name).unlink()
            changed += 1
    for name, text in wanted.items():
        data = text.encode("utf-8")
        if present.get(name) != data:
            (out / name).write_bytes(data)
            changed += 1
    return changed


def _is_generated(data: bytes) -> bool:
    return MARK.encode("ascii") in data.partition(b"\n")[0]
