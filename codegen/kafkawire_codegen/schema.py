"""Reads schema files; reports every error with its place.

Law: a schema that is returned has passed every rule; otherwise all its errors are raised together.

    file --source--> Node --form--> WrittenMessage --rules--> MessageSchema
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from . import form, rules, source
from .dialect import MESSAGE_TYPES, FieldSchema, MessageSchema, StructSchema
from .form import WrittenMessage
from .source import Place, SchemaError, SchemaErrors

__all__ = [
    "MESSAGE_TYPES",
    "RELEASES",
    "FieldSchema",
    "MessageSchema",
    "Place",
    "SchemaError",
    "SchemaErrors",
    "StructSchema",
    "check_directory",
    "check_file",
    "load_directory",
    "load_file",
    "schema_files",
]

RELEASES: Final = "releases.json"
"""The only JSON file of a schema directory that is not a schema: the versions of each release."""


def load_file(path: Path) -> MessageSchema:
    """Read one schema.

    SchemaErrors has every error; OSError if the file cannot be read.
    """
    message, errors = check_file(path)
    _refuse(errors)
    assert message is not None
    return message.schema


def load_directory(path: Path) -> list[MessageSchema]:
    """Read every schema of a directory, sorted by name.

    SchemaErrors has every error of every file; OSError if it is not a directory.
    """
    messages, errors = check_directory(path)
    _refuse(errors)
    return sorted((m.schema for m in messages), key=lambda schema: schema.name)


def schema_files(path: Path) -> list[Path]:
    """List the schema files of a directory, sorted by name; OSError if it is not a directory."""
    return sorted(p for p in path.iterdir() if p.suffix == ".json" and p.name != RELEASES)


def check_file(path: Path) -> tuple[WrittenMessage | None, list[SchemaError]]:
    """Read one schema and its errors, in text order; None if it is not an object."""
    message, errors = _read(path)
    if message is not None:
        errors += rules.check_message(message)
    return message, in_order(errors)


def check_directory(path: Path) -> tuple[list[WrittenMessage], list[SchemaError]]:
    """Read every schema of a directory, with the errors of each and of all together."""
    messages: list[WrittenMessage] = []
    errors: list[SchemaError] = []
    for file in schema_files(path):
        message, found = check_file(file)
        errors += found
        if message is not None:
            messages.append(message)
    return messages, in_order(errors + rules.check_together(messages))


def in_order(errors: Iterable[SchemaError]) -> list[SchemaError]:
    """Sort errors by file, line and column."""
    return sorted(errors, key=lambda e: (e.file, e.line, e.column, e.rule))


def _refuse(errors: list[SchemaError]) -> None:
    grave = tuple(error for error in errors if error.rule not in rules.ADVICE)
    if grave:
        raise SchemaErrors(grave)


def _read(path: Path) -> tuple[WrittenMessage | None, list[SchemaError]]:
    file = str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        node, stray = source.parse(text, file)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
        return None, [SchemaError(file, 1, 1, "", reason, "syntax")]
    except SchemaErrors as error:
        return None, list(error.errors)
    message, errors = form.read(node)
    if stray is not None:
        path_ = message.path if message else ""
        errors.append(
            SchemaError.at(stray, path_, "stray-bracket", "the document ended before this")
        )
    return message, errors
