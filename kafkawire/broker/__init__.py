"""A cluster of Kafka brokers without I/O: takes events and the time, returns effects."""

from .bounds import Bounds
from .cluster import Cluster
from .context import Endpoint
from .effects import (
    AwaitDrain,
    Close,
    Effect,
    PauseReading,
    Persist,
    Persisted,
    Reply,
    Report,
    ResumeReading,
    Trim,
)
from .events import (
    BrokerStarted,
    BrokerStopped,
    Connected,
    Disconnected,
    Drained,
    Event,
    LeaderMoved,
    Received,
    Unreadable,
)
from .faults import Action, Fault
from .request import Request

__all__ = [
    "Action",
    "AwaitDrain",
    "Bounds",
    "BrokerStarted",
    "BrokerStopped",
    "Close",
    "Cluster",
    "Connected",
    "Disconnected",
    "Drained",
    "Effect",
    "Endpoint",
    "Event",
    "Fault",
    "Persisted",
    "LeaderMoved",
    "PauseReading",
    "Persist",
    "Received",
    "Reply",
    "Report",
    "Request",
    "ResumeReading",
    "Trim",
    "Unreadable",
]
