"""The schemas of this repository, read once for all tests of a process."""

from __future__ import annotations

from functools import cache

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.schema import MessageSchema, load_directory


@cache
def schemas() -> tuple[MessageSchema, ...]:
    """Return every schema, sorted by name."""
    return tuple(load_directory(schemas_dir()))
