"""Lists the captures that paths, directories and patterns stand for.

In a directory, what is a capture by its name or its content is listed; hidden files are not,
as for the Spark job. A path of a file stands for the file, whatever it is.

    t.pcap   captures/   captures/*.pcap   captures/t.pcap.?
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Final, NamedTuple

from ...errors import CaptureError
from .recognition import HEAD, check_head

CAPTURE_NAME: Final = re.compile(r"\.(pcap|pcapng|cap)\d*(\.gz|\.zst)?$")
"""Names of captures."""

PATTERN: Final = re.compile(r"[*?\[]")

HIDDEN: Final = ("_", ".")
"""Prefixes of hidden names: files of other programs, or files that are still being written."""


class Directory(NamedTuple):
    """The files of a directory that are not hidden, sorted by name.

    captures: by name or content; files that cannot be opened are among them, so that reading them
    reports why. ignored: the others.
    """

    captures: list[Path]
    ignored: list[Path]


def directory_of(path: Path) -> Directory:
    """List a directory. Raises OSError if it cannot be read."""
    directory = Directory([], [])
    for file in sorted(path.iterdir()):
        if not file.name.startswith(HIDDEN) and file.is_file():
            (directory.captures if _is_capture(file) else directory.ignored).append(file)
    return directory


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for the files that match it: it has wildcards, and no file."""
    return PATTERN.search(str(path)) is not None and not os.path.exists(path)


def matching(pattern: Path) -> list[Path]:
    """List what matches a pattern, sorted by name; `**` stands for any directories."""
    return sorted(map(Path, glob(str(pattern), recursive=True)))


def _is_capture(file: Path) -> bool:
    if CAPTURE_NAME.search(file.name):
        return True
    try:
        check_head(_parts(file))
    except CaptureError:
        return False
    except OSError:
        return True
    return True


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while part := opened.read(HEAD):
            yield part
