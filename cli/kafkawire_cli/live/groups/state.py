"""Finds groups by id, and checks that they have no members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NoReturn

import typer

from ...input.existing import DEAD, existing_group
from ...input.names import suggestion
from ...notes import print_note

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, GroupListing

INACTIVE: Final = ("Empty", DEAD)


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
    print_note(f"no such group: {name!r}{suggestion(name, known)}")
    raise typer.Exit(1)


async def check_inactive(admin: Admin, group_id: str) -> bool:
    """Fail if a group has members: the next commit of theirs would undo the change.

    Returns whether the group exists.
    """
    states = {each.group_id: each.state for each in await admin.list_groups()}
    state = states.get(group_id, INACTIVE[0])
    if state == "" and group_id in states:  # brokers before KIP-518
        info = await existing_group(admin, group_id)
        state = DEAD if info is None else info.state
    if state not in INACTIVE:
        reason = f"group {group_id!r} has members (it is {state}): stop them first"
        print_note(str(reason))
        raise typer.Exit(1)
    return group_id in states
