"""Imports pyarrow without what is not used of it.

What is left out can be imported later, by whoever needs it; pyarrow then does without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from ....extras import requires

UNUSED: Final = ("pandas", "dateutil")
"""What pyarrow tries to import once: when the first array of a process is made, or the first time
in nanoseconds is read.

Nothing here uses it, and importing pandas takes longer than decoding 20 MB. Whoever converts a
table to pandas later gets it all the same.
"""

NUMPY: Final = "numpy"
"""What pyarrow imports at once, where it is installed; of use for arrays of numpy alone."""

STORES: Final = tuple([f"pyarrow._{name}" for name in ("azurefs", "gcsfs", "hdfs", "s3fs")])
"""Clients of object stores, which `pyarrow.parquet` imports."""


class _Without:
    """Lets imports fail: a finder for `sys.meta_path`."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: object) -> None:
        """Fail for the names, and find nothing else."""
        if name in self._names:
            raise ModuleNotFoundError("not used here", name=name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Let imports of modules that are not imported yet fail."""
    finder = _Without(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_arrow(*unused: str) -> None:
    """Import pyarrow without UNUSED, and without other names; raises MissingPackage."""
    with requires("pyarrow", "tables"), without(*UNUSED, *unused):
        arrow = import_module("pyarrow")
        arrow.array([0], arrow.timestamp("ns")).to_pylist()
