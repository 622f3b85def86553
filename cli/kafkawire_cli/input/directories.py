"""Replaces directories and patterns by the captures that they stand for.

The captures are those that the Spark job reads (`kafkawire.capture.files.listing`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .inputs import InputError, cluster_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafkawire.capture.files.listing import Directory

Ignored = Callable[[Path, "Directory"], None]
"""Called with a directory and what it has, if something in it is not read."""


def expand(paths: Iterable[Path], ignored: Ignored | None = None) -> Iterator[Path]:
    """Yield files in order; directories and patterns are replaced by the captures they stand for.

    InputError for a directory without captures and a pattern that nothing matches.
    """
    from kafkawire.capture.files.listing import is_pattern, matching

    for path in paths:
        if os.path.isdir(path):
            yield from _in_directory(path, ignored)
        elif is_pattern(path):
            paths_of_pattern = matching(path)
            if not paths_of_pattern:
                raise InputError(f"{path}: no file matches{cluster_hint(path)}")
            for each in paths_of_pattern:
                yield from _in_directory(each, ignored) if os.path.isdir(each) else [each]
        else:
            yield path


def _in_directory(path: Path, ignored: Ignored | None) -> list[Path]:
    from kafkawire.capture.files.listing import directory_of, not_read

    try:
        directory = directory_of(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not directory.captures:
        names = [each.name for each in directory.subdirectories]
        more = f"; {not_read(names)}" if names else ""
        raise InputError(f"{path}: no capture files in this directory, by name or content{more}")
    if ignored is not None and any((directory.ignored, directory.subdirectories, directory.links)):
        ignored(path, directory)
    return directory.captures
