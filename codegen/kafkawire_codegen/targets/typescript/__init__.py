"""Writes an npm package: typed encoders and decoders of every message and version for Node.

    names      identifiers that TypeScript takes          text       literals and comments
    spelling   types, defaults, sizes, conditions         parts      blocks of statements
    reading    statements that decode                     writing    statements that encode

The hand-written runtime is in templates/typescript/runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files as resources
from typing import Final

from ...model import Message
from ...output import File
from ...templating import fill
from .. import InvalidName, Source
from . import names
from .reading import Reading
from .spelling import Spelling
from .text import literal
from .writing import Writing

NAME: Final = "kafka-messages"
RUNTIME: Final = ("errors", "frames", "reader", "text", "types", "writer")
"""The modules of the runtime."""
_NPM_NAME: Final = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*\Z")
LONGEST_NAME: Final = 214
"""Of npm."""


def files(source: Source) -> Iterator[File]:
    """Give the files of a package; InvalidName for a name that npm does not take."""
    if not _NPM_NAME.match(source.name) or len(source.name) > LONGEST_NAME:
        raise InvalidName(f"invalid npm package name {source.name!r}")
    of_package = {
        "name": source.name,
        "messages": source.messages,
        "module": names.module,
    }
    for path in ("package.json", "tsconfig.json", "README.md"):
        yield File(path, fill(f"typescript/{path}.j2", **of_package))
    rows = [_Row(message) for message in source.messages]
    keys = sorted({(m.api_key, m.api) for m in source.messages if _has_api(m)})
    for name in ("index", "registry", "api-keys"):
        yield File(f"src/{name}.ts", fill(f"typescript/{name}.ts.j2", rows=rows, keys=keys))
    runtime = resources("kafkawire_codegen") / "templates" / "typescript" / "runtime"
    for name in RUNTIME:
        text = (runtime / f"{name}.ts").read_text("utf-8")
        yield File(f"src/runtime/{name}.ts", text)
    for message in source.messages:
        yield File(f"src/messages/{names.module(message)}.ts", module(message))


def _has_api(message: Message) -> bool:
    return message.type == "request" and message.api_key is not None


class _Row:
    """A message as the registry has it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.name = literal(message.name)
        self.interface = names.interface(message.name)
        self.module = names.module(message)
        self.type = literal(message.type)
        self.api_key = "null" if message.api_key is None else str(message.api_key)
        runs = (f"[{run.low}, {run.high}, {header}]" for run, header in message.headers)
        self.headers = f"[{', '.join(runs)}]"


def module(message: Message) -> str:
    """Write the module of a message."""
    spelling = Spelling(message)
    return fill(
        "typescript/message.ts.j2",
        message=message,
        row=_Row(message),
        root=names.interface(message.name),
        spelling=spelling,
        imports=spelling.imports(),
        names=spelling.names,
        interface=names.interface,
        prop=names.prop,
        reading=Reading(spelling),
        writing=Writing(spelling),
    )
