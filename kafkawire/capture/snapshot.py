"""Serialises the state of an engine, readable by compiled and interpreted builds.

A restored object continues as if it had never been serialised. Objects are written attribute
by attribute, by name (`state_format`), so compiled and interpreted classes write and read the same;
a change of these attributes, or a class in another module, is another STATE_VERSION.

    engine --version, attributes by name--> bytes --> engine    external objects are named only
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from .state_format import InvalidState, Reader, Writer, attributes

STATE_VERSION: Final = 13
"""Increase it with every change of what a state consists of: the classes of STATE, their modules,
their attributes, and the meaning of these (tests/capture/test_snapshot.py has them).
"""

VERSION_BYTES: Final = 32
"""Bytes at the beginning in which the version ends."""

__all__ = ["STATE_VERSION", "InvalidState", "StateVersionError", "attributes", "dump", "load"]


class StateVersionError(ValueError):
    """A state was written by another version of kafkawire."""


def dump(state: object, **external: object) -> bytes:
    """Serialise a state. external: objects that are written as names only.

    They are given again to `load`. Raises InvalidState for an object of an unknown class.
    """
    writer = Writer(external, _classes())
    writer.out += b"%d\n" % STATE_VERSION
    writer.write(state)
    return bytes(writer.out)


def load(data: bytes, **external: object) -> Any:
    """Restore a state. external: the objects by the same names.

    Raises StateVersionError; InvalidState for a damaged state.
    """
    version, _, _ = data[:VERSION_BYTES].partition(b"\n")
    if version != b"%d" % STATE_VERSION:
        text = version[:20].decode("ascii", "backslashreplace")
        raise StateVersionError(f"state version {text}, not {STATE_VERSION}")
    return Reader(data, len(version) + 1, external, _classes()).whole()


@cache
def _classes() -> dict[type, tuple[Any, ...]]:
    """Import the classes of a state, with the arguments to make an object of each."""
    from .snapshot_classes import STATE

    return STATE
