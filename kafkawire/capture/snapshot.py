"""Serialises the state of an engine, readable by compiled and interpreted builds.

Law: a restored object continues as if it had never been serialised. The objects of STATE
(`snapshot_classes`) are written attribute by attribute, by name, so compiled and interpreted
classes write and read the same; a change of these attributes, or a class in another module, is
another STATE_VERSION.

    engine --version, attributes by name--> bytes --> engine    external objects are named only
"""

from __future__ import annotations

import io
import pickle
from functools import cache
from typing import Any, Final

STATE_VERSION: Final = 8
"""Increase it with every change of what a state consists of: the classes of STATE, their modules,
their attributes, and the meaning of these (tests/capture/test_snapshot.py has them).
"""


class StateVersionError(ValueError):
    """A state was written by another version of kafkawire."""


def dump(state: object, **external: object) -> bytes:
    """Serialise a state. external: objects that are written as names only.

    They are given again to `load`.
    """
    out = io.BytesIO()
    out.write(b"%d\n" % STATE_VERSION)
    _Writer(out, external).dump(state)
    return out.getvalue()


def load(data: bytes, **external: object) -> Any:
    """Restore a state. external: the objects by the same names. Raises StateVersionError."""
    source = io.BytesIO(data)
    version = source.readline().strip()
    if version != b"%d" % STATE_VERSION:
        text = version[:20].decode("ascii", "replace")
        raise StateVersionError(f"state version {text}, not {STATE_VERSION}")
    return _Reader(source, external).load()


class _Writer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, external: dict[str, object]) -> None:
        super().__init__(out, protocol=5)
        self._names = {id(each): name for name, each in external.items()}

    def persistent_id(self, obj: object) -> str | None:
        return self._names.get(id(obj))

    def reducer_override(self, obj: object) -> Any:
        cls = type(obj)
        if cls not in _classes():
            return NotImplemented
        return _blank, (cls,), attributes(obj), None, None, _fill


class _Reader(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, external: dict[str, object]) -> None:
        super().__init__(data)
        self._external = external

    def persistent_load(self, pid: Any) -> object:
        return self._external[pid]


@cache
def _classes() -> dict[type, tuple[Any, ...]]:
    """Import the classes of a state, with the arguments to make an object of each."""
    from .snapshot_classes import STATE

    return STATE


def _blank(cls: type) -> Any:
    return cls(*_classes()[cls])


def attributes(obj: object) -> dict[str, Any]:
    """Return the attributes of an object of a class of STATE, compiled or not."""
    names = [
        name
        for cls in type(obj).__mro__
        for listed in ("__mypyc_attrs__", "__slots__")
        for name in vars(cls).get(listed, ())
        if not (name.startswith("__") and name.endswith("__"))
    ]
    found = {name: getattr(obj, name) for name in names if hasattr(obj, name)}
    return {**found, **getattr(obj, "__dict__", {})}


def _fill(obj: object, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        object.__setattr__(obj, name, value)
