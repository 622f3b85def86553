"""Opens capture files: local paths, and URIs that pyarrow.fs or fsspec support.

A file is a small value that pickles; its store is opened where the file is read, never
shipped. Every error names the file.

    "", file:          the operating system
    s3: gs: abfs: hdfs:  pyarrow.fs, with its options (endpoint_override, region, access_key, ...)
    anything else      fsspec, if it is installed
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

LOCAL: Final = frozenset({"", "file"})

URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:/")
"""The beginning of a URI; Hadoop writes `file:/path`."""
OPENERS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "S3FileSystem"),
    **dict.fromkeys(("gs", "gcs"), "GcsFileSystem"),
    **dict.fromkeys(("abfs", "abfss"), "AzureFileSystem"),
}
"""Scheme -> the class of pyarrow.fs; a build of pyarrow may lack some."""

FLAGS: Final = {"true": True, "false": False}
"""Options from Spark are strings."""


@dataclass(frozen=True, slots=True)
class Store:
    """A filesystem as a value.

    It has the scheme of its URIs ("" for local files), the host if it belongs to the filesystem
    (hdfs), and its options.
    """

    scheme: str = ""
    host: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Hide the values of options, which may contain credentials."""
        return f"Store({self.scheme!r}, {self.host!r}, {[name for name, _ in self.options]})"

    @property
    def is_local(self) -> bool:
        """Whether the operating system opens its files."""
        return self.scheme in LOCAL

    def uri(self, path: str) -> str:
        """Return the URI of a file of this store, without credentials."""
        if self.is_local or path.startswith(f"{self.scheme}://"):
            return path
        return f"{self.scheme}://{self.host}{path}"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read.

    name: for a local file the name that `kafkawire decode` uses, else its URI without credentials.
    path: as its store expects it. modified_ns: nanoseconds since the epoch, None if unknown.
    directory: the directory in which it was found; "" if it was named, or matched by a pattern.
    tunnels: tunnels in it on other UDP ports, an option.
    """

    name: str
    path: str
    size: int
    modified_ns: int | None = None
    store: Store = Store()
    directory: str = field(default="", compare=False)
    tunnels: tuple[str, ...] = field(default=(), compare=False)


class Reader(Protocol):
    """An open file."""

    def read(self, offset: int, size: int) -> bytes:
        """Read `size` bytes from an offset, fewer only at the end of the file."""


class LocalReader:
    """A local file, by its descriptor."""

    def __init__(self, number: int) -> None:
        self._number = number

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._number, size, offset)


class RemoteReader:
    """A file of pyarrow.fs; every read is one request."""

    def __init__(self, file: NativeFile, name: str) -> None:
        self._file = file
        self._name = name

    def read(self, offset: int, size: int) -> bytes:
        with explained(self._name):
            try:
                data: bytes = self._file.read_at(size, offset)
            except ValueError as error:  # from fsspec, if the server does not support ranges
                raise OSError(str(error)) from error
            return data


@contextmanager
def opened(file: InputFile) -> Iterator[Reader]:
    """Open a file for reading at offsets. Raises OSError, naming the file."""
    if file.store.is_local:
        number = os.open(file.path, os.O_RDONLY)
        try:
            yield LocalReader(number)
        finally:
            os.close(number)
        return
    with explained(file.name):
        remote = filesystem(file.store).open_input_file(file.path)
    with remote:
        yield RemoteReader(remote, file.name)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Add the name of the file to errors of the store."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such file") from None
    except PermissionError as error:
        raise PermissionError(f"{name}: {_first_line(error)}") from error
    except OSError as error:
        raise OSError(f"{name}: read failed: {_first_line(error)}") from error


def _first_line(error: OSError) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def is_uri(text: str) -> bool:
    """Return whether a text is a URI; otherwise it is a path."""
    return URI.match(text) is not None


def located(uri: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """Return the store of a URI, and the path in it."""
    parts = urlsplit(uri, allow_fragments=False)
    scheme = parts.scheme
    if scheme in LOCAL:
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{uri}: expected file:/path, not a host")
        return Store(), parts.path
    if scheme in _BY_URI and parts.username is not None:
        raise ValueError(f"{scheme}://: a password in the URI is not supported")
    merged = {**options, **_credentials(parts.username, parts.password)}
    kept = tuple(sorted(merged.items()))
    host = parts.netloc.rpartition("@")[2]
    # a "?" is part of the object name or of a pattern
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if scheme in _BY_HOST:
        return Store(scheme, host, kept), path
    whole = f"{scheme}://" if scheme in _BY_URI else ""
    return Store(scheme, "", kept), whole + host + path


def _credentials(user: str | None, password: str | None) -> dict[str, str]:
    if user is None or password is None:
        return {}
    return {"access_key": user, "secret_key": password}


@lru_cache(maxsize=32)
def filesystem(store: Store) -> FileSystem:
    """Open a store. Raises OSError, or ValueError for unknown options."""
    from pyarrow import fs

    options: dict[str, Any] = {name: FLAGS.get(text, text) for name, text in store.options}
    if store.is_local:
        return fs.LocalFileSystem()
    try:
        if opener := OPENERS.get(store.scheme):
            filesystem_of_store: FileSystem = getattr(fs, opener)(**options)
            return filesystem_of_store
        if store.scheme in _BY_HOST:
            host, _, port = store.host.partition(":")
            return fs.HadoopFileSystem(host or "default", int(port or 0), **options)
    except TypeError as error:
        raise ValueError(f"{store.scheme}: invalid option of the store: {error}") from None
    return _by_fsspec(store, options)


_BY_HOST: Final = frozenset({"hdfs", "viewfs"})

_BY_URI: Final = frozenset({"http", "https"})
"""Schemes for which fsspec names files by their whole URIs."""


def _by_fsspec(store: Store, options: dict[str, Any]) -> FileSystem:
    from pyarrow import fs

    try:
        fsspec = import_module("fsspec")
    except ImportError:
        raise ValueError(
            f"{store.scheme}://: not supported by pyarrow; try fsspec "
            "(pip install 'kafkawire[fsspec]')"
        ) from None
    try:
        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(store.scheme, **options)))
    except ImportError as error:
        raise ValueError(f"{store.scheme}://: {error}") from None
