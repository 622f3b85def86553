"""The output directory of jobs: what earlier ones left, what may be deleted, what is complete.

Only files that jobs wrote are deleted: those that a manifest names, and those whose names have
the application of a job that did not finish. A directory with anything else is refused.

    _manifest     written last: inputs, files with their rows and bytes
    _unfinished   written first, deleted last: applications that write, files that they replace
    .rows-<application>/                            spill files
    exchanges/date=2026-11-21/api=Fetch/part-<application>-00000.parquet
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyarrow import fs

from ...capture.files.listing import HIDDEN
from ...capture.tables import TABLES
from ...display import plural
from ..errors import SparkError
from ..splitting import InputFile
from ..splitting.stores import Store, explained, filesystem

MANIFEST: Final = "_manifest"
UNFINISHED: Final = "_unfinished"
WATCH: Final = "_watch"
"""Where a watch has its commits."""

SCRATCH: Final = ".rows-"
PART: Final = "part-"

PART_OF: Final = re.compile(r"\.?part-(.+)-\d+\.parquet")
"""A file of a task, or its staged form, with the application."""

APPLICATION: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
PART_NAME: Final = re.compile(r"[a-z_]+/date=[^/]+/(?:api=[^/]+/)?part-[\w.-]+\.parquet")
"""Names of files that jobs write; a manifest cannot make a job delete others."""


class OutputRefused(SparkError):
    """A directory is not one that a job may write to."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of a table. name: below the output directory."""

    name: str
    rows: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the entry of the manifest."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier jobs left. files: that they name; applications: of those that did not finish."""

    tables: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    applications: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return whether a job wrote a file."""
        return name in self.files or is_part(name, self.applications)


def is_part(name: str, applications: Collection[str]) -> bool:
    """Return whether a file, or its staged form, has the name of one of some applications."""
    match = PART_OF.fullmatch(name.rpartition("/")[2])
    return match is not None and match[1] in applications


class OutputDirectory:
    """An output directory. root: as the store expects it, without a slash at its end."""

    def __init__(self, store: Store, root: str) -> None:
        self.store = store
        self.root = root

    def examine(self, tables: Iterable[str]) -> Earlier:
        """Return what earlier jobs left. Raises OutputRefused if a job must not write here.

        tables: those to be written.
        """
        tables = list(tables)
        names = {about.base_name for about in self._listed("")}
        if WATCH in names:
            raise self._refused(
                "a watch writes to this directory; a job needs another output directory"
            )
        earlier = self._earlier(names)
        if others := earlier.tables - set(tables):
            raise self._refused(
                f"an earlier job wrote {', '.join(sorted(others))} here, which this job would not "
                "replace; write these tables, too, or to another directory"
            )
        foreign = [name for table in tables for name in self._foreign(table, earlier)]
        if foreign:
            raise self._refused(
                f"{foreign[0]} is not of a job whose manifest is here "
                f"({plural(len(foreign), 'such file')}); move it, or write to another directory"
            )
        return earlier

    def require_outside(self, files: Iterable[InputFile]) -> None:
        """Raise OutputRefused if the directory holds one of the inputs."""
        real: Callable[[str], str] = cache(os.path.realpath) if self.store.is_local else str
        root = f"{real(self.root)}/"
        for file in files:
            folder = file.path.rpartition("/")[0]
            if file.store.scheme == self.store.scheme and f"{real(folder)}/".startswith(root):
                raise self._refused(f"holds the input {file.name}; write to another directory")

    def begin(self, application: str, tables: Iterable[str], earlier: Earlier) -> None:
        """Delete what earlier jobs wrote. Until `complete`, the directory has no manifest."""
        tables = sorted({*tables, *earlier.tables})
        filesystem(self.store).create_dir(self.root, recursive=True)
        unfinished = {
            "applications": [*dict.fromkeys((*earlier.applications, application))],
            "tables": tables,
            "files": sorted(earlier.files),
        }
        self._write(UNFINISHED, [json.dumps(unfinished, indent=1)])
        self._delete(MANIFEST)
        for name in sorted(earlier.files):
            self._delete(name)
        for name in self._parts(tables, earlier.applications):
            self._delete(name)
        for each in earlier.applications:
            self._delete_folder(SCRATCH + each)

    def complete(self, manifest: Iterable[str]) -> None:
        """Write the manifest, in pieces."""
        self._write(MANIFEST, manifest)
        self._delete(UNFINISHED)

    # -- the manifest

    def manifest(self) -> dict[str, Any]:
        """Read the manifest without its inputs. Raises OutputRefused."""
        names = {about.base_name for about in self._listed("")}
        if MANIFEST in names:
            manifest, _ = self._parsed(MANIFEST)
            return manifest
        if UNFINISHED in names:
            applications = ", ".join(self._parsed(UNFINISHED)[1].applications)
            raise self._refused(
                f"no manifest: the job did not finish, or is running (application {applications})"
            )
        kind = "a watch writes to this directory" if WATCH in names else "no job finished here"
        raise self._refused(f"no manifest: {kind}")

    def _earlier(self, names: Iterable[str]) -> Earlier:
        earlier = Earlier()
        for name in (MANIFEST, UNFINISHED):
            if name in names:
                _, each = self._parsed(name)
                earlier = Earlier(
                    earlier.tables | each.tables,
                    earlier.files | each.files,
                    earlier.applications + each.applications,
                )
        return earlier

    def _parsed(self, name: str) -> tuple[dict[str, Any], Earlier]:
        content = self._read(name)
        try:
            return content, _earlier(content)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise self._refused(f"{name} is not of a job: {error}") from None

    def _read(self, name: str) -> dict[str, Any]:
        path = f"{self.root}/{name}"
        with (
            explained(self.store.uri(path)),
            filesystem(self.store).open_input_stream(path) as source,
        ):
            data = source.read()
        try:
            # inputs are not kept: there may be many
            content = json.loads(data, object_hook=lambda each: None if "status" in each else each)
        except ValueError as error:
            raise self._refused(f"{name} is not JSON: {error}") from None
        if not isinstance(content, dict):
            raise self._refused(f"{name} is not of a job")
        return content

    # -- files

    def listed(self, table: str) -> Iterator[tuple[str, int]]:
        """Yield the visible files of a table below the output directory, and their sizes."""
        for about in self._listed(table):
            name = self._name(about)
            if about.type == fs.FileType.File and not _hidden(name):
                yield name, about.size or 0

    def _foreign(self, table: str, earlier: Earlier) -> list[str]:
        return [name for name, _ in self.listed(table) if not earlier.has(name)]

    def _parts(self, tables: Iterable[str], applications: Iterable[str]) -> list[str]:
        """List the files of applications, staged ones too."""
        applications = [*applications]
        if not applications:
            return []
        parts = (self._name(about) for table in tables for about in self._listed(table))
        return [name for name in parts if is_part(name, applications)]

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        """List what is in the directory, or everything below a folder of it."""
        path = f"{self.root}/{folder}" if folder else self.root
        selector = fs.FileSelector(path, recursive=bool(folder), allow_not_found=True)
        with explained(self.store.uri(path)):
            infos = filesystem(self.store).get_file_info(selector)
        return sorted((about for about in infos if about.base_name), key=lambda each: each.path)

    def _name(self, about: fs.FileInfo) -> str:
        path: str = about.path
        return path.lstrip("/")[len(self.root.strip("/")) + 1 :]

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            filesystem(self.store).delete_file(f"{self.root}/{name}")

    def _delete_folder(self, name: str) -> None:
        with suppress(FileNotFoundError):
            filesystem(self.store).delete_dir(f"{self.root}/{name}")

    def _write(self, name: str, pieces: Iterable[str]) -> None:
        """Write a file that exists as a whole or not at all, as far as the store allows.

        A store gets it under another name, and moves it.
        """
        beside, path = f"{self.root}/.{name}", f"{self.root}/{name}"
        if self.store.is_local:
            with Path(beside).open("wb") as local:
                local.writelines(piece.encode("utf-8", "backslashreplace") for piece in pieces)
                local.flush()
                os.fsync(local.fileno())
            Path(beside).replace(path)
            return
        files = filesystem(self.store)
        with files.open_output_stream(beside) as out:
            for piece in pieces:
                out.write(piece.encode("utf-8", "backslashreplace"))
        self._delete(name)
        files.move(beside, path)

    def _refused(self, reason: str) -> OutputRefused:
        return OutputRefused(self.store.uri(self.root), reason)


def _earlier(content: Mapping[str, Any]) -> Earlier:
    """Read what a manifest, or the record of an unfinished job, says. Raises ValueError."""
    files = content.get("files", [])
    names = [each if isinstance(each, str) else each["name"] for each in files]
    applications = content.get("applications", [])
    tables = [*content["tables"]]
    for name in names:
        if not PART_NAME.fullmatch(name) or ".." in name.split("/"):
            raise ValueError(f"jobs write no file {name!r}")
    for each in applications:
        if not APPLICATION.fullmatch(each):
            raise ValueError(f"invalid application {each!r}")
    for table in tables:
        if table not in TABLES:
            raise ValueError(f"unknown table {table!r}")
    return Earlier(frozenset(tables), frozenset(names), tuple(applications))


def _hidden(name: str) -> bool:
    return any(part.startswith(HIDDEN) for part in name.split("/"))
