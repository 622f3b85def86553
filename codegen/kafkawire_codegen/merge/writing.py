"""Writes a timeline as a directory of schemas.

A file that differs is overwritten only if requested, and nothing is written before that is
known; no file is removed.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

from ..files import RELEASES
from ..output import File
from ..whole_files import write_whole
from .text import releases_text, schema_text
from .timeline import Timeline


class Written(NamedTuple):
    """The number of changed files, and the schemas of the folder that are not of the timeline."""

    changed: int
    others: list[str]


def files_of(merged: Timeline) -> list[File]:
    """Return the files of a timeline: a schema for each message, and releases.json."""
    schemas = [
        File(f"{m.name}.json", schema_text(m, merged.comments[m.name])) for m in merged.messages
    ]
    return [*schemas, File(RELEASES, releases_text(merged.releases))]


def write_timeline(merged: Timeline, out: Path, *, overwrite: bool) -> Written:
    """Write the files of a timeline; FileExistsError for files that differ, if not `overwrite`."""
    wanted = {file.path: file.text.encode("utf-8") for file in files_of(merged)}
    present = {path.name: path.read_bytes() for path in out.glob("*.json")}
    for name in sorted(present.keys() & wanted.keys()):
        if not overwrite and present[name] != wanted[name]:
            reason = "exists and differs, and would be overwritten"
            raise FileExistsError(errno.EEXIST, reason, str(out / name))
    out.mkdir(parents=True, exist_ok=True)
    changed = [name for name, data in wanted.items() if present.get(name) != data]
    for name in changed:
        write_whole(out / name, wanted[name])
    return Written(len(changed), sorted(present.keys() - wanted.keys()))
