"""What a run needs on the cluster, and deletes afterwards: everything with its prefix."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Final

from ..client.config import bootstrap
from ..conformance.connection import Target
from ..conformance.session import Names as SessionNames
from ..conformance.session import Session
from ..errors import KafkaWireError
from ..messages.api_key import ApiKey
from ..net.admin import Admin
from .names import Names

PARTITIONS: Final = 2


@contextlib.asynccontextmanager
async def existing_topic(
    target: Target, admin: Admin, versions: Mapping[ApiKey, range], prefix: str, left: list[str]
) -> AsyncIterator[Names]:
    """Create the topic of a run; yield its names. left: what is wrong with it is added there.

    What an earlier run with the same seed left behind is deleted first.
    """
    await cleaned_up(admin, prefix)
    session = Session(target, bootstrap(target.values)[0], versions, SessionNames(prefix), None)
    names = Names(prefix, f"{prefix}-0")
    try:
        topic = await session.topic(PARTITIONS)
        names = Names(prefix, topic.name, topic.id)
    except KafkaWireError as error:
        left.append(f"the topic of the run: {error}")
    for each in session.connections():
        each.close()
    yield names


async def cleaned_up(admin: Admin, prefix: str) -> list[str]:
    """Delete the topics and groups of a run; return those that could not be deleted."""

    async def groups() -> Iterable[str]:
        return [listed.group_id for listed in await admin.list_groups()]

    topics = await _deleted("topic", admin.list_topics, admin.delete_topic, prefix)
    return topics + await _deleted("group", groups, admin.delete_group, prefix)


async def _deleted(
    kind: str,
    listed: Callable[[], Awaitable[Iterable[str]]],
    delete: Callable[[str], Awaitable[None]],
    prefix: str,
) -> list[str]:
    """Delete what is listed with the prefix; return what could not be."""
    left: list[str] = []
    try:
        names = await listed()
    except KafkaWireError as error:
        return [f"{kind}s {prefix}-*: {error}"]
    for name in names:
        if name.startswith(f"{prefix}-"):
            try:
                await delete(name)
            except KafkaWireError as error:
                left.append(f"{kind} {name}: {error}")
    return left
