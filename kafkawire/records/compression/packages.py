"""Imports the packages of codecs on demand, and reuses their contexts.

Most batches are small: creating an lz4 or zstd context takes ten times as long as decompressing
with it. So contexts are reused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from ...errors import UnsupportedCompression


class Package:
    """What a codec needs: the distribution of that name, imported when it is first used.

    module: the module to import, if it is not called like the distribution.
    """

    def __init__(self, codec: str, name: str, module: str | None = None) -> None:
        self.codec = codec
        self.name = name
        self._path = module or name

    @cached_property
    def module(self) -> Any:
        """Import the module; UnsupportedCompression if it is not installed."""
        try:
            return importlib.import_module(self._path)
        except ImportError as error:
            raise UnsupportedCompression(
                f"{self.codec} needs the package {self.name}, which is not installed"
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
