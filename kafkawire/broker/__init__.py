"""What a Kafka broker does with requests, without I/O; `kafkawire.node` composes brokers of it."""

from .bounds import Bounds
from .context import Endpoint
from .effects import (
    AwaitDrain,
    Close,
    Effect,
    FlowControl,
    PauseAccepting,
    PauseReading,
    Reply,
    Report,
    ResumeAccepting,
    ResumeReading,
)
from .events import (
    Connected,
    Disconnected,
    Drained,
    Event,
    Received,
    Unreadable,
)
from .faults import Action, Fault
from .request import Request

__all__ = [
    "Action",
    "AwaitDrain",
    "Bounds",
    "Close",
    "Connected",
    "Disconnected",
    "Drained",
    "Effect",
    "Endpoint",
    "Event",
    "Fault",
    "FlowControl",
    "PauseAccepting",
    "PauseReading",
    "Received",
    "Reply",
    "Report",
    "Request",
    "ResumeAccepting",
    "ResumeReading",
    "Unreadable",
]
