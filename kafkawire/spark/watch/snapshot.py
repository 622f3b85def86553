"""Serialises an engine between two batches, readable by compiled and interpreted builds.

Law: a restored object continues as if it had never been serialised. Objects are written attribute
by attribute, by name, so compiled and interpreted classes write and read the same.

    engine --attributes, by name--> bytes --> engine      its callbacks are named, not written
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from ...capture.engine import _ConversationState
from ...capture.exchanges.conversation import Conversation
from ...capture.frames.decoding import RequestHeads
from ...capture.frames.stream import Mark, Stream
from ...capture.tcp.connection import Connection
from ...capture.tcp.connection_table import ConnectionTable
from ...capture.tcp.flow import Budget, Flow
from ...capture.tcp.gap_policy import GapPolicy
from ...capture.tcp.limits import DEFAULT_REASSEMBLY, Totals
from ...capture.tcp.out_of_order import OutOfOrderSegments
from ...capture.tcp.reassembly import Reassembler
from ...capture.tcp.retransmission import DeliveredBytes
from ...capture.tcp.segment_columns import KEY

OUR_PACKAGE: Final = "kafkawire."
"""Classes of this package are written by attributes, unless they define `__reduce__`."""

SOURCES: Final = ("kafkawire.capture", "kafkawire.spark")
"""Packages whose classes are part of a state."""


@cache
def digest() -> str:
    """Return a digest of the sources of all classes in a state: a state with another digest cannot
    be read.
    """
    made = hashlib.sha256()
    for package in SOURCES:
        for name, source in _sources(files(package), package):
            made.update(name.encode() + source)
    return made.hexdigest()[:16]


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".py"):
            yield f"{name}.{entry.name}", entry.read_bytes()
        elif entry.is_dir():
            yield from _sources(entry, f"{name}.{entry.name}")


def dump(what: object, **external: object) -> bytes:
    """Serialise an object. external: objects that are written as names only, and given again to
    `load`.
    """
    out = io.BytesIO()
    _Writer(out, external).dump(what)
    return out.getvalue()


def load(data: bytes, **external: object) -> Any:
    """Restore an object. external: the objects by the same names."""
    return _Reader(io.BytesIO(data), external).load()


class _Writer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, external: dict[str, object]) -> None:
        super().__init__(out, protocol=5)
        self._names = {id(each): name for name, each in external.items()}

    def persistent_id(self, obj: object) -> str | None:
        return self._names.get(id(obj))

    def reducer_override(self, obj: object) -> Any:
        cls = type(obj)
        if not cls.__module__.startswith(OUR_PACKAGE) or isinstance(obj, tuple | Enum | Exception):
            return NotImplemented
        if cls.__reduce__ is not object.__reduce__:
            return NotImplemented
        return _blank, (cls,), _attributes(obj), None, None, _fill


class _Reader(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, external: dict[str, object]) -> None:
        super().__init__(data)
        self._external = external

    def persistent_load(self, pid: Any) -> object:
        return self._external[pid]


def _blank(cls: Any) -> Any:
    """Make an object without its attributes. A final compiled class needs its arguments."""
    made = _BLANK_ARGUMENTS.get(cls)
    return cls.__new__(cls) if made is None else cls(*made)


_BUDGET: Final = Budget()
_CONNECTION: Final = Connection(0, bytes(KEY.itemsize), 0, 0)
_BLANK_ARGUMENTS: Final[dict[Any, tuple[Any, ...]]] = {
    OutOfOrderSegments: (),
    Budget: (),
    Connection: (0, _CONNECTION.key, 0, 0),
    ConnectionTable: (DEFAULT_REASSEMBLY,),
    Conversation: (),
    Flow: (_CONNECTION, 0, DEFAULT_REASSEMBLY, _BUDGET),
    Mark: (0, 0, 0),
    DeliveredBytes: (0,),
    GapPolicy: (DEFAULT_REASSEMBLY,),
    Reassembler: (),
    RequestHeads: (),
    Stream: (False,),
    Totals: (),
    _ConversationState: (_CONNECTION, 0, Conversation()),
}
"""Arguments to make an object of each class; they are overwritten."""


def _attributes(obj: object) -> dict[str, Any]:
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
