"""What the generator can write: one module of this folder for each target.

A target is a module with `NAME` (the default name of the package that it makes) and
`files(source)`, which gives the generated files. To add one, add a line to `TARGETS` and a module.

    Source { messages, name, releases } --files--> File, ...  --write_listed--> folder
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from ..model import Message, load
from ..output import File, write_listed
from ..releases import Releases, read
from ..schema import RELEASES

TARGETS: Final[Mapping[str, str]] = {
    "typescript": "an npm package of codecs for Node",
}
"""Each target and what it writes, besides `python`."""


class InvalidName(ValueError):
    """A package name that a target does not take."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a target is made from.

    messages: sorted by name. name: of the package to make, as the target needs one. releases: the
    versions of each release; None if the schemas come without a releases.json.
    """

    messages: list[Message]
    name: str
    releases: Releases | None


class Target(Protocol):
    """A module of this folder."""

    NAME: str

    def files(self, source: Source) -> Iterable[File]: ...


@dataclass(frozen=True, slots=True)
class GeneratedFiles:
    """The result of `generate_target`: the number of messages, of files, and of changed files."""

    out: Path
    messages: int
    files: int
    changed: int


def generate_target(
    target: str, schemas: Path, out: Path, name: str | None = None
) -> GeneratedFiles:
    """Generate the files of a target, and remove those that it made before and makes no longer.

    Raises LookupError for an unknown target, InvalidName for the name, SchemaErrors for the
    schemas, OSError if the folder cannot be written, FileExistsError if it has a file of that name
    that was not generated.
    """
    if target not in TARGETS:
        raise LookupError(
            f"unknown target {target!r} (known: {', '.join(sorted({'python', *TARGETS}))})"
        )
    module = cast(Target, import_module(f"{__name__}.{target.replace('-', '_')}"))
    releases = schemas / RELEASES
    source = Source(
        load(schemas), name or module.NAME, read(releases) if releases.is_file() else None
    )
    files = list(module.files(source))
    changed = write_listed(files, out, target)
    return GeneratedFiles(out, len(source.messages), len(files), changed)
