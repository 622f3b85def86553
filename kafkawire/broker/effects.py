"""What a cluster asks of whoever runs it.

Law: effects are to be carried out in order; `Persist` and `Trim` stand before the `Reply` that
promises them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..primitives import Message
from .request import Request


class Reply(NamedTuple):
    """Send these bytes, a whole frame (or what a fault left of one)."""

    connection: int
    data: bytes


class Close(NamedTuple):
    """Close the connection when what was sent before has left."""

    connection: int
    reason: str


class AwaitDrain(NamedTuple):
    """Much was sent: say `Drained` when it has left; until then nothing is read of the client."""

    connection: int


class PauseReading(NamedTuple):
    """Read nothing more of a client until `ResumeReading`: many bytes of it wait already."""

    connection: int


class ResumeReading(NamedTuple):
    """Read a client again."""

    connection: int


class Persist(NamedTuple):
    """Keep this batch: with it and those before it the cluster can be built again.

    batch: magic 2, with its offsets.
    """

    topic: str
    partition: int
    batch: bytes


class Trim(NamedTuple):
    """Drop what is kept of a partition outside these offsets: deleted in front, lost behind."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int


class Report(NamedTuple):
    """Tell whoever watches of a request and its answer.

    response: None where there is none (acks=0, or a fault took it).
    took: seconds from the request's arrival.
    """

    request: Request
    response: Message | None
    took: float


Persisted = Persist | Trim
"""What a cluster that is to survive is built from again, in order (`Cluster.restore`)."""
Effect = Reply | Close | AwaitDrain | PauseReading | ResumeReading | Persist | Trim | Report
