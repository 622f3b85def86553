"""Reads the schemas of a jar or ZIP archive, within limits.

An archive is hostile until it was read: the list of its entries, their number, the size of
each and of all together are bounded before memory is used; nothing is extracted, no link is
followed, and an entry whose name could lead outside is refused.

    archive --entries--> folders of Kafka's name, or all --bounded--> SchemaFile, ...
"""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from .found import RELEASES, SchemaFile, SourceFiles

MOST_LISTED: Final = 16 << 20
"""Bytes of the list of entries; that of Kafka's largest jar has 1 MiB."""
MOST_ENTRIES: Final = 100_000
MOST_SCHEMAS: Final = 10_000
LARGEST_SCHEMA: Final = 4 << 20
"""Bytes of one schema, decompressed; Kafka's largest has 20 KiB."""
LARGEST_TOTAL: Final = 64 << 20

FOLDERS: Final = ("message", "metadata")
"""Folders with schemas in Kafka's jars: common/message, common/metadata, message."""

VERSION_FILE: Final = "kafka/kafka-version.properties"
"""Names the version of Kafka in kafka-clients."""

_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What jars have; other methods may need much more memory than they give."""

_FAILURES: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What zipfile raises for archives that are damaged, encrypted or not archives."""


class UnreadableArchive(OSError):
    """An archive that is damaged, not an archive, or beyond a limit."""

    def __init__(self, file: object, reason: str) -> None:
        super().__init__(errno.EINVAL, reason, str(file))


class NoSchemas(UnreadableArchive):
    """An archive without schemas."""


def read_archive(path: Path, *, only_kafkas: bool = False) -> SourceFiles:
    """Read the schemas of an archive, sorted by the names of their entries.

    only_kafkas: take those in Kafka's folders alone, and nothing if there are none. Raises
    UnreadableArchive, NoSchemas, OSError if the file cannot be opened.
    """
    with path.open("rb") as file, _readable(path), zipfile.ZipFile(_Limited(file)) as archive:
        entries = _chosen(path, archive, only_kafkas)
        if not entries and not only_kafkas:
            raise NoSchemas(path, "no schemas (*.json) in this archive")
        files = dict(_contents(path, archive, entries))
    releases = [entry for entry in files if PurePosixPath(entry).name == RELEASES]
    schemas = tuple(files[entry] for entry in sorted(files.keys() - releases))
    return SourceFiles(schemas, files[releases[0]] if releases else None)


def kafka_version(path: Path) -> str | None:
    """Return the version of Kafka that a jar says it is of, `4.3.1`; None if it says none."""
    with path.open("rb") as file, _readable(path), zipfile.ZipFile(_Limited(file)) as archive:
        entries = [each for each in archive.infolist() if each.filename == VERSION_FILE]
        if not entries or _refusal(entries[0]) is not None:
            return None
        with archive.open(entries[0]) as properties:
            text = properties.read(LARGEST_SCHEMA).decode("utf-8", "replace")
    pairs = (line.partition("=") for line in text.splitlines())
    return next((value.strip() for key, _, value in pairs if key.strip() == "version"), None)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except _FAILURES as error:
        reason = f"not a readable ZIP archive ({str(error) or type(error).__name__})"
        raise UnreadableArchive(path, reason) from None


class _Limited(io.RawIOBase):
    """A file of which no more than MOST_LISTED bytes are read at once.

    zipfile reads the whole list of entries at once; what it decompresses, it reads piece by piece.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if offset < 0 and whence == os.SEEK_SET:
            raise ValueError("an entry begins before the file")
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MOST_LISTED:
            position = self.file.tell()
            left = self.file.seek(0, os.SEEK_END) - position
            self.file.seek(position)
            if left > MOST_LISTED:
                raise ValueError(f"its list of entries has more than {MOST_LISTED} bytes")
            size = left
        return self.file.read(size)


def _chosen(path: Path, archive: zipfile.ZipFile, only_kafkas: bool) -> list[zipfile.ZipInfo]:
    """Choose the entries that are schemas, or a list of releases."""
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise UnreadableArchive(path, f"{len(entries)} entries: {MOST_ENTRIES} at most are read")
    texts = [each for each in entries if each.filename.endswith(".json")]
    kafkas = [each for each in texts if PurePosixPath(each.filename).parent.name in FOLDERS]
    others = [each for each in texts if not each.filename.startswith("META-INF/")]
    schemas = kafkas if kafkas or only_kafkas else others
    if len(schemas) > MOST_SCHEMAS:
        raise UnreadableArchive(path, f"{len(schemas)} schemas: {MOST_SCHEMAS} at most are read")
    return schemas


def _contents(
    path: Path, archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]
) -> Iterator[tuple[str, SchemaFile]]:
    """Read entries: each once, and all of them within the limits."""
    total = 0
    seen: set[str] = set()
    for entry in entries:
        name = f"{path}!{entry.filename}"
        reason = "stands in the archive twice" if entry.filename in seen else _refusal(entry)
        if reason is not None:
            raise UnreadableArchive(name, reason)
        seen.add(entry.filename)
        with _readable(Path(name)), archive.open(entry) as file:
            data = file.read(LARGEST_SCHEMA + 1)
        total += len(data)
        if len(data) > LARGEST_SCHEMA:
            raise UnreadableArchive(name, f"has more than {LARGEST_SCHEMA} bytes")
        if total > LARGEST_TOTAL:
            raise UnreadableArchive(path, f"its schemas have more than {LARGEST_TOTAL} bytes")
        yield entry.filename, SchemaFile(name, data)


def _refusal(entry: zipfile.ZipInfo) -> str | None:
    """Say why an entry is not read; None if it is."""
    name = entry.filename
    parts = name.split("/")
    if "\\" in name or not name.isprintable() or any(part in ("", ".", "..") for part in parts):
        return "not a plain path inside the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "a link: links are not followed"
    if entry.flag_bits & 1:
        return "encrypted"
    if entry.compress_type not in _COMPRESSIONS:
        return f"compression method {entry.compress_type}: only stored and deflated are read"
    if entry.file_size > LARGEST_SCHEMA:
        return f"has {entry.file_size} bytes: {LARGEST_SCHEMA} at most are read"
    return None
