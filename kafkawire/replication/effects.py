"""The effects that a replica manager returns to its caller.

Effects are carried out in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..metadata import TopicIdPartition
from ..primitives import Message
from ..protocol import ErrorCode
from .states import IsrState, ReplicaState

CONTROLLER: Final = -1
"""The destination of AlterPartition: the active controller, whoever that is."""


class SendRequest(NamedTuple):
    """Send a request to a broker, or to the controller; then raise `ResponseReceived`."""

    token: int
    destination: int
    version: int
    body: Message


class Respond(NamedTuple):
    """Respond to a request. body: None for a Produce with acks=0."""

    token: int
    body: Message | None


@dataclass(slots=True)
class AppendResult:
    """The result of an append to one partition; offsets are -1 after an error.

    records: those that are invalid: index in the batch, and why.
    """

    error: ErrorCode
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    records: tuple[tuple[int, str], ...] = ()
    last_offset: int = -1


class AppendCompleted(NamedTuple):
    """The result of an append of the broker itself that had to wait for followers."""

    token: int
    result: AppendResult


class ReplicaChanged(NamedTuple):
    """The state of a replica of this broker changed."""

    key: TopicIdPartition
    state: ReplicaState
    leader_epoch: int


class IsrChanged(NamedTuple):
    """The ISR changed, or a change of it was proposed."""

    key: TopicIdPartition
    state: IsrState
    isr: frozenset[int]


class HighWatermarkAdvanced(NamedTuple):
    """Records of a watched partition, or of a coordinator, are committed up to an offset."""

    key: TopicIdPartition
    offset: int


class CheckpointHighWatermarks(NamedTuple):
    """Persist high watermarks: what a log has as its own after a restart."""

    offsets: dict[TopicIdPartition, int]


Effect = (
    SendRequest
    | Respond
    | AppendCompleted
    | ReplicaChanged
    | IsrChanged
    | HighWatermarkAdvanced
    | CheckpointHighWatermarks
)
