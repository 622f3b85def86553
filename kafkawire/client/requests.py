"""Requests, responses and metadata events between a network and the owners of requests.

Every SendRequest is followed by exactly one ResponseReceived, NoResponse or Sent for its
owner; the message is built when the version is negotiated, not before.

    owner  -- SendRequest, TrackTopics, RequestMetadataUpdate, ...  -->  network
    owner  <-- ResponseReceived, NoResponse, Sent, MetadataChanged, ClusterFailed  --   network

An owner is a machine (`Machine`) with a name; `client.Client` dispatches effects between owners,
the network and the shell. Other effects of an owner are for its user.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, Protocol, TypeVar

from ..messages.api_key import ApiKey
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from ..protocol.error_code import error_of as error_of
from .cluster import Broker

# Destinations.


class CoordinatorKind(IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or transactional id; looked up when first needed."""

    kind: CoordinatorKind
    name: str


class AnyBroker(Enum):
    """Brokers that are chosen when a request is sent."""

    LEAST_LOADED = "least loaded"
    CONTROLLER = "controller"


LEAST_LOADED: Final = AnyBroker.LEAST_LOADED
CONTROLLER: Final = AnyBroker.CONTROLLER

Destination = int | AnyBroker | Coordinator
"""A node id, a kind of broker, or a coordinator."""


# Request bodies.


class Body(Protocol):
    """A request body before its version is negotiated; valid in versions `lowest` to `highest`."""

    @property
    def lowest(self) -> int: ...

    @property
    def highest(self) -> int: ...

    def build(self, version: int) -> Message:
        """Build the message for that version."""
        ...


@dataclass(frozen=True, slots=True)
class Same:
    """A body whose message is the same object in every version from lowest to highest."""

    message: Message
    lowest: int
    highest: int

    def build(self, version: int) -> Message:  # noqa: ARG002
        return self.message


@dataclass(frozen=True, slots=True)
class Varying:
    """A body built by `make(version)`, which must be deterministic."""

    make: Callable[[int], Message]
    lowest: int
    highest: int

    def build(self, version: int) -> Message:
        return self.make(version)


# Effects of an owner, for the network.


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request and return its response to the owner.

    owner: who gets the response; key: the owner's own name for this request, returned with it.
    timeout_s: from now, including the wait for a connection, which is closed on timeout.
    has_response: False only for Produce with acks=0, which is done when it is Sent.
    """

    owner: str
    key: Hashable
    to: Destination
    api: ApiKey
    body: Body
    timeout_s: float
    has_response: bool = True


@dataclass(frozen=True, slots=True)
class TrackTopics:
    """Keep metadata of these topics up to date for this owner, replacing its previous set.

    topics: None is all topics of the cluster. Unknown topics are requested at once.
    """

    owner: str
    topics: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class RequestMetadataUpdate:
    """Metadata is stale: update it as soon as retry.backoff.ms allows.

    Sent after an error of `ErrorCode.invalid_metadata`, or a disconnect. topics: include these
    topics in the next request only.
    """

    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UpdateLeader:
    """A broker reported a partition's new leader (KIP-951); older leader epochs are ignored."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    endpoints: tuple[Broker, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """A broker responded NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE: look it up again."""

    coordinator: Coordinator


# Events for an owner.


class Reason(Enum):
    """Why a request has no response."""

    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed out"
    NO_VERSION = "unsupported version"
    UNKNOWN_NODE = "unknown broker"
    COORDINATOR_ERROR = "coordinator lookup failed"
    AUTHENTICATION_FAILED = "authentication failed"
    INVALID_REQUEST = "invalid request"
    INVALID_RESPONSE = "invalid response"
    ABORTED = "the transaction was aborted"
    CLOSED = "the client is closed"


RETRIABLE: Final = frozenset(
    {Reason.DISCONNECTED, Reason.TIMED_OUT, Reason.UNKNOWN_NODE, Reason.INVALID_RESPONSE}
)


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The response, in the version of the request (`version`), from broker `node`.

    latency_s: since the request was written.
    """

    request: SendRequest
    version: int
    message: Message
    node: int = -1
    latency_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class NoResponse:
    """The request failed without a response; the broker may have processed it nevertheless.

    code: the error of the coordinator look-up if that is the reason.
    sent: whether any of it may have reached the broker. node: the broker that lacks the version
    (NO_VERSION), else -1.
    """

    request: SendRequest
    reason: Reason
    retriable: bool
    detail: str = ""
    code: ErrorCode = ErrorCode.NONE
    sent: bool = True
    node: int = -1


@dataclass(frozen=True, slots=True)
class Sent:
    """A request without a response was written."""

    request: SendRequest
    version: int


@dataclass(frozen=True, slots=True)
class MetadataChanged:
    """Metadata was updated; sent to every owner after each update.

    topics: those whose partitions, leaders, ids or errors changed.
    """

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClusterFailed:
    """No broker is usable, and a retry will not help (credentials, versions)."""

    reason: Reason
    detail: str


OwnerEffect = SendRequest | TrackTopics | RequestMetadataUpdate | UpdateLeader | ForgetCoordinator
"""What every owner may emit; the network handles it."""
Outcome = ResponseReceived | NoResponse | Sent
"""How a request ends, for its owner alone."""
OwnerEvent = Outcome | MetadataChanged | ClusterFailed
"""What every owner must handle; the network emits it."""


Event_contra = TypeVar("Event_contra", contravariant=True)
Effect_co = TypeVar("Effect_co", covariant=True)


class Machine(Protocol[Event_contra, Effect_co]):
    """The contract of every machine; `now` is monotonic seconds."""

    def handle(self, event: Event_contra, now: float) -> Sequence[Effect_co]:
        """Handle an event; return the effects, in order."""
        ...

    def next_deadline(self) -> float | None:
        """Return when `advance` is due if no event comes; None for never."""
        ...

    def advance(self, now: float) -> Sequence[Effect_co]:
        """Do what is due by now; return the effects."""
        ...
