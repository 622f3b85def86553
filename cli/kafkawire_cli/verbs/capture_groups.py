"""`kafkawire groups`: the life of each consumer group, as a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..input.inputs import InputError
from ..input.names import suggestion
from ..input.sources import (
    AllOption,
    BrokerOption,
    Files,
    Form,
    FormOption,
    PortOption,
    TopOption,
    limit,
    reading,
    refuse,
    show,
    top,
)
from ..render.messages import printable

if TYPE_CHECKING:
    from ..render.report import Section


def groups(
    given: Files,
    wanted: Annotated[
        list[str] | None, typer.Option("--group", help="Only this group; may be repeated.")
    ] = None,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show consumer groups: members, rebalances and their causes, lag.

    \b
    kafkawire groups trace*.pcap
    kafkawire groups trace.pcap --group orders --format json | jq '.groups[].rebalances'

    Lag is that of a commit: how far behind the end of its partitions, as Fetch and ListOffsets
    responses stated it before; nothing where they did not.
    """
    bound = limit(most, every, form)
    with reading("groups", given, port, broker) as captures:
        from kafkawire.reports.clients import Clients
        from kafkawire.reports.groups import Groups
        from kafkawire.reports.watermarks import Watermarks

        from ..render.group_timeline import overview, told

        clients, watermarks = Clients(), Watermarks(captures)
        tally = Groups(captures, clients, watermarks)
        captures.read(clients, watermarks, tally)
    missing = tally.missing(wanted or [])
    found = tally.chosen(wanted) if wanted else tally.all
    shown = top(found, bound)

    def sections() -> Iterator[Section]:
        if len(found) > 1:
            yield overview(shown)
        for life in shown.first:
            yield from told(life, bound)

    def made() -> dict[str, Any]:
        groups = [life.json_with_timeline() for life in shown.first]
        return {"groups": groups, "left_out": shown.left_out}

    for name in missing:
        known = (life.group_id for life in tally.all)
        error = f"no such group: {printable(name)!r}{suggestion(name, known)}"
        refuse("groups", InputError(error))
    if found or not missing:
        show(captures, form, sections, made)
    if missing:
        raise typer.Exit(2)
