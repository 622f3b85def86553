"""What a broker must do: a behaviour of an API, checked in each version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ..errors import KafkaWireError
from ..messages import REGISTRY
from ..messages.api_key import ApiKey
from ..protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from .session import Session

NEWEST: Final = 0x7FFF
"""No limit: the newest version that both sides have."""

CONSUMER_GROUPS_OFF: Final = (
    "consumer groups are switched off (group.coordinator.rebalance.protocols)"
)


class Feature(StrEnum):
    """The parts of the protocol that can be checked by themselves."""

    APIS = "apis"
    TOPICS = "topics"
    RECORDS = "records"
    GROUPS = "groups"
    CONSUMER_GROUPS = "consumer-groups"
    STREAMS_GROUPS = "streams-groups"
    TRANSACTIONS = "transactions"


class Deviation(KafkaWireError):
    """The broker does something else than Kafka."""


class NotOffered(KafkaWireError):
    """The broker has the API, but not what it is for: it is switched off."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A behaviour.

    name: what the broker does, as a sentence without a subject. check: raises Deviation, or
    NotOffered. lowest, highest: the versions that have it. needs: other APIs that the check sends,
    with the lowest version that will do.
    """

    feature: Feature
    api: ApiKey
    name: str
    check: Callable[[Session, int], Awaitable[None]]
    lowest: int = 0
    highest: int = NEWEST
    needs: Mapping[ApiKey, int] = field(default_factory=dict)


def api_name(api: ApiKey) -> str:
    """Return the name of an API as in the schemas, such as "Fetch"."""
    request = REGISTRY.request(api)
    assert request is not None
    return request.name.removesuffix("Request")


def expect(actual: object, expected: object, what: str) -> None:
    """Raise Deviation unless both are equal."""
    if actual != expected:
        raise Deviation(f"{what}: {actual!r}, expected {expected!r}")


def expect_that(holds: bool, what: str) -> None:
    """Raise Deviation unless a condition holds; what: what is wrong if it does not."""
    if not holds:
        raise Deviation(what)


def expect_error(code: int, expected: ErrorCode, what: str) -> None:
    """Raise Deviation for another error code."""
    if code != expected:
        raise Deviation(f"{what}: {ErrorCode.name_of(code)}, expected {expected.name}")


def expect_success(code: int, what: str) -> None:
    """Raise Deviation for an error."""
    expect_error(code, ErrorCode.NONE, what)
