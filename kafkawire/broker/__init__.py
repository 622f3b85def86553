"""A cluster of Kafka brokers as a machine without sockets: events and time in, effects out."""

from .broker import Endpoint
from .cluster import Cluster
from .effects import AwaitDrain, Close, Effect, Kept, Persist, Reply, Report, Trim
from .events import (
    BrokerStarted,
    BrokerStopped,
    Connected,
    Disconnected,
    Drained,
    Event,
    LeaderMoved,
    Received,
)
from .faults import Action, Fault
from .request import Request

__all__ = [
    "Action",
    "AwaitDrain",
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
    "Kept",
    "LeaderMoved",
    "Persist",
    "Received",
    "Reply",
    "Report",
    "Request",
    "Trim",
]
