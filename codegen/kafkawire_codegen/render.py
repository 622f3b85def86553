"""Renders models as a Python package.

The same schemas give the same bytes, on any machine, in any locale and order of files.
"""

from __future__ import annotations

from typing import Final

from . import facts, naming
from .headers import header_text
from .model import Message
from .output import File
from .statements.parts import INDENT, LINE
from .statements.reading import Reading
from .statements.spelling import Spelling
from .statements.writing import Writing
from .templating import fill

_ALWAYS: Final = (
    "DEFAULT_LIMITS",
    "Deviations",
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

RUNTIME: Final = "kafkawire"
"""The package that generated modules import their runtime (primitives, errors) from."""


def render(messages: list[Message], package: str, runtime: str = RUNTIME) -> list[File]:
    """Render a package: one module per message, the index, the API keys.

    A package outside the runtime's own also brings the facts of its schemas.
    """
    linked = package.startswith(f"{runtime}.")
    modules = [render_message(m, runtime, linked=linked) for m in messages]
    api_keys = sorted(
        (m.api_key, naming.constant(naming.api_name(m.name)))
        for m in messages
        if m.type == "request" and m.api_key is not None
    )
    index = fill(
        "index.py.j2",
        package=package,
        messages=messages,
        runtime=runtime,
        header_text=header_text,
    )
    return [
        File("__init__.py", index),
        File("api_key.py", fill("api_key.py.j2", package=package, api_keys=api_keys)),
        *([] if linked else [render_facts(messages, package)]),
        *modules,
    ]


def render_facts(messages: list[Message], package: str) -> File:
    """Render what `explain`, `verify` and errors of encoding need of the schemas."""
    rows = [(message.name, repr(facts.write(message))) for message in messages]
    return File("_facts.py", fill("facts.py.j2", package=package, facts=rows))


def render_message(message: Message, runtime: str = RUNTIME, *, linked: bool = False) -> File:
    """Render the module of one message; it imports only the names that it uses.

    linked: whether it is part of the runtime's own package, and compiled together with that.
    """
    spelling = Spelling(message)
    body = fill(
        "message.py.j2",
        message=message,
        base="LinkedMessage" if linked else "Message",
        spelling=spelling,
        reading=Reading(spelling),
        writing=Writing(spelling),
    )
    names = sorted({*_ALWAYS, *spelling.used}, key=_in_import)
    imports = import_lines(f"{runtime}.primitives.generated", names)
    header = fill("header.py.j2", message=message, imports=imports)
    return File(f"{message.module}.py", header + body)


def _in_import(name: str) -> tuple[int, str]:
    """Order imported names: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def import_lines(module: str, names: list[str]) -> list[str]:
    """Write an import on one line, or one name per line if it is too long."""
    whole = f"from {module} import {', '.join(names)}"
    if len(whole) <= LINE:
        return [whole]
    return [f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"]
