"""Checks of Fetch and ShareFetch.

The partitions of a consumer are those of its session, so their handlers divide them, each time:
a permission may be removed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from ...messages.fetch_request import FetchRequest
from ...protocol import ErrorCode
from ..broker import Broker
from ..request import Request
from ..security.permissions import Permission
from .access import Access, access_of
from .checks import Check, Verdict, whole

E, P = ErrorCode, Permission
T = TypeVar("T")


def _fetch(access: Access, body: FetchRequest) -> Verdict:
    """Check that who fetches as a replica is one."""
    if access.is_for_controller:
        return whole(P.CLUSTER_ACTION).judge(access, body)
    if access.request.is_from_follower and not access.may(P.CLUSTER_ACTION):
        return access.refusal(body, E.TOPIC_AUTHORIZATION_FAILED)
    return None


FETCH: Final = (Check((P.READ_TOPIC, P.CLUSTER_ACTION), _fetch),)
SHARE_FETCH: Final = (whole(P.READ_GROUP, "group_id"), Check((P.READ_TOPIC,), lambda *_: None))


def readable(
    broker: Broker,
    request: Request,
    items: Iterable[T],
    topic_of: Callable[[T], tuple[str, bytes]],
) -> tuple[list[T], list[T]]:
    """Divide what is fetched into what the sender may read, and the rest.

    topic_of: returns the name of the topic of an item, or its id; an unknown one is readable.
    """
    access = access_of(broker, request)
    if access is None:
        return list(items), []

    def name_of(item: T) -> str | None:
        name, topic_id = topic_of(item)
        topic = broker.metadata.topics.by_id(topic_id)
        return name or (None if topic is None else topic.name)

    return access.split(P.READ_TOPIC, items, name_of)
