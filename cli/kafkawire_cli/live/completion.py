"""Completes names of topics and groups in the shell, from the cluster that the options name.

A completion takes about a second at most, and prints nothing but names: where the cluster
cannot be reached, or refuses, there are none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import typer

from kafkawire.display import printable

from ..input import cluster as live
from ..input.cluster import ClusterOptions
from ..input.profiles import variable

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin

LIMIT_S: Final = 1.0
"""Seconds within which a cluster has to respond."""
EXIT_S: Final = 0.2
"""Seconds in which the connections are closed."""
CAPTURES: Final = "files"
"""The parameter of verbs that read captures, unless their options name a cluster."""


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a topic; internal ones only after `__`."""
    names = _names(context, lambda admin: admin.list_topics())
    internal = incomplete.startswith("__")
    return [each for each in _fitting(names, incomplete) if internal or not each.startswith("__")]


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the id of a group."""

    async def read(admin: Admin) -> list[str]:
        return [each.group_id for each in await admin.list_groups()]

    return _fitting(_names(context, read), incomplete)


def _fitting(names: list[str], incomplete: str) -> list[str]:
    """Return the names that begin so; those with control characters or spaces cannot be typed."""
    return sorted(
        each
        for each in names
        if each.startswith(incomplete) and printable(each) == each and not set(each) & set(" \t")
    )


def _names(context: typer.Context, read: Callable[[Admin], Awaitable[list[str]]]) -> list[str]:
    """Read names from the cluster; none if that fails or takes too long."""
    values = context.params
    options = ClusterOptions(*(values.get(name) or None for name in ClusterOptions._fields))
    named = options.with_environment(os.environ).names_a_cluster
    if CAPTURES in values and not named and variable(live.SERVERS) not in os.environ:
        return []
    import asyncio  # verbs that read captures do without
    import logging

    names: list[str] = []

    def work() -> None:
        with suppress(Exception):  # whatever fails, the shell shows no names
            names.extend(asyncio.run(_read(client.values, read)))

    logging.disable()
    try:
        client = live.admin_configuration(options)  # imports take no part of the time
    except Exception:  # noqa: BLE001 - as above
        return []
    thread = threading.Thread(target=work, name="completion", daemon=True)
    thread.start()
    thread.join(LIMIT_S + EXIT_S)
    if thread.is_alive():  # such as a name server that does not respond: it cannot be interrupted
        os._exit(0)
    logging.disable(logging.NOTSET)
    return names


async def _read(
    values: Mapping[str, Any], read: Callable[[Any], Awaitable[list[str]]]
) -> list[str]:
    from asyncio import timeout

    async with timeout(LIMIT_S):
        async with live.admin(values) as admin:
            return await read(admin)
