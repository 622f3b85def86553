"""Reads the schemas that a command line names: sources, releases, or those of kafkawire."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kafkawire.display import printable, printable_lines

if TYPE_CHECKING:
    from kafkawire_codegen.dialect import MessageSchema
    from kafkawire_codegen.releases import Releases

Schemas = Sequence[Path] | None
"""The sources of `--schemas`; None for those of kafkawire."""


@contextmanager
def readable() -> Iterator[None]:
    """Convert read errors into usage errors, and schema errors into findings."""
    from kafkawire_codegen.releases import UnknownRelease
    from kafkawire_codegen.schema import SchemaErrors

    try:
        yield
    except SchemaErrors as errors:
        typer.echo(printable_lines(str(errors)), err=True)
        raise typer.Exit(1) from None
    except UnknownRelease as error:
        raise typer.BadParameter(printable(str(error)), param_hint="RELEASE") from None
    except OSError as error:
        raise typer.BadParameter(printable(f"{error.filename}: {error.strerror}")) from None


def existing(schemas: Schemas) -> tuple[Path, ...]:
    """Return the sources of `--schemas`, those of kafkawire if there are none.

    A source that does not exist and a directory without schemas are usage errors.
    """
    from kafkawire_codegen import schemas_dir

    sources = tuple(schemas or (schemas_dir(),))
    for source in sources:
        reason = _refusal(source)
        if reason is not None:
            raise typer.BadParameter(printable(f"{source}: {reason}"), param_hint="--schemas")
    return sources


def _refusal(source: Path) -> str | None:
    if os.path.isdir(source):
        files = (path for path in source.iterdir() if path.suffix in (".json", ".jar"))
        empty = next(files, None) is None
        return "no schemas (*.json) or jars in this directory" if empty else None
    return None if os.path.exists(source) else "not a directory, an archive or a file"


def load(sources: Sequence[Path]) -> list[MessageSchema]:
    """Load the schemas of sources; none is a usage error."""
    from kafkawire_codegen.schema import load_sources

    schemas = load_sources(sources)
    if not schemas:
        shown = ", ".join(map(str, sources))
        raise typer.BadParameter(printable(f"{shown}: no schemas (*.json) in this directory"))
    return schemas


def releases_of(schemas: Schemas, releases: Path | None) -> Releases:
    """Load releases from --releases, the sources of --schemas, or those of kafkawire."""
    from kafkawire_codegen import schemas_dir
    from kafkawire_codegen.files import RELEASES
    from kafkawire_codegen.releases import of_sources, read

    if releases is not None:
        return read(releases)
    return of_sources(existing(schemas)) or read(schemas_dir() / RELEASES)


def sides(
    before: str, after: str, schemas: Schemas, releases: Path | None
) -> tuple[list[MessageSchema], list[MessageSchema]]:
    """Load the messages of two sources or releases.

    A release has requests and responses in its versions; with one, the other side is restricted to
    requests and responses that have a version.
    """
    old, new = (_side(source, schemas, releases) for source in (before, after))
    if not all(os.path.exists(source) for source in (before, after)):
        old, new = (
            [m for m in side if m.type in ("request", "response") and m.valid_versions]
            for side in (old, new)
        )
    return old, new


def _side(source: str, schemas: Schemas, releases: Path | None) -> list[MessageSchema]:
    if os.path.exists(source):
        return load((Path(source),))
    table = releases_of(schemas, releases)
    if source not in table.ranges:
        names = ", ".join(table.ranges)
        reason = f"{source}: not a directory, an archive or a release (known: {names})"
        raise typer.BadParameter(printable(reason))
    return table.at(source, load(existing(schemas)))
