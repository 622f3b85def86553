"""Writes generated files, and never overwrites or removes a file that was not generated.

Each file appears complete, or not at all; the next run makes again what a power failure loses.

write          a Python package: generated files say so in their first line
write_listed   any other target: a list in the folder names the generated files
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
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


def write(files: Iterable[File], out: Path, *, check: bool = False) -> tuple[str, ...]:
    """Update a folder, and return the names of the changed files, sorted.

    An unchanged file keeps its modification time, for incremental builds; a module that is no
    longer generated is removed. check: change nothing. FileExistsError, before any change, if a
    file that was not generated would be overwritten.
    """
    wanted = {file.path: file.text.encode("utf-8") for file in files}
    present = {path.name: path.read_bytes() for path in out.glob("*.py")}
    for name in sorted(present.keys() & wanted.keys()):
        if present[name] and not _is_generated(present[name]):
            raise _not_generated(out / name)
    changes: dict[str, bytes | None] = {
        name: data for name, data in wanted.items() if present.get(name) != data
    }
    stale = (name for name in present.keys() - wanted.keys() if _is_generated(present[name]))
    changes |= dict.fromkeys(stale)
    if not check:
        out.mkdir(parents=True, exist_ok=True)
        _change(changes, out)
    return tuple(sorted(changes))


def _change(changes: Mapping[str, bytes | None], out: Path) -> None:
    """Remove files of a folder (None), then write others."""
    for path, data in changes.items():
        if data is None:
            (out / path).unlink(missing_ok=True)
    for path, data in changes.items():
        if data is not None:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out / path, data, durable=False)


def _not_generated(path: Path) -> FileExistsError:
    reason = "was not generated, and would be overwritten"
    return FileExistsError(errno.EEXIST, reason, str(path))


def _is_generated(data: bytes) -> bool:
    return MARK.encode("ascii") in data.partition(b"\n")[0]


def write_listed(
    files: Iterable[File], out: Path, target: str, *, check: bool = False
) -> tuple[str, ...]:
    """Update a folder, and return the paths of the changed files, sorted.

    An unchanged file keeps its modification time; a file that the target made before and makes no
    longer is removed; files of other targets stay. check: change nothing. FileExistsError, before
    any change, if a file that is not in the folder's list would be overwritten. ValueError for a
    path outside `out`.
    """
    wanted = {file.path: file.text.encode("utf-8") for file in files}
    for path in wanted:
        if not _is_inside(path):
            raise ValueError(f"{path!r} is not a path inside the output folder")
    listed = _listed(out)
    changes: dict[str, bytes | None] = {
        path: data for path, data in wanted.items() if not _has(out / path, data)
    }
    for path in sorted(changes.keys() - {path for _, path in listed}):
        if (out / path).exists():
            raise _not_generated(out / path)
    ours = {path for made_by, path in listed if made_by == target}
    changes |= dict.fromkeys(ours - wanted.keys())
    if not check:
        _change(changes, out)
        others = {(made_by, path) for made_by, path in listed if made_by != target}
        _list(others | {(target, path) for path in wanted}, listed, out)
    return tuple(sorted(changes))


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _list(generated: set[tuple[str, str]], listed: set[tuple[str, str]], out: Path) -> None:
    """Write which target made which files of a folder, unless they are listed."""
    text = "".join(f"{made_by} {path}\n" for made_by, path in sorted(generated))
    out.mkdir(parents=True, exist_ok=True)
    if generated != listed or not (out / LIST).exists():
        write_whole(out / LIST, text.encode("utf-8"), durable=False)


def _is_inside(path: str) -> bool:
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _listed(out: Path) -> set[tuple[str, str]]:
    """Read which target made which files of a folder."""
    try:
        lines = (out / LIST).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return set()
    entries = (line.partition(" ") for line in lines)
    return {(target, path) for target, _, path in entries if _is_inside(path)}
