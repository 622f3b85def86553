"""The packages of codecs, imported when first needed, and contexts of theirs that are kept.

Most batches are of few bytes: making what a frame of lz4 or zstd is read with takes ten times as
long as reading it. So such contexts are kept, for who takes one next.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from ..errors import UnsupportedCompression

PACKAGES: Final = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}

MODULES: Final = {"lz4": "lz4.frame"}
"""What is imported of them, where that is a module inside."""


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
"""Contexts of a kind that are kept, for as many threads at a time."""

_kept: Final[dict[str, list[Any]]] = {}


def taken(kind: str, make: Callable[[], Any]) -> Any:
    """Take a context, which nobody else has until it is given back."""
    try:
        return _kept.setdefault(kind, []).pop()
    except IndexError:
        return make()


def give_back(kind: str, context: Any) -> None:
    idle = _kept[kind]
    if len(idle) < MOST_KEPT:
        idle.append(context)
