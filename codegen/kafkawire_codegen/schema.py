"""Reads schema files; reports every error with its place.

A schema that is returned has passed every rule; otherwise all its errors are raised together.
Of several sources, a message of a later one replaces that of the same name; what is replaced is not
checked, and within one source a message is defined once.

    source --files--> SchemaFile --source--> Node --form--> WrittenMessage --rules--> MessageSchema
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import files, form, rules, source
from .dialect import MESSAGE_TYPES, FieldSchema, MessageSchema, StructSchema
from .files import RELEASES, SchemaFile, Sources, as_sources
from .form import WrittenMessage
from .rules.rule import Directory
from .source import Location, SchemaError, SchemaErrors

__all__ = [
    "MESSAGE_TYPES",
    "RELEASES",
    "FieldSchema",
    "MessageSchema",
    "Location",
    "SchemaError",
    "SchemaErrors",
    "StructSchema",
    "check_file",
    "check_sources",
    "load_directory",
    "load_file",
    "load_sources",
    "schema_files",
]


def load_file(path: Path) -> MessageSchema:
    """Read one schema.

    SchemaErrors has every error; OSError if the file cannot be read.
    """
    message, errors = check_file(path)
    _refuse(errors)
    assert message is not None
    return message.schema


def load_directory(path: Path) -> list[MessageSchema]:
    """Read every schema of one source, such as a directory; see `load_sources`."""
    return load_sources(path)


def load_sources(sources: Sources) -> list[MessageSchema]:
    """Read every schema of a directory, an archive or a file, or of several, sorted by name.

    SchemaErrors has every error of every file; OSError if a source cannot be read.
    """
    messages, errors = check_sources(sources)
    _refuse(errors)
    return sorted((m.schema for m in messages), key=lambda schema: schema.name)


def schema_files(path: Path) -> list[Path]:
    """List the schema files of a directory, sorted by name; OSError if it is not a directory."""
    return sorted(p for p in path.iterdir() if p.suffix == ".json" and p.name != RELEASES)


def check_file(path: Path) -> tuple[WrittenMessage | None, list[SchemaError]]:
    """Read one schema and its errors, in text order; None if it is not an object."""
    read = _check(SchemaFile(str(path), path.read_bytes()))
    return read.message, in_order(read.errors)


def check_text(file: SchemaFile) -> list[SchemaError]:
    """Check the text of one schema; return its errors without advice."""
    return [error for error in in_order(_check(file).errors) if error.rule not in rules.ADVICE]


def check_sources(sources: Sources) -> tuple[list[WrittenMessage], list[SchemaError]]:
    """Read every schema of sources, with the errors of each and of all together."""
    kept: list[_Read] = []
    for path in as_sources(sources):
        added = [_check(file) for file in files.read(path).schemas]
        replaced = {read.name for read in added}
        kept = [read for read in kept if not read.name or read.name not in replaced] + added
    messages = [read.message for read in kept if read.message is not None]
    unread = frozenset(Location(read.file, 1, 1).stem for read in kept if not read.is_named)
    errors = [error for read in kept for error in read.errors]
    return messages, in_order(errors + rules.check_together(Directory(messages, unread)))


def in_order(errors: Iterable[SchemaError]) -> list[SchemaError]:
    """Sort errors by file, line and column."""
    return sorted(errors, key=lambda e: (e.file, e.line, e.column, e.rule))


def _refuse(errors: list[SchemaError]) -> None:
    grave = tuple(error for error in errors if error.rule not in rules.ADVICE)
    if grave:
        raise SchemaErrors(grave)


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that was read, and its errors."""

    file: str
    message: WrittenMessage | None
    errors: list[SchemaError]

    @property
    def name(self) -> str:
        """What it is replaced by; empty if it has no name."""
        return "" if self.message is None else self.message.schema.name.lower()

    @property
    def is_named(self) -> bool:
        """Whether the name of its message could be read."""
        return self.message is not None and "name" not in self.message.unread


def _check(file: SchemaFile) -> _Read:
    message, errors = _read(file.file, file.data)
    if message is not None:
        errors += rules.check_message(message)
    return _Read(file.file, message, errors)


def _read(file: str, data: bytes) -> tuple[WrittenMessage | None, list[SchemaError]]:
    try:
        text = data.decode("utf-8-sig")
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
