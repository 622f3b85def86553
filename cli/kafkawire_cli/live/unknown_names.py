"""Names that a cluster does not have, with the similar one that it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

import typer

from kafkawire.display import printable
from kafkawire.errors import KafkaWireError

from ..input.names import suggestion

if TYPE_CHECKING:
    from kafkawire.client.failures import BrokerError
    from kafkawire.net.admin import Admin, GroupListing, TopicInfo


async def described_topics(admin: Admin, names: Iterable[str]) -> dict[str, TopicInfo]:
    """Describe topics; the BrokerError for an unknown one names a similar one."""
    from kafkawire.client.failures import BrokerError

    wanted = list(dict.fromkeys(names))
    try:
        return await admin.describe_topics(wanted)
    except BrokerError as error:
        raise await with_similar_topic(admin, error, wanted) from None


async def with_similar_topic(admin: Admin, error: BrokerError, names: list[str]) -> BrokerError:
    """Add the name of a similar topic to the error of an unknown one; other errors stay."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return error
    try:
        known = await admin.list_topics()
    except KafkaWireError:
        return error
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        return error
    return BrokerError(error.code, f"topic {unknown}{suggestion(unknown, known)}")


async def listed_groups(admin: Admin, names: Iterable[str] | None) -> list[GroupListing]:
    """Find groups by id; exit code 1 at the first unknown one. names: None is all groups."""
    listed = {each.group_id: each for each in await admin.list_groups()}
    wanted = listed if names is None else dict.fromkeys(names)
    for name in wanted:
        if name not in listed:
            refuse_group(name, listed)
    return [listed[name] for name in wanted]


def refuse_group(name: str, known: Iterable[str] = ()) -> NoReturn:
    """Exit with code 1: a group does not exist. known: the groups that do."""
    message = f"kafkawire groups: no such group: {name!r}{suggestion(name, known)}"
    typer.echo(printable(message), err=True)
    raise typer.Exit(1)
