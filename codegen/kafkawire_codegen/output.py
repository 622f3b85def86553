"""Writes generated files, and never overwrites or removes a file that was not generated.

Each file appears complete, or not at all; the next run makes again what a power failure loses.

write          a Python package: generated files say so in their first line
write_listed   any other target: a list in the folder names the generated files
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .whole_files import write_whole

MARK: Final = "Generated: do not edit."
"""In the first line of every generated module."""

LIST: Final = ".kafkawire-codegen"
"""The list of generated files in an output folder: a line `TARGET PATH` for each, sorted."""


@dataclass(frozen=True, slots=True)
class File:
    """One generated file: its path inside the output folder, with `/`, and its text."""

    path: str
    text: str


def write(files: list[File], out: Path) -> int:
    """Update a folder, and return the number of changed files.

    An unchanged file keeps its modification time, for incremental builds; a module that is no
    longer generated is removed. FileExistsError, before any change, if a file that was not
    generated would be overwritten.
    """
    out.mkdir(parents=True, exist_ok=True)
    wanted = {f.path: f.text for f in files}
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
            write_whole(out / name, data, durable=False)
            changed += 1
    return changed


def _is_generated(data: bytes) -> bool:
    return MARK.encode("ascii") in data.partition(b"\n")[0]


def write_listed(files: Iterable[File], out: Path, target: str) -> int:
    """Update a folder, and return the number of changed files.

    An unchanged file keeps its modification time; a file that the target made before and makes no
    longer is removed; files of other targets stay. FileExistsError, before any change, if a file
    that is not in the folder's list would be overwritten. ValueError for a path outside `out`.
    """
    wanted = {file.path: file.text.encode("utf-8") for file in files}
    for path in wanted:
        if not _is_inside(path):
            raise ValueError(f"{path!r} is not a path inside the output folder")
    listed = _listed(out)
    ours = {path for made_by, path in listed if made_by == target}
    for path in sorted(wanted.keys() - {path for _, path in listed}):
        if (out / path).exists() and (out / path).read_bytes() != wanted[path]:
            reason = "was not generated, and would be overwritten"
            raise FileExistsError(errno.EEXIST, reason, str(out / path))
    changed = 0
    for path in sorted(ours - wanted.keys()):
        (out / path).unlink(missing_ok=True)
        changed += 1
    for path, data in wanted.items():
        file = out / path
        if not file.is_file() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, data, durable=False)
            changed += 1
    others = {(made_by, path) for made_by, path in listed if made_by != target}
    lines = sorted(others | {(target, path) for path in wanted})
    text = "".join(f"{made_by} {path}\n" for made_by, path in lines)
    out.mkdir(parents=True, exist_ok=True)
    if lines != sorted(listed) or not (out / LIST).exists():
        write_whole(out / LIST, text.encode("utf-8"), durable=False)
    return changed


def _is_inside(path: str) -> bool:
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _listed(out: Path) -> set[tuple[str, str]]:
    """Read which target made which files of a folder."""
    try:
        lines = (out / LIST).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return set()
    made = (line.partition(" ") for line in lines)
    return {(target, path) for target, _, path in made if _is_inside(path)}
