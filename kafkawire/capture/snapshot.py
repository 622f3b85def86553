"""Serialises the state of an engine, readable by compiled and interpreted builds.

Law: a restored object continues as if it had never been serialised. The objects of STATE are
written attribute by attribute, by name, so compiled and interpreted classes write and read the
same; a change of these attributes, or a class in another module, is another STATE_VERSION.

    engine --version, attributes by name--> bytes --> engine    external objects are named only
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Final

from ..primitives import DEFAULT_LIMITS
from .exchanges.client_detection import ClientDetection
from .exchanges.conversation import Conversation
from .exchanges.inference import Inference
from .exchanges.pairing import Pairing, WaitingResponse
from .frames.framing import Mark, RequestHeads, Stream
from .tcp.connection import Connection, Totals
from .tcp.connection_table import ConnectionTable
from .tcp.flow import Budget, Flow
from .tcp.gap_policy import GapPolicy
from .tcp.limits import DEFAULT_REASSEMBLY
from .tcp.out_of_order import OutOfOrderSegments
from .tcp.reassembly import KEY, Reassembler
from .tcp.retransmission import DeliveredBytes
from .tls.connection import TlsConnection
from .tls.decryption import Decryption
from .tls.handshake import Handshake
from .tls.hellos import ClientHello, HandshakeMessages, ServerHello
from .tls.keylog import KeyLog
from .tls.layer import TlsLayer
from .tls.records import RecordBuffer
from .tls.reporting import Reporting
from .tls.session import Session
from .tls.side import Side

STATE_VERSION: Final = 4
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
        if cls not in STATE:
            return NotImplemented
        return _blank, (cls,), attributes(obj), None, None, _fill


class _Reader(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, external: dict[str, object]) -> None:
        super().__init__(data)
        self._external = external

    def persistent_load(self, pid: Any) -> object:
        return self._external[pid]


_BUDGET: Final = Budget()
_CONNECTION: Final = Connection(0, bytes(KEY.itemsize), 0, 0)
_STREAMS: Final = Stream(False), Stream(False)
_NO_MARK: Final = Mark(0, 0, 0)
_KEY_LOG: Final = KeyLog()
_HELLOS: Final = ClientHello(b"", "", False), ServerHello(b"", 0, 0, False)

STATE: Final[dict[type, tuple[Any, ...]]] = {
    Budget: (),
    ClientDetection: (_STREAMS, DEFAULT_LIMITS),
    Connection: (0, bytes(KEY.itemsize), 0, 0),
    ConnectionTable: (DEFAULT_REASSEMBLY,),
    Conversation: (),
    Decryption: (False,),
    DeliveredBytes: (0,),
    Flow: (_CONNECTION, 0, DEFAULT_REASSEMBLY, _BUDGET),
    GapPolicy: (DEFAULT_REASSEMBLY,),
    Handshake: (_KEY_LOG,),
    HandshakeMessages: (0,),
    Inference: (DEFAULT_LIMITS,),
    Mark: (0, 0, 0),
    OutOfOrderSegments: (),
    Pairing: (DEFAULT_LIMITS,),
    Reassembler: (),
    RecordBuffer: (),
    Reporting: (Handshake(_KEY_LOG),),
    RequestHeads: (),
    Session: _HELLOS,
    Side: (),
    Stream: (False,),
    TlsConnection: (_KEY_LOG,),
    TlsLayer: (_KEY_LOG,),
    Totals: (),
    WaitingResponse: (b"", _NO_MARK),
}
"""The classes that a state consists of, and arguments to make an object of each.

A compiled class cannot be made without them; its attributes are overwritten. Values of other
classes (rows, raw frames, limits) are pickled.
"""


def _blank(cls: type) -> Any:
    return cls(*STATE[cls])


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
