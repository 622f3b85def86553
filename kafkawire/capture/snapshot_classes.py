"""The classes that the state of an engine consists of.

`snapshot` imports this module when a state is written or read: most runs of most commands do
neither, nor decrypt TLS.
"""

from __future__ import annotations

from typing import Any, Final

from ..primitives import DEFAULT_LIMITS
from .exchanges.client_detection import ClientDetection
from .exchanges.conversation import Conversation
from .exchanges.in_flight import Entry, InFlightRequests, Total
from .exchanges.inference import Inference
from .exchanges.pairing import Pairing
from .exchanges.waiting import WaitingResponse, WaitingResponses
from .frames.framing import Mark, RequestHeads, Stream
from .packets.segment_rows import KEY_BYTES
from .proxy.layer import ProxyLayer, ProxySide
from .tcp.connection import Connection, Receiver, Totals
from .tcp.connection_table import ConnectionTable
from .tcp.flow import Budget, Flow
from .tcp.gap_policy import GapPolicy
from .tcp.limits import DEFAULT_REASSEMBLY
from .tcp.out_of_order import OutOfOrderSegments
from .tcp.reassembly import Reassembler
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

_BUDGET: Final = Budget()
_CONNECTION: Final = Connection(0, bytes(KEY_BYTES), 0, 0)
_STREAMS: Final = Stream(False), Stream(False)
_TOTAL: Final[Total[Any]] = Total()
_NO_MARK: Final = Mark(0, 0, 0)
_KEY_LOG: Final = KeyLog()
_HELLOS: Final = ClientHello(b"", "", False), ServerHello(b"", 0, 0, False)

STATE: Final[dict[type, tuple[Any, ...]]] = {
    Budget: (),
    ClientDetection: (_STREAMS, DEFAULT_LIMITS),
    Connection: (0, bytes(KEY_BYTES), 0, 0),
    ConnectionTable: (DEFAULT_REASSEMBLY,),
    Conversation: (),
    Decryption: (False,),
    DeliveredBytes: (0,),
    Entry: (None, 0, 0, None, True),
    Flow: (_CONNECTION, 0, DEFAULT_REASSEMBLY, _BUDGET),
    GapPolicy: (DEFAULT_REASSEMBLY,),
    Handshake: (_KEY_LOG,),
    HandshakeMessages: (0,),
    InFlightRequests: (_TOTAL,),
    Inference: (DEFAULT_LIMITS,),
    Mark: (0, 0, 0),
    OutOfOrderSegments: (),
    Pairing: (_TOTAL,),
    ProxyLayer: (),
    ProxySide: (),
    Reassembler: (),
    Receiver: (),
    RecordBuffer: (),
    Reporting: (Handshake(_KEY_LOG),),
    RequestHeads: (),
    Session: _HELLOS,
    Side: (),
    Stream: (False,),
    TlsConnection: (_KEY_LOG,),
    TlsLayer: (_KEY_LOG,),
    Total: (),
    Totals: (),
    WaitingResponse: (b"", _NO_MARK, 0, 0),
    WaitingResponses: (),
}
"""The classes that a state consists of, and arguments to make an object of each.

A compiled class cannot be made without them; its attributes are overwritten. Values of other
classes (rows, raw frames, limits) are in `state_format.CLASSES`.
"""
