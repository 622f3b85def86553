"""What a run needs on the cluster, and deletes afterwards: everything with its prefix."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
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
    left: list[str] = []
    try:
        topics = await admin.list_topics()
        groups = [each.group_id for each in await admin.list_groups()]
    except KafkaWireError as error:
        return [f"{prefix}-*: {error}"]
    for kind, names, delete in (
        ("topic", topics, admin.delete_topic),
        ("group", groups, admin.delete_group),
    ):
        for name in names:
            if name.startswith(f"{prefix}-"):
                try:
                    await delete(name)
                except KafkaWireError as error:
                    left.append(f"{kind} {name}: {error}")
    return left
