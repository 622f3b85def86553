"""Imports the packages of codecs on demand, and reuses their contexts.

Most batches are small: creating an lz4 or zstd context takes ten times as long as decompressing
with it. So contexts are reused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from ...errors import UnsupportedCompression

PACKAGES: Final = {"gzip": "zlib-ng", "snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}

MODULES: Final = {"gzip": "zlib_ng.zlib_ng", "lz4": "lz4.frame"}
"""The module to import, if it is not the package itself."""


@cache
def package_of(codec: str) -> Any:
    """Import the package that a codec needs."""
    name = PACKAGES[codec]
    try:
        return importlib.import_module(MODULES.get(codec, name))
    except ImportError as error:
        raise UnsupportedCompression(
            f"{codec} needs the package {name}, which is not installed"
        ) from error


MOST_KEPT: Final = 4
"""Idle contexts per kind, for as many threads at a time."""

_kept: Final[dict[str, list[Any]]] = {}


def taken(kind: str, make: Callable[[], Any]) -> Any:
    """Take an idle context for exclusive use until `give_back`."""
    try:
        return _kept.setdefault(kind, []).pop()
    except IndexError:
        return make()


def give_back(kind: str, context: Any) -> None:
    """Keep a context for the next use."""
    idle = _kept[kind]
    if len(idle) < MOST_KEPT:
        idle.append(context)
