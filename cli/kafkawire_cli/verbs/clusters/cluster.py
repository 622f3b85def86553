"""`kafkawire cluster`: brokers of a live cluster, its quorum, features, partitions with problems.

What a broker does not support or refuses is named with the reason, the rest is shown; what one
broker says is shown as that broker's.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.cluster_state import ClusterState, read_cluster
from ...input.options import EveryOption, Form, FormOption, MostOption, entries_shown
from ...render.cluster import as_json, sections
from ...render.report import print_report


def cluster(
    address: Annotated[
        str | None,
        typer.Argument(metavar="[HOST:PORT,...]", help="Bootstrap servers, as with -b."),
    ] = None,
    options: ClusterOptions = NO_OPTIONS,
    apis: Annotated[
        bool, typer.Option("--apis", help="Show the versions of all APIs, by broker.")
    ] = False,
    most: MostOption = None,
    every: EveryOption = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Show a live cluster: brokers, quorum, unhealthy partitions.

    \b
    kafkawire cluster localhost:9092
    kafkawire cluster localhost:9092 --all --apis
    kafkawire cluster localhost:9092 -f json | jq '.under_replicated[].topic'

    Exit code 0: everything is online and in sync; 1: a broker, log directory or partition is
    offline, or a partition under-replicated, or the cluster cannot be reached; 2: usage error.
    """
    if address is not None and options.bootstrap is not None:
        raise typer.BadParameter("not allowed together with HOST:PORT", param_hint=live.CLUSTER)
    client = live.admin_configuration(
        options if address is None else options._replace(bootstrap=address)
    )
    limit = entries_shown(most, form, every=every)
    states: list[ClusterState] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            states.append(await read_cluster(admin))

    live.run(work, client)
    [state] = states
    print_report(form, lambda: sections(state, limit, apis=apis), lambda: as_json(state))
    if not state.healthy:
        raise typer.Exit(1)
