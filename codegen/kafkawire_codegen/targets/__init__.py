"""What the generator can write: one module of this folder for each target.

A target is a module with `NAME` (the default name of the package that it makes) and
`files(source)`, which gives the generated files. To add one, add a line to `TARGETS` and a module.

    Source { messages, name, releases } --files--> File, ...  --write_listed--> folder
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from .. import files as schema_files
from ..dialect import MessageSchema
from ..files import Sources, as_sources
from ..model import Message, build
from ..output import File, write_listed
from ..releases import Releases, of_sources
from ..schema import load_sources
from .comments import comments
from .supplied import NOTHING, Supplied

TARGETS: Final[Mapping[str, str]] = {
    "arrow": "a Python package of Arrow and Spark schemas",
    "json-schema": "a JSON Schema of Kafka's JSON form for each message and version",
    "site": "a protocol reference in HTML",
    "typescript": "an npm package of codecs for Node",
    "wireshark": "a dissector for Wireshark and tshark, in Lua",
}
"""Each target and what it writes, besides `python`."""


class InvalidName(ValueError):
    """A package name that a target does not take."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a target is made from.

    messages: sorted by name. name: of the package to make, as the target needs one. releases: the
    versions of each release; None if the schemas come without a releases.json. schemas: the same
    messages as they are written; comments: those of their files, by message; supplied: what the
    generator cannot know.
    """

    messages: list[Message]
    name: str
    releases: Releases | None
    schemas: tuple[MessageSchema, ...] = ()
    comments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    supplied: Supplied = NOTHING


class Target(Protocol):
    """A module of this folder."""

    NAME: str

    def files(self, source: Source) -> Iterable[File]: ...


@dataclass(frozen=True, slots=True)
class GeneratedFiles:
    """The result of `generate_target`: the number of messages and of files.

    changed_files: the paths of changed files inside `out`, with `/`, sorted.
    """

    out: Path
    messages: int
    files: int
    changed_files: tuple[str, ...]

    @property
    def changed(self) -> int:
        """The number of changed files."""
        return len(self.changed_files)


def generate_target(
    target: str,
    schemas: Sources,
    out: Path | str,
    name: str | None = None,
    supplied: Supplied = NOTHING,
    *,
    check: bool = False,
) -> GeneratedFiles:
    """Generate the files of a target, and remove those that it made before and makes no longer.

    check: change nothing; `changed_files` are those that would change.

    Raises LookupError for an unknown target, InvalidName, SchemaErrors for the schemas, OSError if
    the folder cannot be written, FileExistsError if it has a file of that name that was not
    generated.
    """
    if target not in TARGETS:
        raise LookupError(
            f"unknown target {target!r} (known: {', '.join(sorted({'python', *TARGETS}))})"
        )
    module = cast(Target, import_module(f"{__name__}.{target.replace('-', '_')}"))
    source = source_of(schemas, name or module.NAME, supplied)
    files = list(module.files(source))
    folder = Path(out)
    changed = write_listed(files, folder, target, check=check)
    return GeneratedFiles(folder, len(source.messages), len(files), changed)


def source_of(schemas: Sources, name: str, supplied: Supplied = NOTHING) -> Source:
    """Read what a target is made from; SchemaErrors lists every error."""
    written = tuple(schema for schema in load_sources(schemas) if schema.valid_versions)
    files = [file for path in as_sources(schemas) for file in schema_files.read(path).schemas]
    texts = {file.file: file.data.decode("utf-8", "replace") for file in files}
    return Source(
        [build(schema) for schema in written],
        name,
        of_sources(schemas),
        written,
        {schema.name: comments(texts[schema.location.file]) for schema in written},
        supplied,
    )
