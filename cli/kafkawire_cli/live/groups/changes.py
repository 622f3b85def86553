"""Deletes groups, and committed offsets of a group (`kafkawire groups --delete`).

Nothing is deleted if one of the groups does not exist, or has members that would commit again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkawire.display import plural

from ...input import cluster as live
from ...input.options import Form
from ..changes import Change, ChangeOptions, ChangeReport
from .offsets import OffsetOptions, partitions_to_change
from .state import check_inactive, listed_groups

if TYPE_CHECKING:
    from kafkawire.net.admin import GroupListing

    from .offsets import Partition


def delete_groups(
    client: live.Configuration, names: list[str], options: ChangeOptions, form: Form
) -> None:
    """Delete groups, once that is confirmed, and report each."""
    existing: list[GroupListing] = []
    report = ChangeReport(form, dry_run=options.dry_run)

    async def find() -> None:
        async with live.admin(client.values) as admin:
            existing.extend(await listed_groups(admin, names))
            for each in existing:
                await check_inactive(admin, each.group_id)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            for each in existing:
                if not options.dry_run:
                    await admin.delete_group(each.group_id)
                report.add(Change("delete", "group", each.group_id))

    live.run(find, client)
    options.confirm([f"group {each.group_id} and its committed offsets" for each in existing])
    with report.printed():
        live.run(work, client)


def delete_offsets(
    client: live.Configuration,
    group_id: str,
    wanted: OffsetOptions,
    options: ChangeOptions,
    form: Form,
) -> None:
    """Delete committed offsets of a group, once that is confirmed, and report each."""
    existing: list[Partition] = []
    report = ChangeReport(form, dry_run=options.dry_run)

    async def find() -> None:
        async with live.admin(client.values) as admin:
            await listed_groups(admin, [group_id])
            committed = await admin.group_offsets(group_id)
            existing.extend(await partitions_to_change(admin, wanted, committed))

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if not options.dry_run:
                await admin.delete_group_offsets(group_id, existing)
            for partition in existing:
                report.add(Change("delete", "group", group_id, offset_of=partition))

    live.run(find, client)
    if existing:
        options.confirm([f"{plural(len(existing), 'committed offset')} of group {group_id}"])
    with report.printed():
        live.run(work, client)
