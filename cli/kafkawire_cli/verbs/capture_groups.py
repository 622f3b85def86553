"""`kafkawire groups` of captures: a timeline of each consumer group."""

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
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Show only this group; repeatable."),
    ] = None,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show the consumer groups in captures."""
    bound = limit(most, every, form)
    with reading("groups", given, port, broker) as captures:
        from kafkawire.reports.clients import Clients
        from kafkawire.reports.groups import Groups
        from kafkawire.reports.watermarks import Watermarks

        from ..render.group_timeline import overview, sections_of

        clients, watermarks = Clients(), Watermarks(captures)
        history = Groups(captures, clients, watermarks)
        captures.read(clients, watermarks, history)
    missing = history.missing(wanted or [])
    found = history.chosen(wanted) if wanted else history.all
    shown = top(found, bound)

    def sections() -> Iterator[Section]:
        if len(found) > 1:
            yield overview(shown)
        for group in shown.first:
            yield from sections_of(group, bound)

    def as_json() -> dict[str, Any]:
        groups = [group.json_with_timeline() for group in shown.first]
        return {"groups": groups, "left_out": shown.left_out}

    for name in missing:
        known = (group.group_id for group in history.all)
        error = f"no such group: {printable(name)!r}{suggestion(name, known)}"
        refuse("groups", InputError(error))
    if found or not missing:
        show(captures, form, sections, as_json)
    if missing:
        raise typer.Exit(2)
