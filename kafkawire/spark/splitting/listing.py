"""Lists the files of paths, directories, patterns and URIs.

Order and names are those of the arguments: a directory or a pattern stands for its files,
sorted by name; a missing file is an error that names it. Whether a file is a capture is decided by
its content, when it is read.

    /data/a.pcap   /data/   /data/*.pcap   s3://bucket/captures/   s3://bucket/2026/*/x?.pcap.gz
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from ...capture.files.listing import (
    CAPTURE_NAME,
    HIDDEN,
    PATTERN,
    is_other_name,
    links_not_read,
    not_read,
)
from .file_list import FileList, file_list
from .stores import InputFile, Store, explained, filesystem, is_uri, located

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo


Ignored = Callable[[str, str], None]
"""Called with a directory and what of it is not read."""


def inputs(
    paths: Iterable[str | Path],
    options: Mapping[str, str] | None = None,
    *,
    recursive: bool = False,
    missing: Callable[[str, FileNotFoundError], None] | None = None,
    ignored: Ignored | None = None,
) -> FileList:
    """List the files that paths, directories, patterns and URIs stand for, each once.

    options: of the filesystem of the URIs, as pyarrow.fs names them (`endpoint_override`, `scheme`,
    `region`, `access_key`, `secret_key`, `anonymous` ...). recursive: include subdirectories.
    missing: called for each path at which nothing is found, and the others are listed; without it
    FileNotFoundError is raised. ignored: called for each directory with others in it, if these are
    not included. Raises OSError if a store cannot be reached, ValueError if no store
    supports the URI.
    """

    def found() -> Iterator[InputFile]:
        for path in paths:
            try:
                yield from _listed(path, options or {}, recursive, ignored)
            except FileNotFoundError as error:
                if missing is None:
                    raise
                missing(str(path), error)

    return file_list(found())


def _listed(
    path_or_uri: str | Path, options: Mapping[str, str], recursive: bool, ignored: Ignored | None
) -> Iterator[InputFile]:
    text = str(path_or_uri)
    if not is_uri(text):
        return _local(text, recursive, ignored)
    store, path = located(text, options)
    if store.is_local:
        return _local(path, recursive, ignored)
    return _remote(store, path, recursive, ignored)


def _check(directory: str, files: int, others: list[str], ignored: Ignored | None) -> None:
    """Report the subdirectories of a directory, by their names.

    Raises FileNotFoundError if it has no files.
    """
    unread = not_read(others) if others else ""
    if not files:
        raise FileNotFoundError(f"{directory}: a directory without files{unread and '; '}{unread}")
    if unread and ignored is not None:
        ignored(directory, unread)


# -- local


def _local(text: str, recursive: bool, ignored: Ignored | None) -> Iterator[InputFile]:
    path = Path(text)
    if not path.exists() and PATTERN.search(text):
        matches = sorted(glob(text, recursive=True))
        if not matches:
            raise FileNotFoundError(f"{text}: no file matches")
        for match in matches:
            yield from _local_files(Path(match), recursive, ignored)
    else:
        yield from _local_files(path, recursive, ignored)


def _local_files(path: Path, recursive: bool, ignored: Ignored | None) -> Iterator[InputFile]:
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        yield _local_file(str(path), path.stat(), "")
        return
    directory = str(path)
    files, others = 0, list[str]()
    for name in _names(path, recursive):
        if is_other_name(name):
            if ignored is not None:
                ignored(name, links_not_read([name]))
        elif (about := _of_regular_file(name)) is not None:
            files += 1
            yield _local_file(name, about, directory)
        elif not recursive and os.path.isdir(name):
            others.append(os.path.basename(name))
        elif CAPTURE_NAME.search(name) and not os.path.exists(name):
            files += 1
            yield InputFile(name, os.path.abspath(name), 0, None, Store(), directory)
    _check(directory, files, others, ignored)


def _names(path: Path, recursive: bool) -> Iterator[str]:
    """List what is in a directory and not hidden, by name."""
    if recursive:
        paths = sorted(path.rglob("*"))
        return (str(each) for each in paths if not _hidden(each.relative_to(path).parts))
    prefix = "" if str(path) == "." else os.path.join(path, "")
    found_names = sorted(os.listdir(path))
    return (prefix + name for name in found_names if not name.startswith(HIDDEN))


def _of_regular_file(name: str) -> os.stat_result | None:
    """Return what is known of a file; None for what is not one, or a broken link."""
    try:
        about = os.stat(name)
    except OSError:
        return Path(name).stat() if Path(name).is_file() else None  # ignores what is_file does
    return about if S_ISREG(about.st_mode) else None


def _local_file(name: str, about: os.stat_result, directory: str) -> InputFile:
    path = os.path.join(os.getcwd(), name)  # the name itself if it is absolute
    return InputFile(name, path, about.st_size, about.st_mtime_ns, Store(), directory)


# -- remote


def _remote(
    store: Store, path: str, recursive: bool, ignored: Ignored | None
) -> Iterator[InputFile]:
    name = store.uri(path)
    if wild := PATTERN.search(path):
        root = path[: wild.start()].rpartition("/")[0]
        pattern = path.lstrip("/").split("/")  # fsspec paths may start with a slash or not
        objects, _ = _under(store, root, deep=True)
        files = [each for each in objects if matches(each.path.lstrip("/").split("/"), pattern)]
        if not files:
            raise FileNotFoundError(f"{name}: no file matches")
        directory = ""
    else:
        files = list(_at(store, path, recursive, ignored))
        itself = [about.path.rstrip("/") for about in files] == [path.rstrip("/")]
        directory = "" if itself else name
    for about in files:
        yield replace(_remote_file(store, about), directory=directory)


def _at(store: Store, path: str, recursive: bool, ignored: Ignored | None) -> Iterator[FileInfo]:
    from pyarrow.fs import FileType

    name = store.uri(path)
    with explained(name):
        about = filesystem(store).get_file_info(path.rstrip("/"))
    if about.type == FileType.File:
        yield about
        return
    if about.type == FileType.NotFound:
        raise FileNotFoundError(f"{name}: no such file")
    depth = len(about.path.rstrip("/")) + 1
    files, others = (
        [each for each in some if not _hidden(tuple(each.path[depth:].split("/")))]
        for some in _under(store, about.path, deep=recursive)
    )
    names = [each.base_name for each in others if not recursive]
    _check(name, len(files), names, ignored)
    yield from files


def _under(store: Store, root: str, *, deep: bool) -> tuple[list[FileInfo], list[FileInfo]]:
    """List the files below a directory, and the directories."""
    from pyarrow.fs import FileSelector, FileType

    with explained(store.uri(root)):
        selector = FileSelector(root, allow_not_found=True, recursive=deep)
        infos = filesystem(store).get_file_info(selector)
    infos.sort(key=lambda one: one.path)
    # an empty object whose name ends in a slash is a directory marker
    files, directories = (
        [one for one in infos if one.type == kind] for kind in (FileType.File, FileType.Directory)
    )
    return files, directories


def _remote_file(store: Store, about: FileInfo) -> InputFile:
    if about.size is None:  # a listing without sizes
        with explained(store.uri(about.path)):
            about = filesystem(store).get_file_info(about.path)
    return InputFile(store.uri(about.path), about.path, about.size, about.mtime_ns, store)


def _hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(HIDDEN) for part in parts)


def matches(parts: list[str], pattern: list[str]) -> bool:
    """Match a path by directories, as a shell does; `**` matches any number of them."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(matches(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    if not parts or not fnmatchcase(parts[0], pattern[0]):
        return False
    if parts[0].startswith(".") and not pattern[0].startswith("."):
        return False
    return matches(parts[1:], pattern[1:])
