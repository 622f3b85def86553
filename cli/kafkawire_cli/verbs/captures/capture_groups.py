"""`kafkawire groups` of captures: a timeline of each consumer group."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from kafkawire.display import printable

from ...input.inputs import InputError
from ...input.names import suggestion
from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading, refuse
from ...render.report import print_capture_report, top

if TYPE_CHECKING:
    from ...render.report import Section


class GroupOrder(StrEnum):
    """Orders of groups; those that are equal are sorted by id."""

    HARM = "harm"
    LAG = "lag"
    REBALANCES = "rebalances"
    COMMITS = "commits"
    GROUP = "group"


def groups(
    files: Files,
    wanted: list[str] | None = None,
    sort: GroupOrder = GroupOrder.HARM,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Show the consumer groups in captures."""
    bound = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.groups.histories import Groups
        from kafkawire.reports.groups.silences import Silences
        from kafkawire.reports.watermarks import Watermarks

        from ...render.group_timeline import overview, sections_of

        watermarks, silences = Watermarks(captures), Silences()
        history = Groups(captures, watermarks, silences)
        captures.read(watermarks, silences, history)
    missing = history.missing(wanted or [])
    groups_shown = history.chosen(wanted) if wanted else history.in_order(sort.value)
    shown = top(groups_shown, bound)

    def sections() -> Iterator[Section]:
        if len(groups_shown) > 1:
            yield overview(shown)
        for group in shown.first:
            yield from sections_of(group, bound)

    def as_json() -> dict[str, Any]:
        groups = [group.json_with_timeline() for group in shown.first]
        return {"groups": groups, "left_out": shown.left_out}

    for name in missing:
        names = (group.group_id for group in history.all)
        error = f"no such group: {printable(name)!r}{suggestion(name, names)}"
        refuse(InputError(error))
    if groups_shown or not missing:
        print_capture_report(captures, options.form, sections, as_json, "No consumer groups found.")
    if missing:
        raise typer.Exit(2)
