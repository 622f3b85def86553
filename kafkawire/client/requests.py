"""What the owners of a client and its network say to each other.

Law: every Ask is followed by exactly one of Answered, Unanswered and Sent, given to the owner that
asked; the message is made when the version is known, not before.

    owner   -- Ask, TrackTopics, WantMetadata, LearnLeader, ForgetCoordinator -->  network
    owner  <-- Answered, Unanswered, Sent, MetadataChanged, ClusterFailed --       network

An owner is a machine (`Machine`) with a name; `routing.Client` carries effects between owners, the
network and the shell. Whatever else an owner returns is an effect for its user.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, Protocol

from ..messages.api_key import ApiKey
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from .network.cluster import Broker

# Where a request goes.


class CoordinatorKind(IntEnum):
    """What a coordinator coordinates: Kafka's key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that coordinates a group or transactional id; looked up when first needed."""

    kind: CoordinatorKind
    name: str


class Anywhere(Enum):
    """Brokers that are chosen when a request is sent."""

    LEAST_LOADED = "least loaded"
    CONTROLLER = "controller"


LEAST_LOADED: Final = Anywhere.LEAST_LOADED
CONTROLLER: Final = Anywhere.CONTROLLER

Destination = int | Anywhere | Coordinator
"""A node id, a choice, or a coordinator."""


# What is asked.


class Body(Protocol):
    """What a request says, before it is known in which version: any version from `lowest` to
    `highest` can say it.
    """

    @property
    def lowest(self) -> int: ...

    @property
    def highest(self) -> int: ...

    def build(self, version: int) -> Message:
        """Make the message for that version."""
        ...


@dataclass(frozen=True, slots=True)
class Same:
    """A message that is the same object in every version from lowest to highest."""

    message: Message
    lowest: int
    highest: int

    def build(self, version: int) -> Message:  # noqa: ARG002
        return self.message


@dataclass(frozen=True, slots=True)
class Varying:
    """A message that `make(version)` makes; `make` must always give the same for the same."""

    make: Callable[[int], Message]
    lowest: int
    highest: int

    def build(self, version: int) -> Message:
        return self.make(version)


# Effects of an owner, for the network.


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request and bring back the answer.

    owner: who gets the answer; key: the owner's own name for this request, given back with it.
    timeout_s: from now, waiting for a connection included; the connection is given up with it.
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
    """Keep metadata of these topics up to date for this owner, instead of what it tracked before;
    None is all topics of the cluster. What is not known yet is asked for at once.
    """

    owner: str
    topics: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class RequestMetadataUpdate:
    """What is known of the cluster is out of date (an error of `ErrorCode.invalid_metadata`, or a
    broker lost): refresh as soon as retry.backoff.ms allows. topics: look at these too, this once.
    """

    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UpdateLeader:
    """A broker said who leads a partition now (KIP-951); older leader epochs are ignored."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    endpoints: tuple[Broker, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """An answer said NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE: look it up again when needed."""

    coordinator: Coordinator


# Events for an owner.


class Reason(Enum):
    """Why a request has no answer."""

    DISCONNECTED = "the connection was lost"
    TIMED_OUT = "no answer in time"
    NO_VERSION = "the broker has no version of it that we can use"
    UNKNOWN_NODE = "no such broker in the cluster"
    COORDINATOR_ERROR = "the coordinator was refused"
    AUTHENTICATION_FAILED = "the broker refused our credentials"
    INVALID_REQUEST = "the request cannot be written"
    INVALID_RESPONSE = "the broker's answer makes no sense"
    CLOSED = "the client is closed"


RETRIABLE: Final = frozenset(
    {Reason.DISCONNECTED, Reason.TIMED_OUT, Reason.UNKNOWN_NODE, Reason.INVALID_RESPONSE}
)


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The response, in the version of the request (`version`), from broker `node`."""

    ask: SendRequest
    version: int
    message: Message
    node: int = -1


@dataclass(frozen=True, slots=True)
class NoResponse:
    """There is no response and will be none; the broker may still have done what was asked.

    code: the error of the coordinator look-up where that is the reason.
    sent: whether any of it may have reached the broker.
    """

    ask: SendRequest
    reason: Reason
    retriable: bool
    detail: str = ""
    code: ErrorCode = ErrorCode.NONE
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that has no response is on its way."""

    ask: SendRequest
    version: int


@dataclass(frozen=True, slots=True)
class MetadataChanged:
    """The view of the cluster is newer; every owner hears of it after each refresh.

    topics: those whose partitions, leaders, ids or errors are no longer what they were.
    """

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClusterFailed:
    """No broker can be used, and trying again will not help (credentials, versions)."""

    reason: Reason
    detail: str


OwnerEffect = SendRequest | TrackTopics | RequestMetadataUpdate | UpdateLeader | ForgetCoordinator
OwnerEvent = ResponseReceived | NoResponse | Sent | MetadataChanged | ClusterFailed


def error_of(code: int) -> ErrorCode:
    """Take an error code off the wire; one that this build does not know is
    UNKNOWN_SERVER_ERROR, as to Java's client.
    """
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class Machine(Protocol):
    """The contract of every machine; `now` is monotonic seconds."""

    def handle(self, event: object, now: float) -> Sequence[object]:
        """Take in what happened; give what to do about it, in order."""
        ...

    def next_deadline(self) -> float | None:
        """Say when to come back though nothing happens."""
        ...

    def advance(self, now: float) -> Sequence[object]:
        """Come back: do what is due by now."""
        ...
