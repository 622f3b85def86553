"""Lists the captures that paths, directories and patterns stand for.

In a directory, what is a capture by its name or its content is listed; hidden files are not,
as for the Spark job, nor what is in its subdirectories. A path of a file stands for the file,
whatever it is.

    t.pcap   captures/   captures/*.pcap   captures/t.pcap.?
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
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


SHOWN: Final = 3
"""Names of what is ignored that are shown, at most."""


class Directory(NamedTuple):
    """What a directory has that is not hidden, sorted by name.

    captures: files, by name or content; those that cannot be opened, and links to nothing that have
    the name of a capture, are among them, so that reading them reports why. ignored: the others,
    pipes among them. subdirectories: they are not read. links: other names of what is listed.
    """

    captures: list[Path]
    ignored: list[Path]
    subdirectories: list[Path]
    links: list[Path]


def directory_of(path: Path) -> Directory:
    """List a directory. Raises OSError if it cannot be read."""
    directory = Directory([], [], [], [])
    for file in sorted(path.iterdir()):
        if file.name.startswith(HIDDEN):
            continue
        if file.is_dir():
            directory.subdirectories.append(file)
        elif is_other_name(file):
            directory.links.append(file)
        elif (file.is_file() or not file.exists()) and _is_capture(file):
            directory.captures.append(file)
        else:
            directory.ignored.append(file)
    return directory


def is_other_name(file: str | Path) -> bool:
    """Return whether a path is a link to a file of the same directory that is not hidden.

    Such as `latest.pcap`: the packets of that file would be read twice.
    """
    if not os.path.islink(file):
        return False
    folder, name = os.path.split(os.path.realpath(file))
    same = folder == os.path.realpath(os.path.dirname(file) or ".")
    return same and not name.startswith(HIDDEN) and os.path.isfile(file)


def links_not_read(links: Sequence[str | Path]) -> str:
    """Describe links to files of a directory that are read by their own names: at least one."""
    texts = [
        f"{os.path.basename(each)} is {os.path.basename(os.path.realpath(each))}"
        for each in links[:SHOWN]
    ]
    names = ", ".join([*texts, *["..."] * (len(links) > SHOWN)])
    return f"{len(links)} {'link' if len(links) == 1 else 'links'} not read: {names}"


def not_read(subdirectories: Sequence[str]) -> str:
    """Describe the subdirectories of a directory, by their names: at least one."""
    count = len(subdirectories)
    names = ", ".join([*subdirectories[:SHOWN], *["..."] * (count > SHOWN)])
    return f"{count} {'directory' if count == 1 else 'directories'} in it not read: {names}"


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
    except (CaptureError, FileNotFoundError):
        return False
    except OSError:
        return True
    return True


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while part := opened.read(HEAD):
            yield part
