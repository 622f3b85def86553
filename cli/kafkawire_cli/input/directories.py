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

Ignored = Callable[[Path, "list[Path]"], None]
"""Called with a directory and the files in it that are not captures, if there are any."""


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
    from kafkawire.capture.files.listing import directory_of

    try:
        directory = directory_of(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not directory.captures:
        raise InputError(f"{path}: no capture files in this directory, by name or content")
    if directory.ignored and ignored is not None:
        ignored(path, directory.ignored)
    return directory.captures
